"""A peer of the mesh written with plain pyzmq and nothing of Dafka's but the protocol.

It stands where a C node would: it beacons, connects to the nodes that the tower names, is subscribed to
everything, and sends what a test tells it to.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable

import zmq
from contexts import new_context

from dafka.mesh.endpoint import Endpoint
from dafka.protocol.beacons import NodeBeacon, TowerBeacon, decode_beacon, encode_beacon
from dafka.protocol.commands import Command
from dafka.protocol.errors import MalformedMessage
from dafka.protocol.framing import Framing, decode, encode
from dafka.security.keys import Keys

ADDRESS = b"FEDCBA9876543210FEDCBA9876543210"


class Peer:
    """``address``: that of its beacon; a C producer's partition has the same. ``keys``: with CURVE, as far as
    libzmq has it."""

    def __init__(
        self,
        tower: tuple[str, str],
        framing: Framing = Framing.LIBDAFKA,
        address: bytes = ADDRESS,
        keys: Keys | None = None,
    ) -> None:
        self.framing = framing
        self.address = address
        self.heard: list[Command] = []
        self.subscriptions: set[bytes] = set()
        self.told: Counter[bytes] = Counter()  # how often each was said, by every connection anew
        self.connected: set[bytes] = set()
        self._context = new_context()
        self._publisher = self._context.socket(zmq.XPUB)
        self._publisher.setsockopt(zmq.XPUB_VERBOSE, 1)
        self._publisher.setsockopt(zmq.SNDHWM, 1_000_000)
        if keys is not None:
            self._publisher.curve_server = True
            self._publisher.curve_secretkey = keys.server.pair.secret
            for option, key in (
                (zmq.CURVE_SERVERKEY, keys.server.pair.public),
                (zmq.CURVE_PUBLICKEY, keys.own.public),
                (zmq.CURVE_SECRETKEY, keys.own.secret),
            ):
                self._context.setsockopt(option, key)
        self.port = self._publisher.bind_to_random_port("tcp://127.0.0.1")
        self._subscriber = self._context.socket(zmq.SUB)
        # Nodes give up a connection whose other end leaves octets unread; a test that is slow to ask is none.
        self._subscriber.setsockopt(zmq.RCVHWM, 0)
        self._subscriber.subscribe(b"")
        self._beacons_out = self._context.socket(zmq.PUB)
        self._beacons_out.connect(tower[0])
        self._beacons_in = self._context.socket(zmq.SUB)
        self._beacons_in.subscribe(b"B")
        self._beacons_in.connect(tower[1])
        self._next_beacon = 0.0
        self._poller = zmq.Poller()
        for socket in (self._publisher, self._subscriber, self._beacons_in):
            self._poller.register(socket, zmq.POLLIN)

    def send(self, command: Command) -> None:
        self.send_frames(encode(command, self.framing))

    def send_frames(self, frames: list[bytes]) -> None:
        self._publisher.send_multipart(frames)

    def until(self, condition: Callable[[], object], seconds: float = 120.0) -> None:
        """Take part in the mesh until ``condition()`` holds."""
        deadline = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < deadline, f"not within {seconds} s; heard {self.heard}"
            self.pump(0.02)

    def receive(self, kind: type, seconds: float = 120.0) -> Command:
        """The next command of this kind; commands before it are left for later calls."""
        self.until(lambda: any(isinstance(command, kind) for command in self.heard), seconds)
        found = next(command for command in self.heard if isinstance(command, kind))
        self.heard.remove(found)
        return found

    def meet(self, *prefixes: bytes) -> None:
        """Wait until a node is connected to this peer with these subscriptions, and this peer has begun to
        connect to it. Whether that node hears of it already is another question: see :meth:`be_heard`.
        """
        self.until(lambda: self.connected and self.subscriptions.issuperset(prefixes))

    def be_heard(self, endpoint: Endpoint) -> None:
        """Wait until a node that this peer has met knows that it listens; only then it says anything here."""
        self.until(lambda: b"" in endpoint._heard)

    def pump(self, seconds: float) -> None:
        now = time.monotonic()
        if now >= self._next_beacon:
            self._next_beacon = now + 0.2
            beacon = NodeBeacon(self.address, b"127.0.0.1", self.port)
            self._beacons_out.send_multipart(encode_beacon(beacon))
        ready = dict(self._poller.poll(seconds * 1000))
        if self._beacons_in in ready:
            beacon = decode_beacon(self._beacons_in.recv_multipart())
            assert isinstance(beacon, TowerBeacon)
            if beacon.address != self.address and beacon.endpoint not in self.connected:
                self.connected.add(beacon.endpoint)
                self._subscriber.connect(beacon.endpoint.decode())
        if self._publisher in ready:
            message = self._publisher.recv()
            change = self.subscriptions.add if message[:1] == b"\x01" else self.subscriptions.discard
            change(message[1:])
            self.told[message[1:]] += message[:1] == b"\x01"
        if self._subscriber in ready:
            frames = self._subscriber.recv_multipart()
            try:
                self.heard.append(decode(frames))
            except MalformedMessage as error:
                raise AssertionError(f"a node sent {frames}") from error

    def close(self) -> None:
        self._context.destroy(linger=0)

    def __enter__(self) -> Peer:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()
