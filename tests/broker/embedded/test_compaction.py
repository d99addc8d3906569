"""Compaction as topics are configured, and how readers see it."""

from __future__ import annotations

import time
from itertools import islice

from broker.embedded.cleaning import (
    LARGE,
    PAST,
    configure,
    create,
    end_of,
    keyed,
    put,
    start_of,
    take,
)
from timing import until

from compat.kafka import KafkaConsumer, TopicPartition
from dafka import Consumer, Store
from dafka.log import Log
from dafka.protocol.batch import read_header
from dafka.protocol.batch_reader import decode_batch


def test_a_compacted_topic_keeps_the_newest_record_of_each_key_at_its_offset(broker, client):
    create(client, cleanup_policy="compact", min_cleanable_dirty_ratio=0)
    for number in range(60):
        put(client, *[(b"%d" % key, b"%d %d " % (key, number) + LARGE[:3000]) for key in range(10)])
    put(client, (b"last", LARGE))
    configure(client, min_cleanable_dirty_ratio=0.01)
    until(lambda: len(keyed(client)) < 100)
    found = keyed(client)
    for key in range(10):
        offset, value = [(at, value) for at, (name, value) in found.items() if name == b"%d" % key][-1]
        assert offset == 590 + key
        assert value.startswith(b"%d 59 " % key)
    assert end_of(client) == 601
    with KafkaConsumer(
        "t", bootstrap_servers=broker.bootstrap_servers, auto_offset_reset="earliest"
    ) as consumer:
        offsets: list[int] = []
        until(
            lambda: (
                offsets.extend(record.offset for records in consumer.poll(500).values() for record in records)
                or (offsets and offsets[-1] == 600)
            )
        )
        assert offsets == sorted(found)
        consumer.seek(TopicPartition("t", 0), 5)  # a gap: the first record behind it comes
        polled = until(lambda: consumer.poll(1000))
        assert polled[TopicPartition("t", 0)][0].offset == min(at for at in found if at >= 5)
    with Consumer(["t"], tower=broker.tower, offset_reset="earliest") as native:
        assert [record.offset for record in take(native, len(found))] == sorted(found)


def test_batches_that_compaction_has_emptied_are_not_served_one_by_one(client):
    create(client, cleanup_policy="compact", min_cleanable_dirty_ratio=0)
    put(client, (b"old", b"1"))
    for number in range(50):
        put(client, (b"key", b"%d" % number))
    put(client, (b"tail", LARGE))
    configure(client, min_cleanable_dirty_ratio=0.001)  # which makes it look at once
    until(lambda: len(keyed(client)) == 3)
    bounds = [
        (header.base_offset, header.count)
        for header in map(read_header, client.fetch("t", max_bytes=10**7).batches)
    ]
    assert bounds == [(0, 1), (50, 1), (51, 1)]
    (header,) = map(read_header, client.fetch("t", 1, max_bytes=300).batches)
    assert (header.count, header.base_offset) == (0, 4)
    assert client.values("t", 5) == [b"49", LARGE]


def test_every_reader_passes_over_a_gap_that_compaction_leaves(broker, client, tmp_path, monkeypatch):
    monkeypatch.setattr("dafka.log.compaction.COMPACTION_GAP", 20)
    create(client, cleanup_policy="compact", min_cleanable_dirty_ratio=0)
    put(client, (b"old", b"1"))
    for number in range(50):
        put(client, (b"key", b"%d" % number))
    put(client, (b"other", b"2"))
    put(client, (b"tail", LARGE))
    (stored,) = client.core.log.partitions()
    configure(client, min_cleanable_dirty_ratio=0.001)
    until(lambda: stored.index.at_offset(10) != stored.index.at_offset(1))
    values = [b"1", b"49", b"2", LARGE]
    with KafkaConsumer(
        bootstrap_servers=broker.bootstrap_servers, auto_offset_reset="earliest", consumer_timeout_ms=100_000
    ) as consumer:
        consumer.assign([TopicPartition("t", 0)])
        assert [record.value for record in islice(consumer, 4)] == values
        consumer.seek(TopicPartition("t", 0), 25)
        assert [record.value for record in islice(consumer, 3)] == values[1:]
    with Consumer(["t"], tower=broker.tower, offset_reset="earliest") as native:
        assert [record.value for record in take(native, 4)] == values
    with Store(tmp_path / "store", tower=broker.tower) as store:
        until(lambda: list(store.heads().values()) == [stored.next_sequence - 1])
    with Log(tmp_path / "store") as log:
        (copy,) = log.partitions()
        found = log.read_offsets(copy, 0, max_bytes=10**7)
        assert [value for _, _, content in found for value in decode_batch(content).values] == values
        assert len(found) < 10


def test_records_younger_than_the_lag_are_not_compacted(client):
    now = int(time.time() * 1000)
    create(client, cleanup_policy="compact", min_cleanable_dirty_ratio=0, min_compaction_lag_ms=3_600_000)
    for number in range(30):
        put(client, (b"k", b"%d" % number + LARGE), timestamp=PAST)
    for number in range(30):
        put(client, (b"k", b"%d" % number + LARGE), timestamp=now)
    configure(client, min_cleanable_dirty_ratio=0.01)
    until(lambda: len(keyed(client)) <= 31)
    assert [at for at in keyed(client) if at >= 30] == list(range(30, 60))


def test_tombstones_go_after_delete_retention(client):
    create(client, cleanup_policy="compact", min_cleanable_dirty_ratio=0, delete_retention_ms=0)
    put(client, (b"gone", LARGE), (b"kept", LARGE))
    put(client, (b"gone", None))
    for _ in range(5):
        put(client, (b"other", LARGE))
    configure(client, delete_retention_ms=1)

    def nothing_of_it() -> bool:
        configure(client, delete_retention_ms=1)  # looks again
        return b"gone" not in {name for name, _ in keyed(client).values()}

    until(nothing_of_it)
    assert b"kept" in {name for name, _ in keyed(client).values()}


def test_compact_and_delete_do_both(client):
    now = int(time.time() * 1000)
    create(client, cleanup_policy="compact,delete", min_cleanable_dirty_ratio=0)
    for number in range(20):
        put(client, (b"old %d" % number, LARGE), timestamp=PAST)
    for number in range(20):
        put(client, (b"new", b"%d" % number + LARGE), timestamp=now)
    configure(client, retention_ms=3_600_000)
    until(lambda: start_of(client) == 20)
    until(lambda: len(keyed(client)) <= 3)
