"""A tower of plain pyzmq, so that a test sees what a node sends to one and what it is connected to."""

from __future__ import annotations

import time
from collections.abc import Callable

import zmq
from contexts import new_context

ADDRESS = b"0123456789ABCDEF0123456789ABCDEF"


class PlainTower:
    """Two bound sockets. ``beacons``: those of nodes, with the time of each."""

    def __init__(self) -> None:
        self._context = new_context()
        self._incoming = self._context.socket(zmq.SUB)
        self._incoming.subscribe(b"")
        self._outgoing = self._context.socket(zmq.XPUB)
        self.addresses = (
            f"tcp://127.0.0.1:{self._incoming.bind_to_random_port('tcp://127.0.0.1')}",
            f"tcp://127.0.0.1:{self._outgoing.bind_to_random_port('tcp://127.0.0.1')}",
        )
        self.beacons: list[tuple[float, list[bytes]]] = []
        self.subscriptions: set[bytes] = set()

    def until(self, condition: Callable[[], object], seconds: float = 60.0) -> None:
        """Listen, and tell every node of its own beacon as towers do, until ``condition()`` holds."""
        deadline = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < deadline, f"not within {seconds} s; heard {self.beacons}"
            self._pump()

    def tell(self, address: bytes, endpoint: bytes) -> None:
        """Publish a tower beacon."""
        self._outgoing.send_multipart([b"B", address, endpoint])

    def publisher(self) -> tuple[zmq.Socket, bytes]:
        """An XPUB socket as a node has one, and its endpoint."""
        socket = self._context.socket(zmq.XPUB)
        port = socket.bind_to_random_port("tcp://127.0.0.1")
        return socket, b"tcp://127.0.0.1:%d" % port

    def subscriber(self, endpoint: bytes) -> zmq.Socket:
        """A SUB socket that is connected to a node's publisher and subscribed to everything."""
        socket = self._context.socket(zmq.SUB)
        socket.subscribe(b"")
        socket.connect(endpoint.decode())
        return socket

    def _pump(self) -> None:
        if self._incoming.poll(20):
            frames = self._incoming.recv_multipart()
            self.beacons.append((time.monotonic(), frames))
            if len(frames) == 4:
                self.tell(frames[1], b"tcp://%s:%s" % (frames[2], frames[3]))
        while self._outgoing.poll(0):
            message = self._outgoing.recv()
            if message[:1] == b"\x01":
                self.subscriptions.add(message[1:])

    def __enter__(self) -> PlainTower:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._context.destroy(linger=0)


def received(socket: zmq.Socket, wanted: bytes, seconds: float = 60.0) -> list[bytes]:
    """The next message that begins with ``wanted``."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if socket.poll(20):
            frames: list[bytes] = socket.recv_multipart()
            if frames[0].startswith(wanted):
                return frames
    raise AssertionError(f"no {wanted!r} within {seconds} s")
