"""What a consumer hands out, by iterating and by polling: all records, in order, as they were asked for."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import kafka
import pytest

from compat.kafka import KafkaConsumer, KafkaProducer, TopicPartition
from compat.kafka.consumer.fetcher import ConsumerRecord
from compat.kafka.serializer import Deserializer, JsonSerializer
from tests.compat.consumer.numbered import fill, numbers, polled, take

Consumers = Callable[..., KafkaConsumer]
T0 = TopicPartition("t", 0)


# -- records -----------------------------------------------------------------------------------------


def test_a_record_has_every_field_of_kafka_pythons(producer: KafkaProducer, new_consumer: Consumers) -> None:
    producer.send("t", b"value", key=b"key", headers=[("h", b"12")], timestamp_ms=99).get(100)
    (record,) = list(new_consumer("t"))
    assert type(record) is ConsumerRecord is kafka.consumer.fetcher.ConsumerRecord
    assert record == ConsumerRecord("t", 0, 0, 0, 99, 0, b"key", b"value", [("h", b"12")], None, 3, 5, 3)


def test_iterating_yields_everything_in_order_over_batches(
    producer: KafkaProducer, new_consumer: Consumers
) -> None:
    fill(producer, "t", range(1000))
    assert numbers(new_consumer("t")) == list(range(1000))


def test_the_iterator_is_the_consumer_and_goes_on_where_it_stopped(
    producer: KafkaProducer, new_consumer: Consumers
) -> None:
    fill(producer, "t", range(10))
    consumer = new_consumer("t")
    assert iter(consumer) is consumer
    assert take(consumer, 3) == [0, 1, 2]
    assert numbers(consumer) == list(range(3, 10))
    fill(producer, "t", [10])
    assert numbers(consumer) == [10]


def test_a_new_record_wakes_a_waiting_iterator(producer: KafkaProducer, new_consumer: Consumers) -> None:
    producer.partitions_for("t")
    consumer = new_consumer("t", consumer_timeout_ms=100_000)
    timer = threading.Timer(0.1, fill, (producer, "t", [7]))
    timer.start()
    start = time.monotonic()
    assert take(consumer, 1) == [7]
    assert time.monotonic() - start < 25
    timer.join()


def test_consumer_timeout_ends_the_iteration_and_it_can_begin_again(
    producer: KafkaProducer, new_consumer: Consumers
) -> None:
    producer.partitions_for("t")
    consumer = new_consumer("t", consumer_timeout_ms=50)
    start = time.monotonic()
    assert list(consumer) == []
    assert 0.05 <= time.monotonic() - start < 25
    fill(producer, "t", [1])
    assert numbers(consumer) == [1]


# -- poll --------------------------------------------------------------------------------------------


def test_poll_returns_at_most_max_records(producer: KafkaProducer, new_consumer: Consumers) -> None:
    fill(producer, "t", range(1000))
    consumer = new_consumer("t", max_poll_records=300)
    sizes = [len(polled(consumer, timeout_ms=100_000)) for _ in range(4)]
    assert sizes == [300, 300, 300, 100]
    consumer.seek(T0, 0)
    assert polled(consumer, timeout_ms=100_000, max_records=5) == [0, 1, 2, 3, 4]
    assert consumer.position(T0) == 5


def test_poll_groups_records_by_partition(
    producer: KafkaProducer, new_consumer: Consumers, four: str
) -> None:
    for number in range(4):
        fill(producer, four, [number], partition=number)
    consumer = new_consumer(four)
    seen: dict[TopicPartition, list[int]] = {}
    deadline = time.monotonic() + 100
    while len(seen) < 4 and time.monotonic() < deadline:
        seen |= {one: numbers(records) for one, records in consumer.poll(timeout_ms=100).items()}
    assert seen == {TopicPartition(four, number): [number] for number in range(4)}


def test_poll_without_waiting_returns_at_once(producer: KafkaProducer, new_consumer: Consumers) -> None:
    producer.partitions_for("t")
    consumer = new_consumer("t", fetch_max_wait_ms=29_000)
    start = time.monotonic()
    assert consumer.poll() == {}
    assert time.monotonic() - start < 25


def test_poll_waits_as_long_as_it_was_told(producer: KafkaProducer, new_consumer: Consumers) -> None:
    producer.partitions_for("t")
    consumer = new_consumer("t", fetch_max_wait_ms=29_000)
    start = time.monotonic()
    assert consumer.poll(timeout_ms=200) == {}
    assert 0.19 <= time.monotonic() - start < 25


def test_no_partition_starves(producer: KafkaProducer, new_consumer: Consumers, four: str) -> None:
    for number in range(4):
        fill(producer, four, range(2000), partition=number)
    consumer = new_consumer(four, max_poll_records=100, max_partition_fetch_bytes=20_000)
    seen = [next(iter(consumer.poll(timeout_ms=100_000))).partition for _ in range(16)]
    assert set(seen) == {0, 1, 2, 3}


def test_polling_and_iterating_can_be_mixed(producer: KafkaProducer, new_consumer: Consumers) -> None:
    fill(producer, "t", range(10))
    consumer = new_consumer("t")
    assert take(consumer, 2) == [0, 1]
    assert polled(consumer, timeout_ms=100_000, max_records=3) == [2, 3, 4]
    assert numbers(consumer) == [5, 6, 7, 8, 9]


def test_poll_without_updating_offsets_returns_the_same_again(
    producer: KafkaProducer, new_consumer: Consumers
) -> None:
    fill(producer, "t", range(3))
    consumer = new_consumer("t")
    assert numbers(consumer.poll(100_000, update_offsets=False)[T0]) == [0, 1, 2]
    assert consumer.position(T0) == 0
    assert polled(consumer, timeout_ms=100_000) == [0, 1, 2]


# -- deserializers -------------------------------------------------------------------------------------


def test_deserializers_may_be_objects_and_functions(producer: KafkaProducer, new_consumer: Consumers) -> None:
    producer.send("t", b'{"a": [1]}', key=b"k").get(100)
    with pytest.warns(DeprecationWarning, match="key_deserializer"):
        consumer = new_consumer("t", key_deserializer=bytes.decode, value_deserializer=JsonSerializer())
    (record,) = list(consumer)
    assert (record.key, record.value) == ("k", {"a": [1]})
    assert (record.serialized_key_size, record.serialized_value_size) == (1, 10)


def test_a_deserializer_is_told_topic_and_headers_and_closed_with_the_consumer(
    producer: KafkaProducer, new_consumer: Consumers
) -> None:
    class Spy(Deserializer):
        closed = False

        def deserialize(self, topic: str, headers: object, data: bytes) -> object:
            return topic, headers, data

        def close(self) -> None:
            self.closed = True

    producer.send("t", b"v", headers=[("h", b"1")]).get(100)
    spy = Spy()
    consumer = new_consumer("t", value_deserializer=spy)
    assert next(consumer).value == ("t", [("h", b"1")], b"v")
    consumer.close()
    assert spy.closed


def test_a_record_that_cannot_be_deserialized_raises_in_its_turn_and_can_be_skipped(
    producer: KafkaProducer, new_consumer: Consumers
) -> None:
    for value in (b"1", b"2", b"{", b"4"):
        producer.send("t", value)
    producer.flush(100)
    consumer = new_consumer("t", value_deserializer=JsonSerializer())
    seen = []
    with pytest.raises(ValueError, match="Expecting"):
        for record in consumer:
            seen.append(record.value)
    assert seen == [1, 2]
    assert consumer.position(T0) == 2
    with pytest.raises(ValueError, match="Expecting"):
        consumer.poll(100_000)
    consumer.seek(T0, 3)
    assert [record.value for record in consumer] == [4]
