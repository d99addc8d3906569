"""Faults that a test orders at a TestBroker, as the clients under test meet them."""

from __future__ import annotations

import threading
import time

import pytest
from broker.server.client import WireClient
from broker.server.samples import fetch
from kafka.errors import (
    GroupAuthorizationFailedError,
    KafkaStorageError,
    MessageSizeTooLargeError,
    NotLeaderForPartitionError,
    RequestTimedOutError,
)

from compat.kafka import KafkaProducer
from dafka.testing import wait_until


def test_a_failing_produce_fails_the_future_once(dafka_broker, kafka_producer):
    dafka_broker.fail_next_produce(MessageSizeTooLargeError)
    with pytest.raises(MessageSizeTooLargeError):
        kafka_producer.send("t", b"a").get(100)
    kafka_producer.send("t", b"b").get(100)
    assert dafka_broker.values("t") == [b"b"]


def test_a_retriable_error_is_retried_and_the_program_notices_nothing(dafka_broker, kafka_producer):
    dafka_broker.fail_next_produce(NotLeaderForPartitionError, times=2)
    assert kafka_producer.send("t", b"a").get(100).offset == 0
    assert dafka_broker.values("t") == [b"a"]


def test_without_retries_it_is_not_retried(dafka_broker):
    dafka_broker.fail_next_produce(NotLeaderForPartitionError)
    with (
        KafkaProducer(
            bootstrap_servers=dafka_broker.bootstrap_servers, retries=0, enable_idempotence=False
        ) as producer,
        pytest.raises(NotLeaderForPartitionError),
    ):
        producer.send("t", b"a").get(100)
    assert dafka_broker.values("t") == []


def test_only_the_topic_that_was_named_fails(dafka_broker, kafka_producer):
    dafka_broker.fail_next_produce(MessageSizeTooLargeError, topic="bad")
    good, bad = kafka_producer.send("good", b"a"), kafka_producer.send("bad", b"b")
    assert good.get(100).offset == 0
    with pytest.raises(MessageSizeTooLargeError):
        bad.get(100)


def test_an_answer_that_gets_lost_leaves_the_records_written(dafka_broker):
    with KafkaProducer(
        bootstrap_servers=dafka_broker.bootstrap_servers, retries=0, enable_idempotence=False
    ) as producer:
        dafka_broker.fail_next_produce(RequestTimedOutError, written=True)
        with pytest.raises(RequestTimedOutError):
            producer.send("t", b"a").get(100)
    assert dafka_broker.values("t") == [b"a"]


def test_a_failing_commit_notes_nothing(dafka_broker, kafka_consumer_factory):
    dafka_broker.preload("t", [b"a"])
    consumer = kafka_consumer_factory(
        "t", group_id="g", enable_auto_commit=False, consumer_timeout_ms=100_000
    )
    assert next(consumer).value == b"a"
    dafka_broker.fail_next_commit(GroupAuthorizationFailedError)
    with pytest.raises(GroupAuthorizationFailedError):
        consumer.commit()
    assert dafka_broker.committed("g") == {}
    consumer.commit()
    assert dafka_broker.committed("g") == {("t", 0): 1}


def test_delayed_fetches_come_late_and_only_while_ordered(dafka_broker, kafka_consumer_factory):
    dafka_broker.preload("t", [b"a"])
    with dafka_broker.delay_fetches(0.3):
        begin = time.monotonic()
        assert next(kafka_consumer_factory("t", consumer_timeout_ms=100_000)).value == b"a"
        assert time.monotonic() - begin >= 0.3
    dafka_broker.delay_fetches(100, topic="another")
    begin = time.monotonic()
    assert next(kafka_consumer_factory("t", consumer_timeout_ms=100_000)).value == b"a"
    assert time.monotonic() - begin < 50


def test_a_poll_does_not_take_longer_because_fetches_are_delayed(dafka_broker, kafka_consumer_factory):
    dafka_broker.preload("slow", [b"a"])
    dafka_broker.preload("fast", [b"b"])
    consumer = kafka_consumer_factory("slow", "fast")
    dafka_broker.delay_fetches(100, topic="slow")
    begin = time.monotonic()
    assert [r.value for r in wait_until(lambda: consumer.poll(100))["fast", 0]] == [b"b"]
    assert consumer.poll(100) == {}
    assert time.monotonic() - begin < 50
    dafka_broker.clear_faults()
    assert [r.value for r in wait_until(lambda: consumer.poll(100))["slow", 0]] == [b"a"]


def test_records_held_back_come_at_once_when_the_delay_is_taken_back(dafka_broker, kafka_consumer_factory):
    dafka_broker.preload("t", [b"a"])
    dafka_broker.delay_fetches(100)
    consumer = kafka_consumer_factory("t")
    later = threading.Timer(0.1, dafka_broker.clear_faults)
    later.start()
    begin = time.monotonic()
    assert consumer.poll(100_000)
    assert time.monotonic() - begin < 50
    later.join()


def test_looking_and_filling_go_past_the_faults(dafka_broker):
    dafka_broker.fail_next_produce(KafkaStorageError, times=100)
    dafka_broker.delay_fetches(100)
    dafka_broker.preload("t", [b"a"])
    assert dafka_broker.values("t") == [b"a"]


def test_faults_are_taken_back(dafka_broker, kafka_producer, kafka_consumer_factory):
    dafka_broker.fail_next_produce(MessageSizeTooLargeError, times=100)
    dafka_broker.fail_next_commit(KafkaStorageError)
    dafka_broker.delay_fetches(100)
    dafka_broker.clear_faults()
    kafka_producer.send("t", b"a").get(100)
    consumer = kafka_consumer_factory("t", group_id="g", consumer_timeout_ms=100_000)
    assert next(consumer).value == b"a"
    consumer.commit()


def test_a_broker_with_delayed_fetches_can_be_stopped(dafka_broker, kafka_consumer_factory):
    dafka_broker.preload("t", [b"a"])
    dafka_broker.delay_fetches(100)
    kafka_consumer_factory("t").poll(10)
    begin = time.monotonic()
    dafka_broker.stop()
    assert time.monotonic() - begin < 50


@pytest.mark.parametrize("error", [ValueError, KafkaStorageError(), "KafkaStorageError", None])
def test_only_error_classes_of_kafka_can_be_ordered(dafka_broker, error):
    with pytest.raises(TypeError, match=r"kafka\.errors"):
        dafka_broker.fail_next_produce(error)


def test_faults_that_could_not_happen_are_refused(dafka_broker):
    for times in (0, -1, 1.5):
        with pytest.raises(ValueError, match=f"not {times}"):
            dafka_broker.fail_next_commit(KafkaStorageError, times=times)
    for seconds in (-1, float("nan")):
        with pytest.raises(ValueError, match=f"not {seconds}"):
            dafka_broker.delay_fetches(seconds)


def test_a_consumer_that_waits_at_the_end_of_a_partition_meets_a_broker_that_hangs(dafka_broker):
    dafka_broker.create_topic("t", 1)
    with WireClient(dafka_broker) as wire:
        request = fetch("t", 0, wait=20)
        for _ in range(5):  # from the third time on it is answered without a look at the partition
            assert not wire.ask(request, 12).responses[0].partitions[0].records
        with dafka_broker.hang():
            correlation = wire.send(request, 12)
            wire.socket.settimeout(0.3)
            with pytest.raises(TimeoutError):
                wire.receive_frame()
        wire.socket.settimeout(100.0)
        assert not wire.receive(request, 12, correlation).responses[0].partitions[0].records
