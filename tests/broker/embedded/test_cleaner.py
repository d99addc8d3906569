"""Retention, compaction and deletion as topics are configured, and how readers see it."""

from __future__ import annotations

import logging
import time
from itertools import islice
from pathlib import Path

import kafka.errors as errors
import pytest
from broker.clients import Client, batch, timed, until

from compat.kafka import KafkaConsumer, KafkaProducer, TopicPartition
from dafka import Broker, Consumer, Producer, Store
from dafka.broker.interface.admin import ConfigChange, ConfigOperation, Resource, ResourceType
from dafka.broker.interface.broker import EARLIEST, LATEST, TopicSpec
from dafka.log import Log
from dafka.log.repeating import LINES
from dafka.protocol.batch import read_header
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


# -- retention ----------------------------------------------------------------------------------


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


def test_the_brokers_bounds_count_for_topics_that_have_none_of_their_own(tmp_path):
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


def test_records_go_at_the_next_check_without_anybody_asking():
    with Broker(retention_ms=300, retention_check_interval=0.05) as broker:
        client = Client(broker)
        create(client)
        client.produce("t", b"x", timestamp=int(time.time() * 1000))
        assert client.values("t") == [b"x"]
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


# -- readers over what is gone ------------------------------------------------------------------


def test_a_facade_consumer_below_the_beginning_follows_its_reset_policy(broker, client):
    create(client)
    for number in range(10):
        client.produce("t", b"%d" % number)
    client.call("delete_records", {("t", 0): 7})
    servers = broker.bootstrap_servers
    partition = TopicPartition("t", 0)
    with KafkaConsumer(bootstrap_servers=servers, auto_offset_reset="earliest") as consumer:
        consumer.assign([partition])
        consumer.seek(partition, 2)
        polled = until(lambda: consumer.poll(1000))
        assert [record.offset for record in polled[partition]] == [7, 8, 9]
    with KafkaConsumer(bootstrap_servers=servers, auto_offset_reset="none") as consumer:
        consumer.assign([partition])
        consumer.seek(partition, 2)
        with pytest.raises(errors.OffsetOutOfRangeError):
            until(lambda: consumer.poll(1000))


def test_a_facade_consumer_in_the_middle_goes_on_where_records_begin(broker, client):
    create(client)
    for number in range(10):
        client.produce("t", b"%d" % number)
    partition = TopicPartition("t", 0)
    consumer = KafkaConsumer(
        "t", group_id="g", bootstrap_servers=broker.bootstrap_servers, auto_offset_reset="earliest",
        max_poll_records=3,
    )  # fmt: skip
    with consumer:
        assert [record.offset for record in until(lambda: consumer.poll(1000))[partition]] == [0, 1, 2]
        consumer.commit()
        client.call("delete_records", {("t", 0): 8})
        seen: list[int] = []
        until(
            lambda: (
                seen.extend(record.offset for record in consumer.poll(1000).get(partition, []))
                or (seen and seen[-1] == 9)
            )
        )
    assert seen == list(range(3, 10)) or seen == [8, 9]  # what was fetched before the deletion may come


def test_a_native_consumer_begins_at_the_first_record_there_is(broker, client):
    create(client)
    for _ in range(40):
        client.produce("t", LARGE)
    configure(client, retention_bytes=1_000_000)
    start = until(lambda: start_of(client))
    with Consumer(["t"], tower=broker.tower, offset_reset="earliest") as consumer:
        offsets = [record.offset for record in take(consumer, 40 - start)]
        assert offsets == list(range(start, 40))
        client.produce("t", b"more")
        assert take(consumer, 1)[0].value == b"more"


def test_a_native_consumer_that_was_behind_is_told_and_reports_the_gap(broker, client):
    create(client)
    for _ in range(40):
        client.produce("t", LARGE)
    address = client.partitions("t")[0][0]
    client.call("delete_records", {("t", 0): 30})
    with Consumer(["t"], tower=broker.tower, start={address: 5}) as consumer:
        assert [record.offset for record in take(consumer, 10)] == list(range(30, 40))
        assert [(gap.first, gap.next) for gap in consumer.gaps] == [(5, 30)]


def take(consumer: Consumer, count: int) -> list:
    records: list = []
    deadline = time.monotonic() + 30
    while len(records) < count and time.monotonic() < deadline:
        records += consumer.poll(timeout=1.0)
    return records


# -- compaction ---------------------------------------------------------------------------------


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
        bootstrap_servers=broker.bootstrap_servers, auto_offset_reset="earliest", consumer_timeout_ms=10_000
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


# -- deleted topics -----------------------------------------------------------------------------


def test_the_records_of_a_deleted_topic_leave_the_disk(tmp_path):
    with Broker(tmp_path) as broker:
        client = Client(broker)
        create(client, partitions=3)
        create(client, "kept")
        client.produce("kept", b"x")
        for number in range(150):
            client.produce("t", LARGE, partition=number % 3)
        full = size_of(tmp_path)
        assert client.change("delete_topics", ["t"]) == {"t": None}
        create(client)
        assert start_of(client) == end_of(client) == 0
        log = client.core.log
        until(lambda: {partition.topic for partition in log.partitions()} == {b"kept"})
        until(lambda: log.space.garbage_bytes == 0 == log.space.spare_bytes)
    with Broker(tmp_path) as broker:
        client = Client(broker)
        assert client.values("kept") == [b"x"]
        assert client.produce("t", b"anew").base_offset == 0
    assert size_of(tmp_path) < full / 3


def test_a_deletion_that_was_interrupted_is_finished_at_the_next_start(tmp_path, monkeypatch):
    with Broker(tmp_path) as broker:
        client = Client(broker)
        create(client)
        client.produce("t", LARGE)
        monkeypatch.setattr(client.core._log_cleaner, "deleted", lambda partitions: None)  # as if killed here
        client.call("delete_topics", ["t"])
        assert [partition.topic for partition in client.core.log.partitions()] == [b"t"]
    with Broker(tmp_path) as broker:
        log = Client(broker).core.log
        until(lambda: not log.partitions())


def test_a_native_partition_of_a_deleted_topic_loses_its_records_and_goes_on(broker, client):
    with Producer("t", tower=broker.tower) as producer:
        for _ in range(30):
            producer.send(LARGE)
        producer.flush(10)
        until(lambda: len(client.call("metadata", ["t"]).topics["t"].partitions) == 2)
        client.call("delete_topics", ["t"])
        (stored,) = [one for one in client.core.log.partitions() if one.topic == b"t"]
        until(lambda: stored.first_offset == 30)
        producer.send(b"more")
        producer.flush(10)
        number = until(
            lambda: [one.number for one in client.call("metadata", ["t"]).topics["t"].partitions][1:]
        )
        assert client.values("t", 30, partition=number[0]) == [b"more"]
        assert start_of(client, partition=number[0]) == 30


def test_records_of_a_deleted_topic_that_another_store_kept_do_not_come_back(tmp_path):
    with Broker(tmp_path / "broker") as broker:
        client = Client(broker)
        with Store(tmp_path / "store", tower=broker.tower) as store:
            create(client)
            client.produce("t", LARGE)
            until(lambda: store.heads())
            client.call("delete_topics", ["t"])
            log = client.core.log
            until(lambda: not log.partitions())
            with Store(tmp_path / "other", tower=broker.tower) as other:
                until(lambda: other.heads())  # stores tell each other what they have
                assert not log.partitions()


def test_groups_keep_their_offsets_over_trimming(broker, client):
    create(client)
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap_servers)
    for _ in range(10):
        producer.send("t", b"x")
    producer.close()
    partition = TopicPartition("t", 0)
    options = {"group_id": "g", "bootstrap_servers": broker.bootstrap_servers}
    with KafkaConsumer("t", auto_offset_reset="earliest", **options) as consumer:
        seen = 0
        while seen < 10:
            seen += sum(map(len, consumer.poll(1000).values()))
        consumer.commit()
    client.call("delete_records", {("t", 0): -1})
    with KafkaConsumer("t", **options) as consumer:
        assert consumer.committed(partition) == 10
        client.produce("t", b"next")
        polled = until(lambda: consumer.poll(1000))
        assert [record.offset for record in polled[partition]] == [10]


def size_of(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
