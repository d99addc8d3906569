"""What ``KafkaConsumer`` promises: where its position is, what it subscribes to, commits, and how it ends."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable
from itertools import count

import pytest
from timing import takes_less, until

from compat.kafka import (
    KafkaConsumer,
    KafkaProducer,
    OffsetAndMetadata,
    TopicPartition,
)
from compat.kafka.errors import (
    IllegalStateError,
    NoOffsetForPartitionError,
    OffsetOutOfRangeError,
)
from tests.compat.consumer.numbered import fill, numbers, polled, take

Consumers = Callable[..., KafkaConsumer]
T0 = TopicPartition("t", 0)


# -- positions ---------------------------------------------------------------------------------------


def test_the_position_follows_the_records_that_were_yielded(
    producer: KafkaProducer, new_consumer: Consumers
) -> None:
    fill(producer, "t", range(10))
    consumer = new_consumer("t")
    assert take(consumer, 4) == [0, 1, 2, 3]
    assert consumer.position(T0) == 4
    assert take(consumer, 1) == [4]
    assert consumer.position(T0) == 5
    assert consumer.highwater(T0) == 10


def test_seeking_during_iteration_takes_effect_with_the_next_record(
    producer: KafkaProducer, new_consumer: Consumers
) -> None:
    fill(producer, "t", range(300))
    consumer = new_consumer("t")
    assert take(consumer, 2) == [0, 1]
    consumer.seek(T0, 250)
    assert take(consumer, 1) == [250]
    consumer.seek(T0, 1)
    assert take(consumer, 2) == [1, 2]
    consumer.seek_to_end()
    assert consumer.position(T0) == 300
    assert list(consumer) == []
    consumer.seek_to_beginning(T0)
    assert take(consumer, 1) == [0]


def test_pausing_during_iteration_takes_effect_with_the_next_record(
    producer: KafkaProducer, new_consumer: Consumers, four: str
) -> None:
    for number in range(2):
        fill(producer, four, range(number * 100, number * 100 + 50), partition=number)
    consumer = new_consumer(four)
    first = next(consumer)
    paused = TopicPartition(four, first.partition)
    consumer.pause(paused)
    assert consumer.paused() == {paused}
    assert {record.partition for record in consumer} == {1 - first.partition}
    assert consumer.position(paused) == 1
    consumer.resume(paused)
    assert [record.offset for record in consumer] == list(range(1, 50))


def test_unsubscribing_during_iteration_ends_it(producer: KafkaProducer, new_consumer: Consumers) -> None:
    fill(producer, "t", range(10))
    consumer = new_consumer("t", consumer_timeout_ms=50)
    take(consumer, 2)
    consumer.unsubscribe()
    assert list(consumer) == []
    assert consumer.subscription() is None and consumer.assignment() == set()


def test_latest_starts_after_the_existing_records(producer: KafkaProducer, new_consumer: Consumers) -> None:
    fill(producer, "t", range(5))
    consumer = new_consumer("t", auto_offset_reset="latest", consumer_timeout_ms=100_000)
    until(lambda: not consumer.poll() and consumer.assignment())
    assert consumer.position(T0) == 5
    fill(producer, "t", [5])
    assert take(consumer, 1) == [5]


def test_without_reset_policy_a_missing_position_is_an_error(
    producer: KafkaProducer, new_consumer: Consumers
) -> None:
    fill(producer, "t", range(5))
    consumer = new_consumer("t", auto_offset_reset="none")
    with pytest.raises(NoOffsetForPartitionError):
        consumer.poll(100_000)
    consumer.seek(T0, 3)
    assert numbers(consumer) == [3, 4]


def test_an_offset_out_of_range_is_reset_or_an_error(
    producer: KafkaProducer, new_consumer: Consumers
) -> None:
    fill(producer, "t", range(5))
    resetting = new_consumer()
    resetting.assign([T0])
    resetting.seek(T0, 100)
    assert numbers(resetting) == [0, 1, 2, 3, 4]
    strict = new_consumer(auto_offset_reset="none")
    strict.assign([T0])
    strict.seek(T0, 100)
    with pytest.raises(OffsetOutOfRangeError) as raised:
        strict.poll(100_000)
    assert raised.value.args == ({T0: 100},)


# -- subscriptions -----------------------------------------------------------------------------------


def test_assigning_reads_just_those_partitions(
    producer: KafkaProducer, new_consumer: Consumers, four: str
) -> None:
    for number in range(4):
        fill(producer, four, [number], partition=number)
    consumer = new_consumer()
    consumer.assign([TopicPartition(four, 1), TopicPartition(four, 3)])
    assert sorted(numbers(consumer)) == [1, 3]
    consumer.assign([TopicPartition(four, 0)])
    assert numbers(consumer) == [0]
    assert consumer.assignment() == {TopicPartition(four, 0)}
    consumer.assign([])
    assert consumer.assignment() == set()


# -- groups and commits --------------------------------------------------------------------------------


def test_a_group_goes_on_where_it_committed(producer: KafkaProducer, new_consumer: Consumers) -> None:
    fill(producer, "t", range(10))
    first = new_consumer("t", group_id="g", enable_auto_commit=False)
    assert take(first, 4) == [0, 1, 2, 3]
    assert first.committed(T0) is None
    first.commit()
    assert first.committed(T0) == 4
    first.close()
    second = new_consumer("t", group_id="g")
    assert numbers(second) == [4, 5, 6, 7, 8, 9]


def test_offsets_are_committed_with_metadata(producer: KafkaProducer, new_consumer: Consumers) -> None:
    fill(producer, "t", range(3))
    consumer = new_consumer(group_id="g")
    consumer.assign([T0])
    consumer.commit({T0: OffsetAndMetadata(2, "note", -1)})
    assert consumer.committed(T0, metadata=True) == OffsetAndMetadata(2, "note", -1)
    assert numbers(consumer) == [2]


def test_closing_commits_the_offset_after_the_last_record_that_was_yielded(
    producer: KafkaProducer, new_consumer: Consumers
) -> None:
    fill(producer, "t", range(300))
    with new_consumer("t", group_id="g") as consumer:
        take(consumer, 7)
    assert take(new_consumer("t", group_id="g"), 1) == [7]


def test_leaving_a_with_block_by_an_exception_commits_nothing(
    producer: KafkaProducer, new_consumer: Consumers
) -> None:
    fill(producer, "t", range(10))
    with pytest.raises(ZeroDivisionError), new_consumer("t", group_id="g") as consumer:
        take(consumer, 7)
        raise ZeroDivisionError
    assert take(new_consumer("t", group_id="g"), 1) == [0]


def test_auto_commit_happens_at_its_interval(producer: KafkaProducer, new_consumer: Consumers) -> None:
    fill(producer, "t", range(10))
    consumer = new_consumer("t", group_id="g", auto_commit_interval_ms=20)
    assert len(polled(consumer, timeout_ms=100_000)) == 10
    deadline = time.monotonic() + 100
    while consumer.committed(T0) != 10 and time.monotonic() < deadline:
        consumer.poll(timeout_ms=10)
    assert consumer.committed(T0) == 10


def test_asynchronous_commits_call_back_in_a_later_call(
    producer: KafkaProducer, new_consumer: Consumers
) -> None:
    fill(producer, "t", range(3))
    consumer = new_consumer("t", group_id="g", enable_auto_commit=False)
    take(consumer, 2)
    seen: list[object] = []
    threads: list[int] = []

    def callback(offsets: object, outcome: object) -> None:
        seen.append((offsets, outcome))
        threads.append(threading.get_ident())

    future = consumer.commit_async(callback=callback)
    deadline = time.monotonic() + 100
    while not seen and time.monotonic() < deadline:
        consumer.poll(timeout_ms=10, max_records=1)
    assert future.succeeded()
    assert seen == [({T0: OffsetAndMetadata(2, "", 0)}, None)]
    assert threads == [threading.get_ident()]
    assert consumer.committed(T0) == 2


def test_membership_is_described(producer: KafkaProducer, new_consumer: Consumers) -> None:
    fill(producer, "t", [1])
    assert new_consumer("t").group_metadata().group_id is None
    consumer = new_consumer("t", group_id="g")
    assert consumer.group_metadata().state == "<unjoined>"
    consumer.poll(100_000)
    assert (consumer.group_metadata().group_id, consumer.group_metadata().state) == ("g", "<stable>")


# -- closing -------------------------------------------------------------------------------------------


def test_a_closed_consumer_says_so(new_consumer: Consumers) -> None:
    consumer = new_consumer("t")
    consumer.close()
    consumer.close()
    with pytest.raises(IllegalStateError, match="closed"):
        consumer.poll()
    assert list(consumer) == []


@pytest.mark.parametrize(
    "call",
    [
        lambda consumer: consumer.commit(),
        lambda consumer: consumer.commit_async({T0: OffsetAndMetadata(0, "", -1)}),
        lambda consumer: consumer.committed(T0),
        lambda consumer: consumer.topics(),
        lambda consumer: consumer.partitions_for_topic("unknown"),
        lambda consumer: consumer.beginning_offsets([T0]),
        lambda consumer: consumer.offsets_for_times({T0: 0}),
        lambda consumer: consumer.assign([]),
        lambda consumer: consumer.unsubscribe(),
        lambda consumer: consumer.bootstrap(),
        lambda consumer: consumer.position(T0),
    ],
)
def test_a_closed_consumer_asks_the_broker_nothing(
    producer: KafkaProducer, new_consumer: Consumers, call: Callable[[KafkaConsumer], object]
) -> None:
    fill(producer, "t", range(3))
    consumer = new_consumer(group_id="g")
    consumer.assign([T0])
    assert polled(consumer, timeout_ms=100_000) == [0, 1, 2]
    consumer.seek_to_end()
    consumer.close(autocommit=False)
    assert not consumer.bootstrap_connected()
    with pytest.raises(IllegalStateError, match="closed"):
        call(consumer)


@pytest.mark.parametrize("how", ["iterate", "poll"])
def test_closing_from_another_thread_ends_the_wait(
    producer: KafkaProducer, new_consumer: Consumers, how: str
) -> None:
    producer.partitions_for("t")
    consumer = new_consumer("t", consumer_timeout_ms=float("inf"), fetch_max_wait_ms=29_000)
    timer = threading.Timer(0.15, consumer.close)
    timer.start()
    start = time.monotonic()
    assert (list(consumer) if how == "iterate" else list(consumer.poll(100_000))) == []
    assert time.monotonic() - start < 28
    timer.join()


def test_metrics_count_records(producer: KafkaProducer, new_consumer: Consumers) -> None:
    fill(producer, "t", range(5))
    consumer = new_consumer("t")
    assert len(list(consumer)) == 5
    figures = consumer.metrics()
    assert figures["consumer-fetch-manager-metrics"]["records-consumed-total"] == 5
    assert figures["consumer-coordinator-metrics"]["assigned-partitions"] == 1
    assert len(consumer.metrics(raw=True)) > 3
    assert new_consumer(metrics_enabled=False).metrics() is None
    assert consumer.bootstrap_connected()


def test_read_committed_is_accepted(producer: KafkaProducer, new_consumer: Consumers) -> None:
    fill(producer, "t", [1])
    assert numbers(new_consumer("t", isolation_level="read_committed")) == [1]


def test_the_first_record_of_a_new_group_comes_at_once(
    producer: KafkaProducer, new_consumer: Consumers
) -> None:
    fill(producer, "t", [1])
    groups = (new_consumer("t", group_id=f"new-{number}") for number in count())
    assert takes_less(1, lambda: take(next(groups), 1))


def test_clients_are_named_as_kafka_pythons(new_consumer: Consumers) -> None:
    assert re.match(r"kafka-python-\d", new_consumer("t").config["client_id"])
