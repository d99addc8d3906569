"""What a topic's configuration says about batches that are produced to it."""

from __future__ import annotations

import random
import threading
import time
from typing import Any

import gevent
import kafka.errors as errors
import pytest
from broker.clients import Client, batch, timed
from crc32c import crc32c

from compat.kafka import KafkaConsumer, KafkaProducer
from dafka import Broker
from dafka.broker.interface.broker import Produced, TopicSpec
from dafka.hub.hub import is_hub_here
from dafka.protocol.batch import (
    check_batch,
)
from dafka.protocol.batch_reader import decode_batch
from dafka.protocol.batch_records import examine
from dafka.protocol.batch_writer import encode_batch
from dafka.protocol.compression import is_available

needs_zstd = pytest.mark.skipif(not is_available("zstd"), reason="zstd is not installed")


def create(client: Client, topic: str = "t", **configs: object) -> None:
    named = {name.replace("_", "."): str(value) for name, value in configs.items()}
    assert client.change("create_topics", {topic: TopicSpec(1, named)}) == {topic: None}


def produce(client: Client, *contents: bytes, acks: int = -1) -> Produced:
    return client.call("produce", {("t", 0): list(contents)}, acks)["t", 0]


# -- size and replicas --------------------------------------------------------------------------


def test_max_message_bytes_is_the_topics(client):
    create(client, max_message_bytes=1000)
    outcome = produce(client, batch(bytes(2000)))
    assert outcome.error is errors.MessageSizeTooLargeError
    assert "max.message.bytes is 1000" in outcome.detail
    assert produce(client, batch(bytes(500))).error is None
    create(client, "wide", max_message_bytes=5_000_000)
    answers = client.call("produce", {("wide", 0): [batch(bytes(3_000_000))]})
    assert answers["wide", 0].error is None
    assert [len(value) for value in client.values("wide")] == [3_000_000]


def test_a_share_with_one_batch_that_is_too_large_is_refused_as_a_whole(client):
    create(client, max_message_bytes=1000)
    assert produce(client, batch(b"a"), batch(bytes(2000))).error is errors.MessageSizeTooLargeError
    assert client.values("t") == []


def test_no_more_replicas_are_waited_for_than_there_can_be(client):
    """As in Kafka, which takes the number of replicas of a partition where more have to be in sync."""
    create(client, min_insync_replicas=2)
    assert produce(client, batch(b"a")).error is None
    assert client.values("t") == [b"a"]


# -- keys ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", ["compact", "compact,delete"])
def test_a_compacted_topic_takes_no_records_without_a_key(client, policy):
    create(client, cleanup_policy=policy)
    for compression in (None, "gzip"):
        records = [(1, b"k", bytes(1000), ()), (1, None, bytes(1000), ())]
        mixed = encode_batch(records, compression=compression)
        assert check_batch(mixed).compression == compression
        outcome = produce(client, mixed)
        assert outcome.error is errors.InvalidRecordError
        assert "without a key" in outcome.detail
        assert [one.batch_index for one in outcome.record_errors] == [1]
    assert produce(client, encode_batch([(1, b"k", b"c", ()), (1, b"", None, ())])).error is None
    assert client.values("t") == [b"c", None]


def test_a_topic_that_is_not_compacted_takes_records_without_a_key(client):
    create(client, cleanup_policy="delete")
    assert produce(client, batch(b"a")).error is None


# -- timestamps ---------------------------------------------------------------------------------


def test_with_log_append_time_all_records_have_the_brokers_time(broker, client):
    create(client, message_timestamp_type="LogAppendTime")
    before = int(time.time() * 1000)
    outcome = produce(client, batch(b"a", b"b", timestamp=5, compression="gzip"))
    after = int(time.time() * 1000)
    assert before <= outcome.timestamp <= after
    header = check_batch(client.fetch("t").batches[0])  # the checksum is right
    assert (header.timestamp_type, header.max_timestamp) == (1, outcome.timestamp)
    with KafkaConsumer(
        "t", bootstrap_servers=broker.bootstrap_servers, auto_offset_reset="earliest"
    ) as consumer:
        records = [next(consumer) for _ in range(2)]
    assert {(record.timestamp, record.timestamp_type) for record in records} == {(outcome.timestamp, 1)}
    assert [record.value for record in records] == [b"a", b"b"]
    assert client.call("list_offsets", {("t", 0): before})["t", 0].offset == 0


def test_the_producer_is_told_the_time_of_appending(broker, client):
    create(client, message_timestamp_type="LogAppendTime")
    before = int(time.time() * 1000)
    with KafkaProducer(bootstrap_servers=broker.bootstrap_servers) as producer:
        sent = producer.send("t", b"x", timestamp_ms=5).get(100)
    assert before <= sent.timestamp <= int(time.time() * 1000)


def test_records_from_the_future_or_too_far_back_are_refused(client):
    create(client, message_timestamp_before_max_ms=60_000, message_timestamp_after_max_ms=60_000)
    now = int(time.time() * 1000)
    assert produce(client, batch(b"now", timestamp=now)).error is None
    for timestamp, says in (
        (now + 120_000, "after.max.ms is 60000"),
        (now - 120_000, "before.max.ms is 60000"),
    ):
        mixed = encode_batch([(now, None, b"", ()), (timestamp, None, b"", ())], compression="gzip")
        outcome = produce(client, mixed)
        assert outcome.error is errors.InvalidTimestampError
        assert says in outcome.detail
    assert client.values("t") == [b"now"]


def test_by_default_the_future_ends_after_an_hour_and_the_past_is_open(client):
    create(client)
    now = int(time.time() * 1000)
    assert produce(client, batch(b"a", timestamp=now + 4_000_000)).error is errors.InvalidTimestampError
    assert produce(client, batch(b"a", timestamp=now + 3_000_000)).error is None
    assert produce(client, batch(b"a", timestamp=1)).error is None


def says_log_append_time(timestamp: int, *values: bytes, compression: str | None = None) -> bytes:
    records = [(timestamp, b"key", value, ()) for value in values]
    return encode_batch(records, compression=compression, timestamp_type=1)


@pytest.mark.parametrize("compression", [None, "gzip"])
def test_with_log_append_time_batches_that_producers_flag_so_are_refused(client, compression):
    create(client, message_timestamp_type="LogAppendTime")
    outcome = produce(client, says_log_append_time(5, b"x", b"y" * 1000, compression=compression))
    assert outcome.error is errors.InvalidTimestampError
    assert "LogAppendTime" in outcome.detail
    assert [one.batch_index for one in outcome.record_errors] == [0, 1]
    assert client.values("t") == []


@pytest.mark.parametrize("policy", ["delete", "compact"])
@pytest.mark.parametrize("compression", [None, "gzip"])
def test_with_create_time_timestamps_are_the_producers_whatever_their_flag_says(client, compression, policy):
    create(client, cleanup_policy=policy)
    content = says_log_append_time(5, b"x", b"y" * 1000, compression=compression)
    assert produce(client, content).error is None
    (stored,) = client.fetch("t").batches
    header = check_batch(stored)  # the checksum is right
    assert (header.timestamp_type, header.max_timestamp, header.compression) == (0, 5, compression)
    assert decode_batch(stored).timestamps == [5, 5]


def test_a_time_of_appending_that_is_out_of_range_or_missing_is_refused(client):
    create(client, message_timestamp_before_max_ms=60_000, message_timestamp_after_max_ms=60_000)
    now = int(time.time() * 1000)
    for timestamp in (now - 120_000, now + 120_000, -1):
        outcome = produce(client, says_log_append_time(timestamp, b"x", b"y"))
        assert outcome.error is errors.InvalidTimestampError
        assert [one.batch_index for one in outcome.record_errors] == [0, 1]
    assert produce(client, says_log_append_time(now, b"x")).error is None


def test_a_batch_without_timestamps_keeps_none_and_its_largest_is_when_it_came(broker, client):
    create(client)
    before = int(time.time() * 1000)
    plain = batch(b"a", timestamp=-1)
    assert produce(client, batch(b"first", timestamp=0), plain).error is None
    first, content = map(check_batch, client.fetch("t").batches)  # the checksums are right
    assert (first.base_timestamp, first.max_timestamp) == (0, 0)
    assert content.base_timestamp == -1
    assert before <= content.max_timestamp <= int(time.time() * 1000)
    bootstrap = broker.bootstrap_servers
    with KafkaConsumer("t", bootstrap_servers=bootstrap, auto_offset_reset="earliest") as consumer:
        assert [next(consumer).timestamp for _ in range(2)] == [0, -1]
    assert client.call("list_offsets", {("t", 0): 1})["t", 0].offset == -1


def test_a_header_that_contradicts_itself_is_put_right(client):
    create(client)
    now = int(time.time() * 1000)
    content = encode_batch([(now - 10, None, b"a", ()), (now, None, b"b", ())])
    for position, largest in enumerate((5, -1, now - 1, now + 1, now + 10_000_000, 2**63 - 1)):
        for codec in (None, "gzip"):
            wrong = encode_batch([(now - 10, None, b"a", ()), (now, None, b"b", ())], compression=codec)
            outcome = produce(client, timed(wrong, now - 10, largest))
            assert outcome.error is None
            (stored,) = client.fetch("t", outcome.base_offset).batches
            assert check_batch(stored).max_timestamp == now, position
    assert client.call("list_offsets", {("t", 0): now})["t", 0].offset == 1
    outcome = produce(client, timed(content, now + 10_000_000, 5))
    assert outcome.error is errors.InvalidTimestampError


@pytest.mark.parametrize("timestamp", [0, 2**63 - 1])
def test_the_ends_of_time_are_taken_where_they_are_allowed_and_found(client, timestamp):
    create(client, message_timestamp_after_max_ms=2**63 - 1)
    assert produce(client, timed(batch(b"a"), timestamp, timestamp)).error is None
    assert produce(client, batch(b"b", timestamp=5)).error is None
    listed = client.call("list_offsets", {("t", 0): timestamp})["t", 0]
    assert (listed.error, listed.offset, listed.timestamp) == (None, 0, timestamp)
    latest = client.call("list_offsets", {("t", 0): -3})["t", 0]
    assert latest.timestamp == max(timestamp, 5)
    assert client.call("list_offsets", {("t", 0): 2**63})["t", 0].offset == -1


def test_a_time_that_no_answer_can_hold_is_the_last_one_that_it_can(client):
    create(client, message_timestamp_after_max_ms=2**63 - 1)
    content = timed(encode_batch([(0, None, b"a", ()), (100, None, b"b", ())]), 2**63 - 50, 2**63 - 1)
    assert produce(client, content).error is errors.InvalidTimestampError
    assert client.call("produce", {("t", 0): [content]}, trusted=True)["t", 0].error is None
    for wanted in (2**63 - 1, -3):
        listed = client.call("list_offsets", {("t", 0): wanted})["t", 0]
        assert (listed.error, listed.offset, listed.timestamp) == (None, 1, 2**63 - 1)


# -- compression --------------------------------------------------------------------------------


@pytest.mark.parametrize("wanted", ["gzip", "snappy", "lz4", "zstd", "uncompressed"])
@pytest.mark.parametrize("sent", [None, "gzip", "lz4"])
def test_batches_are_stored_with_the_topics_compression(client, wanted, sent):
    create(client, compression_type=wanted)
    values = [b"some text " * 100] * 50
    content = batch(*values, compression=sent, producer_id=7, producer_epoch=0, base_sequence=0)
    assert produce(client, content).error is None
    (stored,) = client.fetch("t").batches
    header = check_batch(stored)
    assert header.compression == (None if wanted == "uncompressed" else wanted)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (7, 0, 0)
    assert decode_batch(stored).values == values


def test_a_small_batch_does_not_overtake_a_large_one_that_is_being_compressed(client):
    create(client, compression_type="gzip")
    noise = random.Random(1)
    large = batch(noise.randbytes(900_000))

    def produce_all() -> list[int]:
        contents = [large, batch(b"1"), large, batch(b"3")]
        greens = [
            gevent.spawn(
                lambda content=content: client.core.produce({("t", 0): [content]})["t", 0].base_offset
            )
            for content in contents
        ]
        gevent.joinall(greens, raise_error=True)
        return [green.value for green in greens]

    assert client.connection.hub.run(produce_all) == [0, 1, 2, 3]


def test_a_batch_that_cannot_be_unpacked_is_refused(client):
    create(client, compression_type="gzip")
    content = bytearray(batch(b"some text " * 100, compression="lz4"))
    content[70:] = bytes(len(content) - 70)
    content[17:21] = crc32c(bytes(content[21:])).to_bytes(4, "big")
    outcome = produce(client, bytes(content))
    assert outcome.error is errors.InvalidRecordError
    assert outcome.detail
    assert client.values("t") == []


def test_walking_through_a_large_batch_lets_other_partitions_pass(client, monkeypatch):
    client.call("create_topics", {"t": TopicSpec(2, {"cleanup.policy": "compact"})})
    walking, go_on = threading.Event(), threading.Event()
    noise = random.Random(1)

    def slow(*args: Any) -> Any:
        if not is_hub_here():
            walking.set()
            assert go_on.wait(100)
        return examine(*args)

    monkeypatch.setattr("dafka.broker.records.admission.examine", slow)
    order: list[str] = []

    def produce_all() -> None:
        def one(name: str, number: int, size: int) -> None:
            value = noise.randbytes(size) + bytes(size)
            content = encode_batch([(1, b"k", value, ())], compression="gzip")
            assert client.core.produce({("t", number): [content]})["t", number].error is None
            order.append(name)

        greens = [gevent.spawn(one, "large", 0, 50_000)]
        while not walking.is_set():
            gevent.sleep(0.001)
        greens += [gevent.spawn(one, "behind it", 0, 10), gevent.spawn(one, "elsewhere", 1, 10)]
        greens[2].join(100)
        go_on.set()
        gevent.joinall(greens, raise_error=True)

    client.connection.hub.run(produce_all)
    assert order == ["elsewhere", "large", "behind it"]


def test_a_codec_that_is_not_there_any_more_is_named_and_batches_stay_as_they_come(
    tmp_path, monkeypatch, caplog
):
    with Broker(tmp_path) as broker:
        create(Client(broker), compression_type="zstd")
    monkeypatch.setattr("kafka.codec.zstd", None)
    with Broker(tmp_path) as broker:
        client = Client(broker)
        assert produce(client, batch(b"x")).error is None
        assert client.values("t") == [b"x"]
        answers = client.change("create_topics", {"u": TopicSpec(1, {"compression.type": "zstd"})})
        assert answers == {"u": errors.InvalidConfigurationError}
    assert "whose library is installed, not 'zstd'; producer is taken" in caplog.text
