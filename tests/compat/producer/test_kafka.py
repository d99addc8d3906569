"""What ``KafkaProducer`` promises: where records go, when, and what its futures say."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import kafka.codec
import pytest
from kafka.partitioner import murmur2

from compat.kafka import KafkaConsumer, KafkaProducer, TopicPartition
from compat.kafka.errors import IllegalStateError, KafkaTimeoutError, TopicAuthorizationFailedError
from compat.kafka.partitioner import DefaultPartitioner, Partitioner, StickyPartitioner
from compat.kafka.producer.future import FutureRecordMetadata, RecordMetadata
from compat.kafka.serializer import JsonSerializer, Serializer

Consumers = Callable[..., KafkaConsumer]
Producers = Callable[..., KafkaProducer]


def values(consumer: KafkaConsumer, count: int) -> list[object]:
    return [next(consumer).value for _ in range(count)]


# -- one record --------------------------------------------------------------------------------------


def test_send_returns_a_future_of_the_records_metadata(producer: KafkaProducer) -> None:
    future = producer.send("t", b"value", key=b"key", headers=[("h", b"12")], timestamp_ms=1234)
    assert isinstance(future, FutureRecordMetadata)
    metadata = future.get(10)
    partition = TopicPartition("t", 0)
    assert metadata == RecordMetadata("t", 0, partition, 0, 1234, None, 3, 5, 3)
    assert future.succeeded() and not future.failed() and future.is_done
    assert future.value == metadata and future.exception is None


def test_sizes_are_minus_one_for_what_is_not_there(producer: KafkaProducer) -> None:
    metadata = producer.send("t", key=b"only").get(10)
    assert (metadata.serialized_key_size, metadata.serialized_value_size) == (4, -1)
    assert metadata.serialized_header_size == -1


def test_a_record_without_timestamp_gets_the_time_of_send(
    producer: KafkaProducer, new_consumer: Consumers
) -> None:
    before = int(time.time() * 1000)
    sent = producer.send("t", b"v").get(10).timestamp
    assert before <= sent <= int(time.time() * 1000)
    assert next(new_consumer("t")).timestamp == sent


def test_offsets_count_up_over_batches(new_producer: Producers) -> None:
    producer = new_producer(batch_size=200)
    futures = [producer.send("t", b"x" * 50) for _ in range(100)]
    assert [future.get(10).offset for future in futures] == list(range(100))


def test_buffers_are_copied_when_they_are_sent(new_producer: Producers, new_consumer: Consumers) -> None:
    producer = new_producer(linger_ms=10_000)
    value, key = bytearray(b"before"), bytearray(b"key")
    producer.send("t", value, key=memoryview(key))
    value[:], key[:] = b"after!", b"yek"
    producer.flush(10)
    record = next(new_consumer("t"))
    assert (record.key, record.value) == (b"key", b"before")


def test_headers_arrive_as_they_were_sent(producer: KafkaProducer, new_consumer: Consumers) -> None:
    headers = [("a", b"1"), ("a", b""), ("\N{SNOWMAN}", b"\x00\xff")]
    producer.send("t", b"v", headers=headers)
    headers.append(("later", b""))
    producer.flush(10)
    assert next(new_consumer("t")).headers == headers[:3]


# -- serializers -------------------------------------------------------------------------------------


def test_serializers_may_be_objects_and_functions(new_producer: Producers, new_consumer: Consumers) -> None:
    with pytest.warns(DeprecationWarning, match="key_serializer"):
        producer = new_producer(key_serializer=str.encode, value_serializer=JsonSerializer())
    producer.send("t", {"a": [1]}, key="k")
    producer.flush(10)
    record = next(new_consumer("t"))
    assert (record.key, record.value) == (b"k", b'{"a": [1]}')


def test_a_serializer_is_told_topic_and_headers_and_closed_with_the_producer(
    new_producer: Producers,
) -> None:
    class Spy(Serializer):
        seen: list[object]
        closed = False

        def serialize(self, topic: str, headers: object, data: object) -> bytes:
            self.seen = [topic, headers, data]
            return b"x"

        def close(self) -> None:
            self.closed = True

    spy = Spy()
    producer = new_producer(value_serializer=spy)
    producer.send("t", 5, headers=[("h", b"1")])
    producer.close()
    assert spy.seen == ["t", [("h", b"1")], 5] and spy.closed


def test_send_raises_the_exception_of_a_serializer(new_producer: Producers) -> None:
    producer = new_producer(value_serializer=JsonSerializer())
    with pytest.raises(TypeError, match="not JSON serializable"):
        producer.send("t", object())
    assert producer.send("t", 1).get(10).offset == 0


# -- partitions --------------------------------------------------------------------------------------


def test_a_key_goes_where_kafkas_hash_sends_it(producer: KafkaProducer, four: str) -> None:
    keys = [b"%d" % number for number in range(200)] + [b"", b"x" * 300]
    futures = [(key, producer.send(four, b"v", key=key)) for key in keys * 2]
    for key, future in futures:
        assert future.get(10).partition == (murmur2(key) & 0x7FFFFFFF) % 4


def test_records_without_key_go_to_all_partitions(producer: KafkaProducer, four: str) -> None:
    futures = [producer.send(four, b"v") for _ in range(400)]
    counts = Counter(future.get(10).partition for future in futures)
    assert set(counts) == {0, 1, 2, 3} and min(counts.values()) > 40


def test_an_explicit_partition_wins_over_the_key(producer: KafkaProducer, four: str) -> None:
    assert {producer.send(four, b"v", key=b"k", partition=2).get(10).partition} == {2}


def test_records_of_one_partition_keep_their_order(
    new_producer: Producers, new_consumer: Consumers, four: str
) -> None:
    producer = new_producer(batch_size=500)
    for number in range(3000):
        producer.send(four, b"%d" % number, partition=number % 4)
    producer.flush(10)
    seen: dict[int, list[int]] = {}
    for record in new_consumer(four):
        seen.setdefault(record.partition, []).append(int(record.value))
    assert seen == {number: list(range(number, 3000, 4)) for number in range(4)}


def test_a_partitioner_of_ones_own_is_asked_with_a_view_of_the_cluster(
    new_producer: Producers, four: str
) -> None:
    class Last(Partitioner):
        def partition(self, topic, key, serialized_key, value, serialized_value, cluster):  # type: ignore[no-untyped-def]
            assert topic in cluster.topics()
            assert (key, serialized_key) == ("k", b"k")
            assert cluster.available_partitions_for_topic(topic) == cluster.partitions_for_topic(topic)
            assert cluster.partitions_for_topic("unknown") is None
            return max(cluster.partitions_for_topic(topic))

    with pytest.warns(DeprecationWarning):
        producer = new_producer(partitioner=Last(), key_serializer=str.encode)
    assert producer.send(four, b"v", key="k").get(10).partition == 3


def test_a_sub_class_of_the_default_partitioner_is_asked(new_producer: Producers, four: str) -> None:
    class Odd(DefaultPartitioner):
        def partition(self, *args: object) -> int:
            return 1

    assert new_producer(partitioner=Odd()).send(four, b"v").get(10).partition == 1


def test_the_sticky_partitioner_moves_on_with_every_batch(new_producer: Producers, four: str) -> None:
    random.seed(4)
    producer = new_producer(partitioner=StickyPartitioner(), linger_ms=50, batch_size=1000)
    partitions = [future.get(10).partition for future in [producer.send(four, b"x" * 90) for _ in range(90)]]
    runs = 1 + sum(1 for one, other in pairwise(partitions) if one != other)
    assert set(partitions) == {0, 1, 2, 3} and runs < 30


def test_partitions_for_names_the_partitions(producer: KafkaProducer, four: str) -> None:
    assert producer.partitions_for(four) == {0, 1, 2, 3}
    assert producer.partitions_for("made-now") == {0}


# -- when records leave ------------------------------------------------------------------------------


def test_lingering_holds_records_back_until_the_time_is_over(new_producer: Producers) -> None:
    producer = new_producer(linger_ms=150)
    start = time.monotonic()
    futures = [producer.send("t", b"v") for _ in range(5)]
    assert futures[-1].get(10).offset == 4
    assert 0.14 <= time.monotonic() - start < 5


def test_a_full_batch_does_not_linger(new_producer: Producers) -> None:
    producer = new_producer(linger_ms=60_000, batch_size=1000)
    futures = [producer.send("t", b"x" * 100) for _ in range(20)]
    assert futures[0].get(10).offset == 0
    assert not futures[-1].is_done


def test_flush_does_not_wait_for_the_linger(new_producer: Producers) -> None:
    producer = new_producer(linger_ms=60_000)
    futures = [producer.send("t", b"v") for _ in range(10)]
    producer.flush(10)
    assert all(future.is_done for future in futures)


def test_close_sends_what_is_buffered(new_producer: Producers, new_consumer: Consumers) -> None:
    producer = new_producer(linger_ms=60_000)
    future = producer.send("t", b"v")
    producer.close()
    assert future.succeeded()
    producer.close()
    assert values(new_consumer("t"), 1) == [b"v"]


def test_leaving_a_with_block_closes(new_producer: Producers) -> None:
    with new_producer() as producer:
        future = producer.send("t", b"v")
    assert future.is_done
    with pytest.raises(IllegalStateError, match="closed"):
        producer.send("t", b"v")


def test_a_forgotten_producer_sends_what_it_has(new_consumer: Consumers, broker) -> None:  # type: ignore[no-untyped-def]
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap_servers, linger_ms=60_000)
    future = producer.send("t", b"v")
    del producer
    assert future.get(10).offset == 0


@pytest.mark.parametrize("acks", [0, 1, -1, "all"])
def test_every_setting_of_acks_delivers(
    new_producer: Producers, new_consumer: Consumers, acks: object
) -> None:
    producer = new_producer(acks=acks, enable_idempotence=False)
    metadata = producer.send("t", b"v").get(10)
    assert metadata.offset == (-1 if acks == 0 else 0)
    assert values(new_consumer("t", consumer_timeout_ms=5000), 1) == [b"v"]


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_compressed_records_arrive(new_producer: Producers, new_consumer: Consumers, codec: str) -> None:
    if not getattr(kafka.codec, f"has_{codec}")():
        pytest.skip(f"{codec} is not installed")
    producer = new_producer(compression_type=codec)
    sent = [b"%d" % number * 20 for number in range(500)]
    for value in sent:
        producer.send("t", value)
    producer.flush(10)
    assert values(new_consumer("t"), 500) == sent


def test_a_record_larger_than_a_batch_goes_alone(new_producer: Producers, new_consumer: Consumers) -> None:
    producer = new_producer(batch_size=100)
    sent = [b"a", b"x" * 500_000, b"b"]
    for value in sent:
        producer.send("t", value)
    producer.flush(10)
    assert values(new_consumer("t"), 3) == sent


def test_no_batching_at_all(new_producer: Producers) -> None:
    producer = new_producer(batch_size=0)
    assert [producer.send("t", b"v").get(10).offset for _ in range(3)] == [0, 1, 2]


# -- many threads ------------------------------------------------------------------------------------


def test_eight_threads_share_a_producer(new_producer: Producers, new_consumer: Consumers, four: str) -> None:
    producer = new_producer(batch_size=2000)

    def send(thread: int) -> list[int]:
        futures = [
            producer.send(four, b"%d %d" % (thread, number), key=b"%d" % thread) for number in range(2000)
        ]
        return [future.get(20).offset for future in futures]

    with ThreadPoolExecutor(8) as pool:
        for offsets in pool.map(send, range(8)):
            assert offsets == sorted(offsets)
    seen: dict[int, list[int]] = {}
    for record in new_consumer(four):
        thread, number = map(int, record.value.split())
        seen.setdefault(thread, []).append(number)
    assert seen == {thread: list(range(2000)) for thread in range(8)}


def test_threads_that_send_during_close_lose_nothing_they_were_promised(new_producer: Producers) -> None:
    producer = new_producer()
    futures: list[FutureRecordMetadata] = []
    started = threading.Event()

    def send() -> None:
        while True:
            try:
                futures.append(producer.send("t", b"v"))
            except IllegalStateError:
                return
            started.set()

    thread = threading.Thread(target=send)
    thread.start()
    assert started.wait(10)
    producer.close()
    thread.join(10)
    assert futures[-1].get(10).offset == len(futures) - 1


# -- errors ------------------------------------------------------------------------------------------


def test_a_topic_that_may_not_be_created_is_a_timeout(new_producer: Producers) -> None:
    producer = new_producer(allow_auto_create_topics=False, max_block_ms=50)
    with pytest.raises(KafkaTimeoutError, match="nowhere"):
        producer.send("nowhere", b"v")


def test_an_error_that_lasts_fails_the_future(producer: KafkaProducer) -> None:
    class Refusing:
        running = True

        def metadata(self, topics: object, create: bool = False) -> object:
            raise TopicAuthorizationFailedError({"t"})

    producer._client._broker = Refusing()
    future = producer.send("t", b"value", key=b"k")
    assert future.failed() and not future.succeeded() and future.value is None
    with pytest.raises(TopicAuthorizationFailedError):
        future.get()


def test_new_partitions_are_noticed(new_producer: Producers, broker) -> None:  # type: ignore[no-untyped-def]
    from compat.kafka import KafkaAdminClient

    producer = new_producer(metadata_max_age_ms=20)
    assert producer.partitions_for("t") == {0}
    with KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers) as admin:
        admin.create_partitions({"t": 3})
    deadline = time.monotonic() + 10
    while producer.partitions_for("t") != {0, 1, 2} and time.monotonic() < deadline:
        time.sleep(0.01)
    assert producer.send("t", b"v", partition=2).get(10).partition == 2


# -- everything else ---------------------------------------------------------------------------------


def test_metrics_count_records(producer: KafkaProducer) -> None:
    for _ in range(7):
        producer.send("t", b"v")
    producer.flush(10)
    assert producer.metrics()["producer-metrics"]["record-send-total"] == 7
    assert len(producer.metrics(raw=True)) > 1


def test_metrics_can_be_switched_off(new_producer: Producers) -> None:
    assert new_producer(metrics_enabled=False).metrics() is None


def test_its_text_has_client_id_and_transactional_id(new_producer: Producers) -> None:
    producer = new_producer(client_id="me")
    assert str(producer) == "<KafkaProducer client_id=me transactional_id=None>"
    assert producer.bootstrap_connected()
    assert new_producer().config["client_id"].startswith("kafka-python-producer-")
