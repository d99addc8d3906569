"""Retention as topics are configured."""

from __future__ import annotations

import logging
import time

import kafka.errors as errors
import pytest
from broker.clients import Client, batch, timed
from broker.embedded.cleaning import (
    END,
    LARGE,
    PAST,
    configure,
    create,
    end_of,
    keyed,
    put,
    size_of,
    start_of,
)
from timing import until

from dafka import Broker, Store
from dafka.broker.interface.admin import ConfigChange, ConfigOperation, Resource, ResourceType
from dafka.broker.interface.broker import TopicSpec
from dafka.log.repeating import LINES
from dafka.protocol.batch_writer import encode_batch
from dafka.testing import TestBroker


def test_records_older_than_retention_ms_go_and_younger_ones_stay(client):
    create(client)
    for _ in range(20):
        client.produce("t", LARGE, timestamp=PAST)
    now = int(time.time() * 1000)
    for _ in range(20):
        client.produce("t", LARGE, timestamp=now)
    configure(client, retention_ms=3_600_000)
    assert until(lambda: start_of(client)) == 20
    assert len(client.values("t", 20)) == 20
    assert client.fetch("t", 19).error is errors.OffsetOutOfRangeError


def test_a_topic_whose_records_are_all_too_old_becomes_empty_and_goes_on(client):
    create(client)
    for _ in range(3):
        client.produce("t", b"old", timestamp=PAST)
    configure(client, retention_ms=1000)
    assert until(lambda: start_of(client)) == 3
    assert client.produce("t", b"new", timestamp=int(time.time() * 1000)).base_offset == 3
    assert client.values("t", 3) == [b"new"]


def test_records_without_a_timestamp_go_by_the_time_when_they_came(client):
    create(client)
    client.produce("t", LARGE, timestamp=PAST)
    for _ in range(3):
        client.produce("t", LARGE, timestamp=-1)
    client.produce("t", LARGE, timestamp=PAST)
    configure(client, retention_ms=3_600_000)
    until(lambda: start_of(client) == 1)

    def all_gone() -> bool:
        configure(client, retention_ms=10)  # looks again
        return start_of(client) == 5

    until(all_gone)


def test_records_from_the_end_of_time_stay_until_their_bytes_are_too_many(client):
    create(client, message_timestamp_after_max_ms=2**63 - 1)
    client.produce("t", LARGE, timestamp=PAST)
    assert client.call("produce", {("t", 0): [timed(batch(LARGE), END, END)]})["t", 0].error is None
    for _ in range(20):
        client.produce("t", LARGE, timestamp=PAST)
    configure(client, retention_ms=1000)
    until(lambda: start_of(client) == 1)
    configure(client, retention_bytes=500_000)
    until(lambda: start_of(client) == end_of(client))


@pytest.mark.parametrize("timestamp", [-1, 0, END])
def test_compaction_does_not_mind_the_ends_of_time(client, timestamp):
    create(
        client,
        cleanup_policy="compact",
        min_cleanable_dirty_ratio=0,
        delete_retention_ms=0,
        max_compaction_lag_ms=1,
        message_timestamp_after_max_ms=2**63 - 1,
    )
    batches = [
        [(b"k", b"old" + LARGE), (b"gone", LARGE)],
        [(b"gone", None)],
        [(b"k", b"new" + LARGE)],
        *[[(b"other", LARGE)]] * 3,
    ]
    for records in batches:
        content = encode_batch([(0, key, value, ()) for key, value in records])
        answer = client.call("produce", {("t", 0): [timed(content, timestamp, timestamp)]})
        assert answer["t", 0].error is None

    def compacted() -> bool:
        configure(client, min_cleanable_dirty_ratio=0)  # looks again
        return set(keyed(client)) == {3, 5, 6}  # the last value is not compacted yet

    until(compacted)


def test_each_partition_keeps_retention_bytes(client):
    create(client, partitions=2)
    for _ in range(50):
        client.produce("t", LARGE)
        client.produce("t", LARGE, partition=1)
    client.produce("t", *[LARGE[:100]] * 3, partition=1)
    configure(client, retention_bytes=1_000_000)
    until(lambda: start_of(client) and start_of(client, partition=1))
    sizes = client.call("log_directories")[0].sizes
    assert all(1_000_000 <= size <= 1_110_000 for size in sizes.values())


def test_the_brokers_limits_apply_to_topics_without_limits_of_their_own(tmp_path):
    with Broker(tmp_path) as broker:
        client = Client(broker)
        for topic, configs in (("t", {}), ("kept", {"retention.bytes": "-1"})):
            client.call("create_topics", {topic: TopicSpec(1, configs)})
            for _ in range(30):
                client.produce(topic, LARGE)
    with Broker(tmp_path, retention_bytes=1_000_000) as broker:
        client = Client(broker)
        assert 18 <= until(lambda: start_of(client)) <= 20
        assert start_of(client, "kept") == 0
        resource = Resource(ResourceType.BROKER, "")
        changes = [ConfigChange("log.retention.ms", ConfigOperation.SET, "1000")]
        assert client.call("alter_configs", {resource: changes})[resource].error is None
        until(lambda: start_of(client) == 30 == start_of(client, "kept"))


def test_old_records_are_deleted_at_the_next_check():
    with TestBroker(retention_ms=600_000, retention_check_interval=0.05) as broker:
        client = Client(broker)
        create(client)
        client.produce("t", b"x", timestamp=int(broker.clock.time() * 1000))
        broker.clock.advance(minutes=5)
        assert client.values("t") == [b"x"]
        broker.clock.advance(minutes=5)
        until(lambda: start_of(client) == 1)


def test_compaction_and_retention_tell_of_all_partitions_in_one_line(client, caplog):
    caplog.set_level(logging.INFO, "dafka")
    topics = [f"t{number}" for number in range(30)]
    for topic in topics:
        create(client, topic, cleanup_policy="compact,delete", min_cleanable_dirty_ratio=0)
        for _ in range(3):
            put(client, (b"k", LARGE), topic=topic)
    for number, topic in enumerate(topics):
        configure(client, topic, min_cleanable_dirty_ratio=0.01 * (number + 1))  # looks at all of them again
    until(lambda: all(list(keyed(client, topic)) == [1, 2] for topic in topics))
    until(lambda: "compaction removed" in caplog.text)
    assert caplog.text.count("compaction removed") <= LINES
    configure(client, topics[0], retention_bytes=1)
    until(lambda: "retention removed 2 messages from 1 partitions" in caplog.text)


def test_a_compacted_topic_is_not_deleted_from(client):
    create(client, cleanup_policy="compact", retention_ms=1)
    create(client, "deleted", retention_ms=1)
    for topic in ("t", "deleted"):
        put(client, (b"k", b"v"), topic=topic)
    configure(client, "deleted", retention_ms=2)  # both are looked at in one pass
    until(lambda: start_of(client, "deleted") == 1)
    assert start_of(client) == 0


def test_trimmed_space_goes_back_to_the_file_system(tmp_path):
    with Broker(tmp_path) as broker:
        client = Client(broker)
        create(client)
        for _ in range(200):
            client.produce("t", LARGE)
        full = size_of(tmp_path)
        assert full > 15_000_000
        configure(client, retention_bytes=1_000_000)
        until(lambda: start_of(client) > 150)
        until(lambda: client.core.log.space.garbage_bytes == 0 == client.core.log.space.spare_bytes)
    with Broker(tmp_path) as broker:
        assert len(Client(broker).values("t", 195)) == 5
    assert size_of(tmp_path) < full / 3


@pytest.mark.parametrize(
    ("option", "value", "says"),
    [
        ("retention_ms", "1 week", "retention_ms is a whole number"),
        ("retention_ms", -2, "retention_ms"),
        ("retention_bytes", 1.5, "retention_bytes"),
        ("retention_bytes", 2**63, "retention_bytes"),
        ("retention_bytes", True, "retention_bytes"),
        ("retention_check_interval", 0, "retention_check_interval"),
        ("retention_check_interval", float("nan"), "retention_check_interval"),
        ("durability", "maybe", "durability is 'process' or 'power', not 'maybe'"),
        ("on_damage", "ignore", "on_damage is 'raise' or 'skip', not 'ignore'"),
    ],
)
def test_absurd_settings_are_refused_by_name(tmp_path, option, value, says):
    for kind in (Broker, Store):
        with pytest.raises(ValueError, match=says):
            kind(tmp_path / "data", **{option: value})
    assert not (tmp_path / "data").exists()
