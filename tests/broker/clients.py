"""A broker's interface as tests call it, batches as clients send them, and waiting for a condition."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from crc32c import crc32c

from dafka import Broker
from dafka.broker import connect
from dafka.broker.interface.broker import Fetched, FetchFrom, Produced, TopicSpec
from dafka.broker.interface.outcome import Outcome
from dafka.protocol.batch import CRC_END, CRC_START, HEADER, HEADER_OCTETS, check_batch
from dafka.protocol.batch_reader import decode_batch
from dafka.protocol.batch_writer import encode_batch

MEGABYTE = 1024 * 1024


def errors_of(outcomes: Mapping[str, Outcome]) -> dict[str, Any]:
    """The error of each outcome, or None."""
    return {name: outcome.error for name, outcome in outcomes.items()}


class Client:
    """A broker's interface for tests. Everything else of it is called through :meth:`call`."""

    def __init__(self, broker: Broker) -> None:
        self.connection = connect(broker.bootstrap_servers, 100.0)
        self.core: Any = self.connection.broker

    def call(self, method: str, *args: Any, **kwargs: Any) -> Any:
        return self.connection.call(method, *args, **kwargs)

    def change(self, method: str, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """Create, extend or delete topics; the error of each, or None."""
        return errors_of(self.call(method, *args, **kwargs))

    def create(self, topic: str, partitions: int = 1) -> None:
        assert self.change("create_topics", {topic: TopicSpec(partitions)}) == {topic: None}

    def produce(self, topic: str, *values: bytes, partition: int = 0, timestamp: int = 1000) -> Produced:
        """Produce one batch of these values."""
        content = batch(*values, timestamp=timestamp)
        return self.call("produce", {(topic, partition): [content]})[topic, partition]

    def fetch(
        self, topic: str, offset: int = 0, *, partition: int = 0, wait: float = 0.0, max_bytes: int = MEGABYTE
    ) -> Fetched:
        """Fetch from one partition."""
        wanted = {(topic, partition): FetchFrom(offset, max_bytes)}
        answers = self.call("fetch", wanted, max_wait=wait, min_bytes=1, max_bytes=50 * MEGABYTE)
        return answers[topic, partition]

    def values(self, topic: str, offset: int = 0, *, partition: int = 0) -> list[bytes | None]:
        """The values of all records from ``offset`` on."""
        fetched = self.fetch(topic, offset, partition=partition, max_bytes=50 * MEGABYTE)
        assert fetched.error is None
        return [value for content in fetched.batches for value in decode_batch(content).values]

    def partitions(self, topic: str) -> list[tuple[str, bool]]:
        """Address and writability of each partition."""
        found = self.call("metadata", [topic]).topics[topic]
        return [(partition.address, partition.writable) for partition in found.partitions]


def batch(*values: bytes | None, timestamp: int = 1000, **options: Any) -> bytes:
    """A record batch of these values, as a client sends it."""
    return encode_batch([(timestamp, None, value, ()) for value in values], **options)


def timed(content: bytes, base: int, largest: int) -> bytes:
    """A batch with other timestamps in its header, whether they are true or not."""
    header = check_batch(content)
    head = HEADER.pack(*header._replace(base_timestamp=base, max_timestamp=largest))
    crc = crc32c(content[HEADER_OCTETS:], crc32c(head[CRC_END:]))
    return head[:CRC_START] + crc.to_bytes(4, "big") + head[CRC_END:] + content[HEADER_OCTETS:]


def counting(content: bytes, count: int) -> bytes:
    """A batch that says it has ``count`` records."""
    head = HEADER.pack(*check_batch(content)._replace(count=count, last_offset_delta=count - 1))
    crc = crc32c(content[HEADER_OCTETS:], crc32c(head[CRC_END:]))
    return head[:CRC_START] + crc.to_bytes(4, "big") + head[CRC_END:] + content[HEADER_OCTETS:]
