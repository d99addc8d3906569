"""Fetches while records are appended, deleted and compacted, and topics made anew, have what is there."""

from __future__ import annotations

import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from broker.clients import Client
from broker.server.client import WireClient
from broker.server.samples import fetch
from kafka.errors import OffsetOutOfRangeError, UnknownTopicIdError, UnknownTopicOrPartitionError

from dafka.broker.interface.topics import TopicSpec
from dafka.log import StoredBatches, reader, storage
from dafka.protocol.batch_reader import decode_batch
from dafka.protocol.batch_writer import encode_batch
from dafka.testing import TestBroker

BY_ID = 13
FILES_FROM = 20_000
SECONDS = 2.0
READERS = 4
READ = 100  # records, or more
KEYS = 20

_CONFIGS = (
    {},
    {"retention.bytes": "200000"},
    {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01"},
)


class World:
    """Topics of which one thread appends to each, and the records that they got, by topic id and offset."""

    def __init__(self, broker: TestBroker, seed: int) -> None:
        self.broker = broker
        self.seed = seed
        self.appended: dict[tuple[Any, int], bytes] = {}
        self.read: list[tuple[Any, int, bytes]] = []
        self.over = threading.Event()
        self.wrong: list[str] = []
        self.hold = threading.Lock()

    def write(self, number: int) -> None:
        chance, client, topic = random.Random(self.seed * 100 + number), Client(self.broker), f"t{number}"
        while not self.over.is_set():
            spec = TopicSpec(1, dict(_CONFIGS[number % len(_CONFIGS)]))
            if client.change("create_topics", {topic: spec})[topic] is not None:
                continue
            topic_id = client.call("metadata", [topic]).topics[topic].topic_id
            for _ in range(chance.randrange(20, 120)):
                if self.over.is_set():
                    return
                self._append(chance, client, topic, topic_id)
                if chance.random() < 0.05:
                    end = client.call("list_offsets", {(topic, 0): -1})[topic, 0].offset
                    client.call("delete_records", {(topic, 0): chance.randrange(end + 1)})
                if chance.random() < 0.2:
                    client.connection.hub.run(client.core._log_cleaner.look)
            client.change("delete_topics", [topic])

    def _append(self, chance: random.Random, client: Client, topic: str, topic_id: Any) -> None:
        batches, values = [], []
        size = chance.choice((10, 3_000, 30_000))
        for _ in range(chance.randrange(1, 8)):
            some = [chance.randbytes(size) for _ in range(chance.randrange(1, 4))]
            batches.append(encode_batch([(1, b"%d" % chance.randrange(KEYS), value, ()) for value in some]))
            values += some
        with self.hold:
            answer = client.call("produce", {(topic, 0): batches})[topic, 0]
            assert answer.error is None
            for offset, value in enumerate(values, answer.base_offset):
                assert self.appended.setdefault((topic_id, offset), value) == value

    def consume(self, number: int) -> None:
        chance, client = random.Random(self.seed * 1000 + number), Client(self.broker)
        compacted = number % len(_CONFIGS) == 2
        while not self.over.is_set():
            topic = f"t{number % 3}"
            found = client.call("metadata", [topic]).topics.get(topic)
            if found is None or found.error is not None:
                continue
            topic_id = found.topic_id
            with WireClient(self.broker) as wire:
                offset = 0
                for _ in range(chance.randrange(1, 50)):
                    if self.over.is_set():
                        return
                    asked = fetch(
                        "", offset, topic_id=topic_id, wait=20, max_bytes=chance.choice((1, 10**5, 10**7))
                    )
                    correlation = wire.send(asked, BY_ID)
                    if chance.random() < 0.3:
                        time.sleep(0.01)  # slow: the answer is sent in parts
                    answer = wire.receive(asked, BY_ID, correlation)
                    (one,) = answer.responses[0].partitions
                    if one.error_code == OffsetOutOfRangeError.errno:
                        offset = max(one.log_start_offset, 0)
                        again = client.call("list_offsets", {(topic, 0): -2})[topic, 0]
                        offset = max(again.offset or 0, 0)
                        continue
                    if one.error_code in (UnknownTopicIdError.errno, UnknownTopicOrPartitionError.errno):
                        break
                    assert one.error_code == 0, one
                    offset = self._take(topic_id, offset, bytes(one.records or b""), one, compacted)

    def _take(self, topic_id: Any, offset: int, octets: bytes, one: Any, compacted: bool) -> int:
        position = 0
        while position < len(octets):
            size = 12 + int.from_bytes(octets[position + 8 : position + 12], "big")
            content = octets[position : position + size]
            assert len(content) == size
            columns = decode_batch(content)
            base = int.from_bytes(content[:8], "big")
            end = base + int.from_bytes(content[23:27], "big") + 1
            if base > offset and not compacted and base > one.log_start_offset:
                self.wrong.append(f"{offset} to {base} were left out")
            self.read += [
                (topic_id, at, value) for at, value in zip(columns.offsets, columns.values, strict=True)
            ]
            offset = max(offset, end)
            position += size
        return offset


@pytest.mark.parametrize("seed", range(2))
def test_nothing_is_left_out_mixed_up_or_of_another_topic(monkeypatch, seed):
    monkeypatch.setitem(storage._FILES_FROM, "process", FILES_FROM)
    monkeypatch.setattr(reader, "FILE_BYTES", FILES_FROM)
    opened = StoredBatches.opened
    with TestBroker() as broker:
        world = World(broker, seed)
        world_log = Client(broker).core.log
        world_log._reader._written.limit = 50_000
        with ThreadPoolExecutor(READERS + 3) as pool:
            threads = [pool.submit(world.write, number) for number in range(3)]
            threads += [pool.submit(world.consume, number) for number in range(READERS)]
            deadline = time.monotonic() + SECONDS
            last = deadline + 200  # on a busy machine
            while time.monotonic() < (deadline if len(world.read) > READ else last):
                if any(one.done() for one in threads):
                    break
                time.sleep(0.05)
            world.over.set()
            for one in threads:
                one.result(60)
    assert not world.wrong
    for topic_id, offset, value in world.read:
        assert world.appended[topic_id, offset] == value
    assert len(world.read) > READ
    assert StoredBatches.opened == opened
