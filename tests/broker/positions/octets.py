"""The positions of one partition as tests call them, from a plain thread."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from broker.clients import Client

from dafka.protocol import raw


class Octets:
    """The positions of a partition; everything is called in the hub."""

    def __init__(self, client: Client, topic: str = "t", partition: int = 0, base: int | None = None) -> None:
        self._run = client.connection.hub.run
        self.core = client.core
        self.positions = self._run(lambda: client.core.positions.open(topic, partition, base=base))

    def call(self, method: str, *args: Any) -> Any:
        return self._run(getattr(self.positions, method), *args)

    @property
    def first(self) -> int:
        return self._run(lambda: self.positions.first)

    @property
    def end(self) -> int:
        """Behind everything that may be seen."""
        self.call("catch_up")
        return self._run(lambda: self.positions.end)

    def read(self, position: int, octets: int = 1 << 30) -> bytes:
        return self.call("read", position, octets)

    def all(self) -> list[list[bytes]]:
        """All messages that exist."""
        end = self.end
        messages, used = raw.decode_messages(self.read(self.first))
        assert used == end - self.first
        return messages


def produce(client: Client, messages: Sequence[Sequence[bytes]], topic: str = "t", partition: int = 0) -> int:
    """Write messages as one batch; the offset of the first of them."""
    batch = raw.encode_bulk(messages, 1000)
    produced = client.call("produce", {(topic, partition): [batch]})[topic, partition]
    assert produced.error is None
    return produced.base_offset


def size(*messages: Sequence[bytes]) -> int:
    return sum(raw.message_sizes(messages))
