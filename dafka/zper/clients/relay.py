"""New messages of a topic, without positions."""

from __future__ import annotations

from collections.abc import Iterator
from types import TracebackType

from dafka.hub.waits import wait_of
from dafka.zper import identity
from dafka.zper.clients.connection import Addresses, Connection, Context, Deadline

ADDRESS = "tcp://127.0.0.1:5558"
QUEUE = 1000  # messages


class Relay:
    """The messages of a topic that are written from now on, through a ZPRelay; each is a list of frames.

    Messages that are written while there is no connection are not seen: a Reader sees all. Iterating ends
    when no message came for ``idle`` seconds; None: never. Several addresses: the messages of all. A relay is
    used by one thread at a time.
    """

    def __init__(
        self,
        topic: str,
        address: Addresses = ADDRESS,
        *,
        idle: float | None = None,
        queue: int = QUEUE,
        context: Context | None = None,
    ) -> None:
        self.topic = topic
        self._idle = wait_of(idle, "idle")
        self._connection = Connection(
            address, lambda: identity.build(topic), context=context, high_water_mark=queue, notice=False
        )

    def receive(self, timeout: float | None = None) -> list[bytes] | None:
        """The next message; None if there is none within ``timeout`` seconds."""
        return self._connection.receive(Deadline(timeout))

    def __iter__(self) -> Iterator[list[bytes]]:
        while (message := self.receive(self._idle)) is not None:
            yield message

    def close(self) -> None:
        self._connection.close(0)

    @property
    def closed(self) -> bool:
        return self._connection.closed

    def __enter__(self) -> Relay:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
