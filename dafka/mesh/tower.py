"""Tower: where nodes find each other. It hears their beacons and tells them to everybody; no records pass.

On the wire (:mod:`dafka.protocol.beacons`) nodes publish four-frame beacons to the tower's first address and
subscribe to three-frame ones from its second; every new connection there gets the welcome message ``W``,
upon which a node says its beacon at once instead of at its next interval.
"""

from __future__ import annotations

import logging
import socket as sockets
from collections import Counter
from typing import Any

import gevent
import gevent.event
import zmq

from dafka.hub.dropped import when_dropped
from dafka.hub.hub import get_hub
from dafka.hub.turns import next_turn
from dafka.mesh import curve, limits
from dafka.mesh.counting import Discards
from dafka.mesh.sockets import Socket
from dafka.mesh.speakers import CAUSE, Speakers
from dafka.protocol.beacons import WELCOME, NodeBeacon, decode_beacon, encode_beacon
from dafka.protocol.errors import DafkaError, MalformedMessage
from dafka.roles.tower import TowerRole
from dafka.security.keys import Allowed, KeyFolder, ServerKeys, check_keys

log = logging.getLogger(__name__)


class TowerBindError(DafkaError, OSError):
    """The address of a tower cannot be bound."""


class Tower:
    """A tower in this process, on loopback and free ports unless told otherwise.

    ``publish_to``: the address that nodes publish beacons to; ``subscribe_from``: the one they subscribe
    to. The C daemon's are ``tcp://*:5556`` and ``tcp://*:5557``. ``keys``: only nodes on the list of this
    folder may come in, and beacons are encrypted; None: all, in clear text. A tower runs from its
    construction until :meth:`close`; ``with Tower() as tower:`` closes it. Raises :class:`TowerBindError`,
    :class:`~dafka.security.KeyFolderError`, TypeError for addresses that are no text, and ValueError for
    ``keys`` that are no KeyFolder.
    """

    def __init__(
        self,
        publish_to: str = "tcp://127.0.0.1:*",
        subscribe_from: str = "tcp://127.0.0.1:*",
        *,
        keys: KeyFolder | None = None,
    ) -> None:
        for name, address in (("publish_to", publish_to), ("subscribe_from", subscribe_from)):
            if not isinstance(address, str):
                raise TypeError(f"{name} is an address such as 'tcp://127.0.0.1:*', not {address!r:.100}")
        check_keys(keys)
        loaded = None if keys is None else keys.load_server()
        self._hub = get_hub()
        self._node = self._hub.run(_TowerNode, publish_to, subscribe_from, loaded)
        self._not_dropped = when_dropped(self, self._hub, repr(self), "close()", self._node.close)

    @property
    def addresses(self) -> tuple[str, str]:
        """The pair that nodes take as ``tower=``: (publish to, subscribe from)."""
        return self._node.addresses

    @property
    def bound(self) -> tuple[str, str]:
        """The same pair as it is bound: ``0.0.0.0`` and ``[::]`` are every interface."""
        return self._node.bound

    @property
    def discarded(self) -> dict[str, int]:
        """How many malformed beacons arrived, by cause."""
        return dict(self._node.discarded)

    def metrics(self) -> dict[str, Any]:
        """Counters of this tower, by the names in :mod:`dafka.mesh.metrics`."""
        return self._hub.run(self._node.metrics)

    def close(self) -> None:
        """Stop; nodes keep the connections they have and can find no new ones here."""
        self._not_dropped()
        self._hub.run(self._node.close)

    def __enter__(self) -> Tower:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Tower {self.addresses[0]} {self.addresses[1]}>"


class _TowerNode:
    """The sockets of a tower; hub side."""

    def __init__(self, publish_to: str, subscribe_from: str, keys: ServerKeys | None) -> None:
        self._hub = hub = get_hub()
        self._keys = keys
        self._speakers = None if keys is None else Speakers(keys.allows)
        self.discarded = Discards()
        self._counts: Counter[str] = Counter(beacons_in=0, beacons_out=0)
        self._closed = False
        self._ready = gevent.event.Event()
        self._in, self._out = self._open()
        try:
            bound = self._bind(self._in, publish_to), self._bind(self._out, subscribe_from)
        except BaseException:
            self._in.close()
            self._out.close()
            raise
        self.bound = bound
        self.addresses = (reachable(bound[0]), reachable(bound[1]))
        interface = b"127.0.0.1" if "//127.0.0.1:" in bound[0] else first_interface().encode()
        self._role = TowerRole(interface)
        self._greens = [hub.keep(self._loop)]
        if keys is not None:
            self._greens.append(hub.keep(self._look_at_keys, keys.allows))

    def _open(self) -> tuple[Socket, Socket]:
        context, ready = self._hub.context, self._ready.set
        heard = Socket(context, zmq.SUB, ready, limits.TOWER_HIGH_WATER_MARK)
        told = Socket(context, zmq.XPUB, ready, limits.TOWER_HIGH_WATER_MARK)
        try:
            heard.set(zmq.MAXMSGSIZE, limits.SMALL_FRAME_OCTETS)
            told.set(zmq.MAXMSGSIZE, limits.SUBSCRIPTION_OCTETS)
            heard.set(zmq.SUBSCRIBE, b"B")
            told.set(zmq.XPUB_WELCOME_MSG, WELCOME)
            if self._keys is not None:
                curve.of_server(self._hub, heard, self._keys)
                curve.of_server(self._hub, told, self._keys)
        except BaseException:
            heard.close()
            told.close()
            raise
        return heard, told

    def _look_at_keys(self, allows: Allowed) -> None:
        """libzmq cannot disconnect one peer. When a node is taken off the list all are, and those that are
        still on it come back by themselves."""
        known = allows.keys
        while True:
            gevent.sleep(limits.KEYS_SECONDS)
            before, known = known, allows.keys
            if before - known:
                log.info("a node was taken off the list: the tower at %s begins anew", self.bound[0])
                self._begin_anew()

    def _begin_anew(self) -> None:
        old = self._in, self._out
        self._in, self._out = self._open()
        for socket in old:
            socket.close()
        self._ready.set()
        for socket, address in zip((self._in, self._out), self.bound, strict=True):
            while True:
                try:
                    socket.bind(address)
                    break
                except zmq.ZMQError as error:  # libzmq gives the port back in its own time
                    log.debug("the tower cannot bind %s yet: %s", address, error)
                    gevent.sleep(limits.BIND_SECONDS)

    @staticmethod
    def _bind(socket: Socket, address: str) -> str:
        try:
            return socket.bind(address)
        except (zmq.ZMQError, UnicodeError) as error:
            raise TowerBindError(f"a tower cannot bind {address!r}: {error}") from error

    def _loop(self) -> None:
        while not self._closed:
            if self._read():
                next_turn()
            else:
                self._ready.wait()
                self._ready.clear()

    def _read(self) -> bool:
        busy = False
        for _ in range(limits.BEACONS_AT_ONCE):
            frames = self._in.receive_frames()
            if frames is None:
                break
            busy = True
            self._hear(frames)
        return bool(self._out.receive(limits.ROUND_MESSAGES)) or busy  # subscriptions, which it ignores

    def _hear(self, frames: list[zmq.Frame]) -> None:
        try:
            beacon = decode_beacon([frame.bytes for frame in frames])
        except MalformedMessage as error:
            self.discarded.add(error.cause)
            return
        if not isinstance(beacon, NodeBeacon):
            self.discarded.add("not-a-node-beacon")
            return
        try:
            peer = str(frames[0].get("Peer-Address"))
        except zmq.ZMQError:
            peer = ""  # inproc and ipc have none
        self._counts["beacons_in"] += 1
        if self._speakers is not None:
            key = curve.key_of(frames[0])
            if not self._speakers.may_beacon(key, beacon.address):
                self.discarded.add(CAUSE)
                return
        answer = self._role.receive(beacon, peer)
        if answer is None:
            self.discarded.add("beacon-host")
        else:
            self._counts["beacons_out"] += 1
            self._out.send_messages((encode_beacon(answer),))

    def metrics(self) -> dict[str, Any]:
        return {**self._counts, "discarded": dict(self.discarded)}

    def close(self) -> None:
        self._closed = True  # the kill alone would come too late for a loop that is about to continue
        for green in self._greens:
            green.kill(block=False)
        self._in.close()
        self._out.close()
        if self._keys is not None:
            curve.Doorkeeper.of(self._hub).forget(self._keys.allows)


def reachable(bound: str, interface: str = "127.0.0.1") -> str:
    """A bound address as one to connect to: every interface becomes ``interface``, loopback unless given."""
    return bound.replace("//0.0.0.0:", f"//{interface}:").replace("//[::]:", f"//{interface}:")


def first_interface() -> str:
    """This machine's own address on the network, 127.0.0.1 if it has none. Nothing is sent."""
    with sockets.socket(sockets.AF_INET, sockets.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # a documentation address: connecting UDP only picks a route
            return str(probe.getsockname()[0])
        except OSError:
            return "127.0.0.1"
