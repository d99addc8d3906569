"""Fast ways of fetching have the answers of the slow one: requests sent again, and batches sent from files.

Each request is sent often by one connection, and once by a new one; a third reads the octets in the broker.
"""

from __future__ import annotations

import random
from typing import Any

import pytest
from broker.clients import Client, batch
from broker.server.client import WireClient
from broker.server.samples import fetch
from log.messages import EVERYTHING

from dafka.broker.interface.broker import FetchFrom
from dafka.broker.interface.topics import TopicSpec
from dafka.broker.interface.transactions import Writes
from dafka.log import StoredBatches, reader, storage
from dafka.testing import TestBroker

TOPICS = ("a", "b")
PARTITIONS = 2
VERSION = 12
BY_ID = 13
FILES_FROM = 2000
STEPS = 60


class World:
    """A broker to which something is done at random, and the connections that repeat their requests."""

    def __init__(self, broker: TestBroker, chance: random.Random) -> None:
        self.broker = broker
        self.chance = chance
        self.client = Client(broker)
        self.client.core.log._reader._written.limit = chance.choice((0, 3000, 2**23))
        self.repeating: list[tuple[WireClient, Any, int]] = []
        self.open: dict[str, tuple[int, int]] = {}  # transactions
        self.steps = (
            self.produce,
            self.produce,
            self.produce_large,
            self.create,
            self.delete,
            self.delete_records,
            self.write_in_transaction,
            self.end_transaction,
        )

    def step(self) -> None:
        self.chance.choice(self.steps)()

    def partition(self) -> tuple[str, int]:
        return self.chance.choice(TOPICS), self.chance.randrange(PARTITIONS)

    def produce(self) -> None:
        self.client.call("produce", {self.partition(): [self.batch(50)]})

    def produce_large(self) -> None:
        batches = [self.batch(self.chance.choice((10, 900))) for _ in range(self.chance.randrange(1, 6))]
        self.client.call("produce", {self.partition(): batches})

    def batch(self, size: int, **more: Any) -> bytes:
        return batch(*(self.chance.randbytes(size) for _ in range(self.chance.randrange(1, 4))), **more)

    def create(self) -> None:
        self.client.change("create_topics", {self.chance.choice(TOPICS): TopicSpec(PARTITIONS)})

    def delete(self) -> None:
        if self.chance.random() < 0.3:
            self.client.change("delete_topics", [self.chance.choice(TOPICS)])

    def delete_records(self) -> None:
        place = self.partition()
        end = self.client.call("list_offsets", {place: -1})[place].offset
        if end and end > 0:
            self.client.call("delete_records", {place: self.chance.randrange(end + 1)})

    def write_in_transaction(self) -> None:
        name = self.chance.choice(("t", "u"))
        place = self.partition()
        if name not in self.open:
            given = self.client.call("init_producer_id", name, 60.0)
            if given.error is not None:
                return
            self.open[name] = given.producer_id, given.epoch
        producer_id, epoch = self.open[name]
        content = batch(
            self.chance.randbytes(800),
            producer_id=producer_id,
            producer_epoch=epoch,
            base_sequence=0,
        )
        self.client.call("produce", {place: [content]}, transactional_id=name, writes=Writes.ADDING)

    def end_transaction(self) -> None:
        if self.open:
            name = self.chance.choice(sorted(self.open))
            who = self.open.pop(name)
            self.client.call("end_transaction", name, *who, self.chance.random() < 0.5)

    # -- reading

    def look(self) -> None:
        """Each request that is repeated is answered as if it had never been asked."""
        for wire, request, version in self.repeating:
            with WireClient(self.broker) as fresh:
                expected = fresh.ask(request, version).to_dict()
            for _ in range(self.chance.choice((1, 1, 3))):
                assert wire.ask(request, version).to_dict() == expected

    def begin(self) -> None:
        """A connection begins with another request."""
        request, version = self.request()
        if len(self.repeating) > 3:
            old = self.repeating.pop(self.chance.randrange(len(self.repeating)))[0]
            self.repeating.append((old, request, version))
        else:
            self.repeating.append((WireClient(self.broker), request, version))

    def request(self) -> tuple[Any, int]:
        topic = self.chance.choice(TOPICS)
        found = self.client.call("metadata", [topic]).topics.get(topic)
        offsets = []
        for number in range(PARTITIONS):
            end = self.client.call("list_offsets", {(topic, number): -1})[topic, number].offset
            end = max(end or 0, 0)
            offsets.append(self.chance.choice((0, end, end, end, end + 1, self.chance.randrange(end + 1))))
        more = {
            "isolation_level": self.chance.randrange(2),
            "max_bytes": self.chance.choice((1, 3000, 10**6)),
        }
        if self.chance.random() < 0.5 and found is not None and found.error is None:
            return fetch("", *offsets, topic_id=found.topic_id, wait=1, **more), BY_ID
        return fetch(topic, *offsets, wait=1, **more), VERSION

    def compare_with_memory(self) -> None:
        """What comes from files is what is read in the broker."""
        for place in [(topic, number) for topic in TOPICS for number in range(PARTITIONS)]:
            start = self.client.call("list_offsets", {place: -2})[place].offset
            if start is None or start < 0:
                continue
            options = {"max_wait": 0.0, "min_bytes": 1, "max_bytes": EVERYTHING}
            found = self.client.call("fetch", {place: FetchFrom(start, EVERYTHING)}, **options)[place]
            with WireClient(self.broker) as wire:
                asked = fetch(place[0], 0, wait=1)
                (one,) = asked.topics[0].partitions
                one.partition, one.fetch_offset = place[1], start
                (answer,) = wire.ask(asked, VERSION).responses[0].partitions
            assert bytes(answer.records or b"") == b"".join(found.batches)

    def close(self) -> None:
        for wire, _, _ in self.repeating:
            wire.socket.close()


@pytest.mark.parametrize("seed", range(6))
def test_repeated_and_sent_from_files_fetches_have_the_answers_of_others(monkeypatch, seed):
    monkeypatch.setitem(storage._FILES_FROM, "process", FILES_FROM)
    monkeypatch.setattr(reader, "FILE_BYTES", FILES_FROM)
    opened = StoredBatches.opened
    with TestBroker() as broker:
        world = World(broker, random.Random(seed))
        try:
            for _ in range(STEPS):
                world.step()
                if world.chance.random() < 0.3:
                    world.begin()
                world.look()
            world.compare_with_memory()
        finally:
            world.close()
    assert StoredBatches.opened == opened
