"""Topics with a configuration, and what is left in them: for the tests of the log cleaner."""

from __future__ import annotations

import time
from pathlib import Path

from broker.clients import Client

from dafka import Consumer
from dafka.broker.interface.admin import ConfigChange, ConfigOperation, Resource, ResourceType
from dafka.broker.interface.broker import EARLIEST, LATEST, TopicSpec
from dafka.protocol.batch_reader import decode_batch
from dafka.protocol.batch_writer import encode_batch

LARGE = bytes(100_000)
PAST = 1000  # ms since the epoch
END = 2**63 - 1


def create(client: Client, topic: str = "t", partitions: int = 1, **configs: object) -> None:
    named = {name.replace("_", "."): str(value) for name, value in configs.items()}
    assert client.change("create_topics", {topic: TopicSpec(partitions, named)}) == {topic: None}


def configure(client: Client, topic: str = "t", **configs: object) -> None:
    changes = [
        ConfigChange(name.replace("_", "."), ConfigOperation.SET, str(value))
        for name, value in configs.items()
    ]
    resource = Resource(ResourceType.TOPIC, topic)
    assert client.call("alter_configs", {resource: changes})[resource].error is None


def put(client: Client, *records: tuple, topic: str = "t", timestamp: int = PAST) -> None:
    """Produce a batch of records (key, value)."""
    content = encode_batch([(timestamp, key, value, ()) for key, value in records])
    assert client.call("produce", {(topic, 0): [content]})[topic, 0].error is None


def start_of(client: Client, topic: str = "t", partition: int = 0) -> int:
    return client.call("list_offsets", {(topic, partition): EARLIEST})[topic, partition].offset


def end_of(client: Client, topic: str = "t", partition: int = 0) -> int:
    return client.call("list_offsets", {(topic, partition): LATEST})[topic, partition].offset


def keyed(client: Client, topic: str = "t") -> dict[int, tuple]:
    """All records by their offsets."""
    found = {}
    offset = start_of(client, topic)
    while offset < end_of(client, topic):
        fetched = client.fetch(topic, offset)
        assert fetched.error is None
        for content in fetched.batches:
            columns = decode_batch(content)
            found.update(zip(columns.offsets, zip(columns.keys, columns.values, strict=True), strict=True))
        offset = int.from_bytes(content[:8], "big") + int.from_bytes(content[23:27], "big") + 1
    return found


def size_of(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def take(consumer: Consumer, count: int) -> list:
    records: list = []
    deadline = time.monotonic() + 100
    while len(records) < count and time.monotonic() < deadline:
        records += consumer.poll(timeout=1.0)
    return records
