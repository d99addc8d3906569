"""Beaconing: how an endpoint is found and finds others through its towers.

The role decides (:mod:`dafka.roles.peers`); here are its two sockets, and the connecting. An endpoint that a
beacon names is foreign input: anything but ``tcp://host:port`` is counted and ignored. A host name is looked
up in a thread: ZeroMQ would do it in its only I/O thread, and a name server that does not answer would stop
every socket of the process. Nothing else runs in these threads, and a look-up ends with its peer.
"""

from __future__ import annotations

import logging
import re
import socket as sockets
import time
from collections.abc import Callable, Iterable
from typing import Any
from weakref import WeakKeyDictionary

import gevent
import gevent.threadpool
import zmq
from gevent.lock import BoundedSemaphore

from dafka.hub.changes import Changes
from dafka.hub.hub import Hub
from dafka.mesh import curve, limits
from dafka.mesh.address import InvalidAddressError
from dafka.mesh.counting import Discards
from dafka.mesh.links import Links
from dafka.mesh.options import EndpointOptions
from dafka.mesh.sockets import Socket
from dafka.protocol.beacons import WELCOME, NodeBeacon, TowerBeacon, decode_beacon, encode_beacon
from dafka.protocol.errors import MalformedMessage
from dafka.roles.outputs import Connect, Disconnect
from dafka.roles.peers import PeersRole
from dafka.security.keys import Keys
from dafka.sockets.errors import EndpointError

log = logging.getLogger(__name__)

_ENDPOINT = re.compile(rb"tcp://(?:([0-9.]+)|\[([0-9A-Fa-f:.%\-\w]+)\]|([A-Za-z0-9._\-]+)):([0-9]{1,5})")
_IPV4 = re.compile(rb"\d{1,3}(?:\.\d{1,3}){3}")

_pools: WeakKeyDictionary[Any, gevent.threadpool.ThreadPool] = WeakKeyDictionary()  # by gevent's hub


class _Target:
    """An address that is connected to: what the beacons of its peers say, which may be names of a host."""

    def __init__(self) -> None:
        self.endpoints: set[bytes] = set()
        self.told = Changes()  # a tower has told of one of them


class Beaconing:
    """The beacon sockets of one endpoint. ``links`` is what gets connected to peers."""

    def __init__(
        self,
        hub: Hub,
        options: EndpointOptions,
        port: int,
        links: Links,
        ready: Callable[[], object],
        discarded: Discards,
        keys: Keys | None = None,
    ) -> None:
        self.peers: dict[bytes, str | None] = {}  # endpoint: the address connected to; None while looked up
        self._hub = hub
        self._links = links
        self._ready = ready
        self._discarded = discarded
        self._lookups: dict[bytes, gevent.Greenlet] = {}  # by endpoint
        self._targets: dict[str, _Target] = {}  # by the address connected to
        self._looking_up = BoundedSemaphore(limits.RESOLVING)
        self._closed = False
        self._towers = options.towers
        self._patience = options.beacon_timeout
        self.heard = False
        """Whether a tower has said anything: it greets who connects, and tells a node its own beacon."""
        self._role = PeersRole(
            options.new_address(),
            options.host,
            port,
            interval=options.beacon_interval,
            timeout=options.beacon_timeout,
            tells_reached=links.tells_reached,
        )
        self._pause = min(options.beacon_interval, 1.0) / 2
        self._out = Socket(hub.context, zmq.PUB, ready, options.high_water_mark)
        self._in = Socket(hub.context, zmq.SUB, ready, options.high_water_mark)
        try:
            self._in.set(zmq.MAXMSGSIZE, limits.SMALL_FRAME_OCTETS)
            if keys is not None:
                curve.of_client(self._out, keys)
                curve.of_client(self._in, keys)
            for prefix in (b"B", WELCOME):
                self._in.set(zmq.SUBSCRIBE, prefix)
            for publish_to, subscribe_from in options.towers:
                _connect_tower(self._out, publish_to)
                _connect_tower(self._in, subscribe_from)
        except BaseException:
            self._out.close()
            self._in.close()
            raise
        self._carry(self._role.start(time.monotonic()))
        self._green = hub.keep(self._tick)

    def read(self) -> bool:
        """Read what the towers say; whether there was something."""
        self._out.look()
        messages = self._in.receive(limits.BEACONS_AT_ONCE)
        self.heard = self.heard or bool(messages)
        now, refused = time.monotonic(), self._role.refused
        for frames in messages:
            if frames == [WELCOME]:
                self._carry(self._role.start(now))
                continue
            try:
                beacon = decode_beacon(frames)
            except MalformedMessage as error:
                self._discarded.add(error.cause)
                continue
            if not isinstance(beacon, TowerBeacon):
                self._discarded.add("not-a-tower-beacon")
            elif not _is_endpoint(beacon.endpoint):
                self._discarded.add("peer-endpoint")
            else:
                self._carry(self._role.beacon(now, beacon))
                target = self._targets.get(self.peers.get(beacon.endpoint) or "")
                if target is not None:
                    target.told.tell()
        if self._role.refused > refused:
            self._discarded.add("peer-table", self._role.refused - refused)
        return bool(messages)

    @property
    def known(self) -> dict[bytes, bytes]:
        """The endpoint of each peer by the address of its beacon."""
        return self._role.peers

    def target_of(self, address: bytes) -> str | None:
        """The endpoint that is connected for the peer whose beacon has this address."""
        endpoint = self._role.endpoint_of(address)
        return None if endpoint is None else self.peers.get(endpoint)

    def reached(self, target: str) -> None:
        """There is a connection to a peer."""
        self._links.reached(target)
        if target in self._targets:
            for endpoint in self._targets[target].endpoints:
                self._role.reached(endpoint)

    def expect(self, target: str, began: float, lost: float) -> None:
        """Wait until a peer is to be connected to again that was lost, or not reached, at the time ``lost``,
        by the attempt of the time ``began``."""
        while True:
            now, known = time.monotonic(), self._targets.get(target)
            if known is None:  # who asks leaves it as soon as it is quiet
                gevent.sleep(limits.EXPECT_SECONDS)
                continue
            if any(self._role.expected(now, endpoint, began, lost) for endpoint in known.endpoints):
                return
            known.told.wait(limits.EXPECT_SECONDS)

    def close(self) -> None:
        """Stop beaconing; connections stay until their socket is closed."""
        self._closed = True
        for green in (self._green, *self._lookups.values()):
            green.kill(block=False)
        self._lookups.clear()
        self._out.close(limits.LINGER_MS)
        self._in.close()

    def _tick(self) -> None:
        patience_ends = time.monotonic() + self._patience
        while True:
            gevent.sleep(self._pause)
            if self._closed:
                return  # in the same turn: the sockets are closed, and the kill is still to come
            now = time.monotonic()
            self._carry(self._role.tick(now))
            if now > patience_ends:
                patience_ends = float("inf")
                if not self.heard:
                    addresses = ", ".join(subscribe_from for _, subscribe_from in self._towers)
                    log.warning("nothing is heard from a tower at %s: is one running there?", addresses)

    def _carry(self, outputs: Iterable[Any]) -> None:
        for output in outputs:
            if isinstance(output, NodeBeacon):
                self._out.send_messages((encode_beacon(output),))
            elif isinstance(output, Connect):
                self._connect(output.endpoint)
            elif isinstance(output, Disconnect):
                self._disconnect(output.endpoint)

    def _connect(self, endpoint: bytes) -> None:
        match = _ENDPOINT.fullmatch(endpoint)
        if match is None or match[3] is None:
            self._connect_to(endpoint, endpoint.decode())
        else:
            self.peers[endpoint] = None
            lookup = self._hub.keep(self._look_up, endpoint, match[3].decode(), int(match[4]))
            self._lookups[endpoint] = lookup

    def _look_up(self, endpoint: bytes, host: str, port: int) -> None:
        """Find out an address, again and again while the peer beacons, and connect to it."""
        pool = _resolvers()
        while self._is_looked_up(endpoint):
            try:
                with self._looking_up:
                    found = pool.apply(
                        sockets.getaddrinfo, (host, port, sockets.AF_INET, sockets.SOCK_STREAM)
                    )
            except (OSError, UnicodeError):
                self._discarded.add("peer-lookup")
                gevent.sleep(limits.LOOKUP_PAUSE)
                continue
            if self._is_looked_up(endpoint):
                del self._lookups[endpoint]
                self._connect_to(endpoint, f"tcp://{found[0][4][0]}:{port}")

    def _is_looked_up(self, endpoint: bytes) -> bool:
        return not self._closed and self.peers.get(endpoint, "") is None

    def _connect_to(self, endpoint: bytes, target: str) -> None:
        try:
            self._links.connect(target)
            self.peers[endpoint] = target
            self._targets.setdefault(target, _Target()).endpoints.add(endpoint)
            if self._links.is_reached(target):
                self._role.reached(endpoint)
        except (zmq.ZMQError, EndpointError):
            self.peers.pop(endpoint, None)
            self._discarded.add("peer-endpoint")
        self._ready()

    def _disconnect(self, endpoint: bytes) -> None:
        target = self.peers.pop(endpoint, None)
        lookup = self._lookups.pop(endpoint, None)
        if lookup is not None:
            lookup.kill(block=False)
        if target is None:
            return
        known = self._targets[target]
        known.endpoints.discard(endpoint)
        if known.endpoints:
            return
        del self._targets[target]
        try:
            self._links.disconnect(target)
        except zmq.ZMQError:
            self._discarded.add("peer-endpoint")
        self._ready()


def _resolvers() -> gevent.threadpool.ThreadPool:
    hub = gevent.get_hub()
    if hub not in _pools:
        _pools[hub] = gevent.threadpool.ThreadPool(limits.RESOLVING, hub)
    return _pools[hub]


def _connect_tower(socket: Socket, address: str) -> None:
    try:
        socket.connect(address)
    except zmq.ZMQError as error:
        raise InvalidAddressError(f"{address!r} is not an address of a tower: {error}") from error


def _is_endpoint(endpoint: bytes) -> bool:
    match = _ENDPOINT.fullmatch(endpoint)
    if match is None or not 0 < int(match[4]) < 65536:
        return False
    if match[1] is not None:
        return bool(_IPV4.fullmatch(match[1])) and all(int(part) < 256 for part in match[1].split(b"."))
    return True
