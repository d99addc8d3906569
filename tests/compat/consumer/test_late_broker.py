"""A broker that answers late or not at all: no method takes longer than it was told, and nothing is lost."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import pytest
from timing import until

from compat.kafka import KafkaConsumer, OffsetAndMetadata, TopicPartition
from compat.kafka.errors import CoordinatorLoadInProgressError, KafkaTimeoutError
from dafka.testing import TestBroker

Consumers = Callable[..., KafkaConsumer]

T0 = TopicPartition("t", 0)
HANGING = 100.0  # seconds: a call that waits for the broker takes longer than this


@contextmanager
def in_time() -> Iterator[None]:
    """Calls here do not wait for the broker."""
    began = time.monotonic()
    yield
    assert time.monotonic() - began < HANGING / 2


@pytest.fixture
def hanging(dafka_broker: TestBroker) -> Iterator[Callable[[], Any]]:
    """Makes the broker hang; after so many seconds it goes on, so that a test that waits for it fails."""
    timers: list[threading.Timer] = []

    def hang() -> Any:
        timers.append(threading.Timer(HANGING, dafka_broker.clear_faults))
        timers[-1].start()
        return dafka_broker.hang()

    yield hang
    for timer in timers:
        timer.cancel()
    dafka_broker.clear_faults()


def test_a_poll_is_over_when_its_time_is_and_the_next_one_gets_the_records(
    dafka_broker: TestBroker, kafka_consumer_factory: Consumers, hanging: Callable[[], Any]
) -> None:
    dafka_broker.preload("t", [b"%d" % number for number in range(5)])
    consumer = kafka_consumer_factory("t", max_poll_records=2)
    assert len(until(lambda: consumer.poll(100))[T0]) == 2
    consumer.seek(T0, 1)  # past what was fetched
    consumer.seek(T0, 0)
    with hanging(), in_time():
        dafka_broker.preload("t", [b"5"])
        consumer.seek_to_end(T0)
        assert consumer.poll(50) == {}
        assert consumer.poll(0) == {}
    consumer.seek(T0, 4)
    assert [one.value for one in until(lambda: consumer.poll(100))[T0]] == [b"4", b"5"]


def test_a_new_consumer_and_a_new_member_wait_no_longer_than_they_were_told(
    dafka_broker: TestBroker, kafka_consumer_factory: Consumers, hanging: Callable[[], Any]
) -> None:
    dafka_broker.preload("t", [b"v"])
    alone, member = kafka_consumer_factory("t"), kafka_consumer_factory("t", group_id="g")
    with hanging(), in_time():
        for consumer in (alone, member):
            assert consumer.poll(50) == {}
            assert consumer.poll(0) == {}
    for consumer in (alone, member):
        assert until(lambda consumer=consumer: consumer.poll(100))[T0][0].value == b"v"


def test_an_iteration_ends_at_its_timeout(
    dafka_broker: TestBroker, kafka_consumer_factory: Consumers, hanging: Callable[[], Any]
) -> None:
    dafka_broker.preload("t", [b"v"])
    consumer = kafka_consumer_factory("t", consumer_timeout_ms=100)
    with hanging(), in_time():
        assert list(consumer) == []
    assert until(lambda: [record.value for record in consumer]) == [b"v"]


def test_methods_with_a_timeout_give_up(
    dafka_broker: TestBroker, kafka_consumer_factory: Consumers, hanging: Callable[[], Any]
) -> None:
    dafka_broker.preload("t", [b"v"])
    consumer = kafka_consumer_factory(group_id="g", request_timeout_ms=1000)
    consumer.assign([T0])
    with hanging(), in_time():
        for give_up in (
            lambda: consumer.commit({T0: OffsetAndMetadata(1, "", -1)}, timeout_ms=50),
            lambda: consumer.committed(T0, timeout_ms=50),
            lambda: consumer.beginning_offsets([T0], timeout_ms=50),
            lambda: consumer.end_offsets([T0], timeout_ms=50),
            lambda: consumer.offsets_for_times({T0: 0}, timeout_ms=50),
            lambda: consumer.topics(),
        ):
            with pytest.raises(KafkaTimeoutError):
                give_up()
        assert consumer.position(T0, timeout_ms=50) is None
    assert consumer.position(T0, timeout_ms=10_000) == 0
    assert consumer.committed(T0) in (None, 1)  # a commit that was given up may be carried out


def test_a_consumer_can_be_closed(
    dafka_broker: TestBroker, kafka_consumer_factory: Consumers, hanging: Callable[[], Any]
) -> None:
    dafka_broker.preload("t", [b"v"])
    consumer = kafka_consumer_factory("t", group_id="g")
    until(lambda: consumer.poll(100))
    with hanging(), in_time():
        consumer.close(timeout_ms=100)


@pytest.mark.parametrize("failing", [False, True])
def test_a_commit_before_a_rebalance_takes_no_longer_than_the_poll(
    dafka_broker: TestBroker, kafka_consumer_factory: Consumers, hanging: Callable[[], Any], failing: bool
) -> None:
    dafka_broker.preload("t", [b"v"])
    consumer = kafka_consumer_factory("t", group_id="g", auto_commit_interval_ms=60_000)
    until(lambda: consumer.poll(100))
    consumer.subscribe(["t", "u"])
    if failing:
        dafka_broker.fail_next_commit(CoordinatorLoadInProgressError, times=1000)
    with nullcontext() if failing else hanging(), in_time():
        consumer.poll(100)
        consumer.poll(0)
    dafka_broker.clear_faults()
    dafka_broker.preload("u", [b"w"])
    until(lambda: TopicPartition("u", 0) in consumer.poll(100))


@pytest.mark.parametrize("group", [None, "g"])
def test_polls_shorter_than_the_way_to_the_broker_get_the_records(
    dafka_broker: TestBroker, kafka_consumer_factory: Consumers, group: str | None
) -> None:
    dafka_broker.preload("t", [b"v"] * 3)
    consumer = kafka_consumer_factory("t", group_id=group)
    seen: list[Any] = []
    deadline = time.monotonic() + 100
    while len(seen) < 3 and time.monotonic() < deadline:
        fault = dafka_broker.hang()
        polled = consumer.poll(0)  # the answer comes only after it has gone
        fault.close()
        seen += [record for records in polled.values() for record in records]
    assert len(seen) == 3
