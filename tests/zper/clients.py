"""ZPER's clients as its README describes them: plain pyzmq sockets, without any help of the package's own."""

from __future__ import annotations

import struct
import uuid

import zmq
from contexts import new_context

SECONDS = 100  # until an answer that does not come is missed

OK, INVALID_OFFSET, INVALID_COMMAND, INTERNAL_ERROR = (bytes([code]) for code in (100, 101, 102, 255))
EARLIEST, LATEST = -2, -1


def identity(topic: str, mode: int = 0) -> bytes:
    """An identity as ZPER's README describes it."""
    value = 0
    for octet in topic.encode():
        value = 31 * value + octet
    return bytes([value & 0xFF, mode, len(topic)]) + topic.encode() + uuid.uuid4().bytes


def long(value: int) -> bytes:
    return struct.pack(">q", value)


def raw(*frames: bytes) -> bytes:
    """One message in RAW form."""
    octets = b""
    for number, frame in enumerate(frames):
        more = number < len(frames) - 1
        if len(frame) < 255:
            octets += bytes([more, len(frame)]) + frame
        else:
            octets += bytes([more | 2]) + len(frame).to_bytes(8, "big") + frame
    return octets


class Clients:
    """pyzmq sockets of one context."""

    def __init__(self) -> None:
        self.context = new_context()

    def __enter__(self) -> Clients:
        return self

    def __exit__(self, *error: object) -> None:
        self.context.destroy(linger=0)

    def connect(self, kind: int, address: str, name: bytes, **options: int) -> zmq.Socket:
        """A socket with an identity, connected."""
        socket = self.context.socket(kind)
        socket.setsockopt(zmq.IDENTITY, name)
        socket.setsockopt(zmq.RCVTIMEO, 1000 * SECONDS)
        socket.setsockopt(zmq.SNDTIMEO, 1000 * SECONDS)
        socket.setsockopt(zmq.LINGER, 1000 * SECONDS)
        for option, value in options.items():
            socket.setsockopt(getattr(zmq, option), value)
        socket.connect(address)
        return socket

    def dealer(self, address: str, topic: str, mode: int = 0, **options: int) -> zmq.Socket:
        return self.connect(zmq.DEALER, address, identity(topic, mode), **options)

    def req(self, address: str, topic: str, mode: int = 2) -> zmq.Socket:
        return self.connect(zmq.REQ, address, identity(topic, mode))

    def push(self, address: str, topic: str) -> zmq.Socket:
        return self.connect(zmq.PUSH, address, identity(topic))


def unpack(frames: list[bytes]) -> tuple[int, list[int]]:
    """Status and positions of a response to OFFSET."""
    return frames[0][0], [struct.unpack(">q", frame)[0] for frame in frames[1:]]


def offset(sock: zmq.Socket, time: int, entries: int | None = None) -> tuple[int, list[int]]:
    """Send an OFFSET and read its response."""
    sock.send_multipart([b"OFFSET", long(time), *([] if entries is None else [struct.pack(">i", entries)])])
    return unpack(sock.recv_multipart())


def fetch(sock: zmq.Socket, position: int, size: int) -> list[bytes]:
    """Send a FETCH and read its response: the status, and the super frame."""
    sock.send_multipart([b"FETCH", long(position), long(size)])
    return sock.recv_multipart()


def write(clients: Clients, broker, topic: str, *messages: list[bytes]) -> None:
    """Write messages and wait until they are committed."""
    sock = clients.dealer(broker.zper.writer_address, topic, 2)
    for message in messages:
        sock.send_multipart(message)
    for _ in messages:
        sock.recv()
    sock.close()
