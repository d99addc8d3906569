"""The green thread that carries batches to the broker: retries, expiry, the bound on memory."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import gevent.event
import pytest

from compat.kafka import KafkaConsumer, KafkaProducer
from compat.kafka.errors import (
    KafkaTimeoutError,
    NotEnoughReplicasError,
    NotLeaderForPartitionError,
    UnknownTopicOrPartitionError,
)
from compat.kafka.producer import _sender
from dafka.hub.turns import Pace
from dafka.testing import TestBroker
from tests.compat.producer.faulty import FaultyBroker

Producers = Callable[..., KafkaProducer]
Consumers = Callable[..., KafkaConsumer]


@pytest.mark.parametrize(
    "error", [NotLeaderForPartitionError, NotEnoughReplicasError, UnknownTopicOrPartitionError]
)
def test_a_passing_error_is_retried_and_the_order_stays(
    new_producer: Producers, new_consumer: Consumers, error: type
) -> None:
    producer = new_producer(retry_backoff_ms=5, batch_size=200)
    producer.partitions_for("t")
    FaultyBroker(producer, [error, error, error])
    futures = [producer.send("t", b"%d" % number) for number in range(100)]
    assert [future.get(100).offset for future in futures] == list(range(100))
    consumer = new_consumer("t")
    assert [int(next(consumer).value) for _ in range(100)] == list(range(100))


def test_the_broker_is_told_how_many_requests_may_be_under_way(new_producer: Producers) -> None:
    producer = new_producer(max_in_flight_requests_per_connection=1)
    producer.partitions_for("t")
    broker = FaultyBroker(producer, [])
    producer.send("t", b"v").get(100)
    assert broker.options["in_flight"] == 1


class RecordingBroker(FaultyBroker):
    """Keeps each call until it is told to go on, and the batches of each partition in all calls."""

    def __init__(self, producer: KafkaProducer) -> None:
        super().__init__(producer, [])
        self._goes_on = producer._client.hub.run(gevent.event.Event)
        self._hub = producer._client.hub
        self.sent: list[dict[int, int]] = []

    def produce(self, batches: Any, **options: Any) -> Any:
        self.sent.append({number: len(some) for (_, number), some in batches.items()})
        self._goes_on.wait()
        return super().produce(batches, **options)

    def go_on(self) -> None:
        self._hub.run(self._goes_on.set)


def test_many_batches_of_one_partition_do_not_keep_another_one_waiting(
    broker: TestBroker, new_producer: Producers, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker.create_topic("t", 3)
    producer = new_producer(batch_size=200, linger_ms=0)
    recording = RecordingBroker(producer)
    monkeypatch.setattr(_sender, "ROUND_BYTES", 1000)
    futures = [producer.send("t", bytes(100), partition=0) for _ in range(50)]
    futures += [producer.send("t", bytes(100), partition=number) for number in (1, 2)]
    recording.go_on()
    assert [future.get(100).offset for future in futures] == [*range(50), 0, 0]
    calls = recording.sent if 1 in recording.sent[0] else recording.sent[1:]
    assert calls[0][1] == calls[0][2] == 1 < calls[0][0]
    assert sum(call.get(0, 0) for call in recording.sent) == 50


def test_partitions_for_which_a_call_had_no_room_are_the_first_of_the_next_one(
    broker: TestBroker, new_producer: Producers, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker.create_topic("t", 6)
    producer = new_producer(batch_size=200, linger_ms=0)
    recording = RecordingBroker(producer)
    monkeypatch.setattr(_sender, "ROUND_BYTES", 300)  # two batches
    futures = [producer.send("t", bytes(100), partition=one) for one in range(6) for _ in range(10)]
    recording.go_on()
    assert [future.get(100).offset for future in futures] == [*range(10)] * 6
    assert set().union(*recording.sent[1:4]) == set(range(6))  # behind the first call, which was early


def test_retries_are_counted(new_producer: Producers) -> None:
    producer = new_producer(retries=2, retry_backoff_ms=1)
    producer.partitions_for("t")
    broker = FaultyBroker(producer, [NotLeaderForPartitionError] * 9)
    with pytest.raises(NotLeaderForPartitionError, match="injected"):
        producer.send("t", b"v").get(100)
    assert broker.calls == 3


def test_without_retries_the_first_error_counts(new_producer: Producers) -> None:
    producer = new_producer(retries=0)
    producer.partitions_for("t")
    FaultyBroker(producer, [NotLeaderForPartitionError])
    with pytest.raises(NotLeaderForPartitionError):
        producer.send("t", b"v").get(100)


def test_delivery_gives_up_after_its_timeout(new_producer: Producers) -> None:
    producer = new_producer(delivery_timeout_ms=120, request_timeout_ms=100, retry_backoff_ms=30, linger_ms=0)
    producer.partitions_for("t")
    FaultyBroker(producer, [NotLeaderForPartitionError] * 1000)
    with pytest.raises((KafkaTimeoutError, NotLeaderForPartitionError)):
        producer.send("t", b"v").get(100)


def test_a_broken_broker_fails_the_batches_it_was_given_and_no_others(new_producer: Producers) -> None:
    producer = new_producer()
    producer.partitions_for("t")
    FaultyBroker(producer, [RuntimeError])
    with pytest.raises(RuntimeError, match="broken"):
        producer.send("t", b"v").get(100)
    assert producer.send("t", b"v").get(100).offset == 0


def test_a_broker_that_gives_no_metadata_does_not_end_the_sender(new_producer: Producers) -> None:
    producer = new_producer(metadata_max_age_ms=10)
    producer.partitions_for("t")
    broker = FaultyBroker(producer, [])
    refused = threading.Event()

    def metadata(topics: Any, create: bool = False) -> Any:
        refused.set()
        raise RuntimeError("no metadata")

    broker.metadata = metadata  # type: ignore[attr-defined]
    assert refused.wait(100)
    assert producer.send("t", b"v").get(100).offset == 0


def test_metadata_that_may_have_no_age_leave_the_hub_its_time(new_producer: Producers) -> None:
    producer = new_producer(metadata_max_age_ms=0)
    assert [producer.send("t", b"v").get(100).offset for _ in range(3)] == [0, 1, 2]


def test_batches_gather_while_a_call_is_under_way(broker: TestBroker, new_producer: Producers) -> None:
    producer = new_producer()
    producer.partitions_for("t")
    faulty = FaultyBroker(producer, [])
    with broker.hang():
        futures = [producer.send("t", b"v") for _ in range(50)]
    for future in futures:
        future.get(100)
    assert faulty.calls <= 3


def test_batches_of_very_many_partitions_let_others_have_their_turn(
    broker: TestBroker, new_producer: Producers, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses = 0

    class Counted(Pace):
        def pause(self) -> None:
            nonlocal pauses
            pauses += 1
            super().pause()

    monkeypatch.setattr("dafka.hub.limits.PACE_SECONDS", 0.0)
    monkeypatch.setattr("compat.kafka.producer._sender.Pace", Counted)
    broker.create_topic("many", partitions=320)
    producer = new_producer(linger_ms=10_000)
    futures = [producer.send("many", b"v", partition=number) for number in range(320)]
    producer.flush(100)
    assert [future.get(100).partition for future in futures] == list(range(320))
    # Twenty for each time that all of them are gone through, before the broker's call and after it.
    assert pauses >= 4 * 20
