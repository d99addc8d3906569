"""Acknowledgements: the first frame of each flushed message, and its position."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import NamedTuple

import zmq

from dafka.hub.waits import wait_of
from dafka.zper.clients.connection import RECONNECT, RECONNECT_MOST, Addresses, Context, Deadline, connect
from dafka.zper.commands import InvalidResponseError

ADDRESS = "tcp://127.0.0.1:5557"
QUEUE = 10_000  # messages
_POSITION_SIZE = 8


class Ack(NamedTuple):
    """A message that was flushed."""

    topic: str
    """As its writer named it."""
    id: bytes
    """Its first frame."""
    position: int


class Acks:
    """The acks of topics, through a ZPAck; without a topic those of all.

    A subscriber that does not keep up, or has no connection, misses acks. Iterating ends when no ack came for
    ``idle`` seconds; None: never. Used by one thread at a time.
    """

    def __init__(
        self,
        *topics: str,
        address: Addresses = ADDRESS,
        idle: float | None = None,
        queue: int = QUEUE,
        context: Context | None = None,
    ) -> None:
        self.topics = topics
        self._idle = wait_of(idle, "idle")
        addresses: Sequence[str] = [address] if isinstance(address, str) else address
        used: Context = context or zmq.Context.instance()
        self._socket = used.socket(zmq.SUB)
        try:
            self._socket.setsockopt(zmq.LINGER, 0)
            self._socket.setsockopt(zmq.RECONNECT_IVL, RECONNECT)
            self._socket.setsockopt(zmq.RECONNECT_IVL_MAX, RECONNECT_MOST)
            self._socket.setsockopt(zmq.TCP_KEEPALIVE, 1)
            self._socket.set_hwm(queue)
            for topic in topics or ("",):
                self._socket.setsockopt(zmq.SUBSCRIBE, topic.encode())
            connect(self._socket, addresses)
        except BaseException:
            self._socket.close(0)
            raise

    def receive(self, timeout: float | None = None) -> Ack | None:
        """The next ack; None if there is none within ``timeout`` seconds."""
        deadline = Deadline(timeout)
        while True:
            if not self._socket.poll(deadline.milliseconds()):
                return None
            ack = _read(self._socket.recv_multipart())
            # A subscription is of all topics that begin so.
            if not self.topics or ack.topic in self.topics:
                return ack

    def __iter__(self) -> Iterator[Ack]:
        while (ack := self.receive(self._idle)) is not None:
            yield ack

    def close(self) -> None:
        self._socket.close(0)

    @property
    def closed(self) -> bool:
        return self._socket.closed

    def __enter__(self) -> Acks:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _read(frames: Sequence[bytes]) -> Ack:
    if len(frames) != 3 or len(frames[2]) != _POSITION_SIZE:
        shape = [len(frame) for frame in frames[:8]]
        raise InvalidResponseError("ack", f"frames of {shape} octets; topic, id and 8 octets are wanted")
    topic, identifier, position = frames
    return Ack(topic.decode("utf-8", "backslashreplace"), identifier, int.from_bytes(position, "big"))
