"""What a rebalance listener is told, what it may do, and what comes of what it raises."""

from __future__ import annotations

from collections.abc import Callable

import kafka
import pytest

from compat.kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from dafka.testing import TestBroker
from tests.compat.consumer.numbered import fill, numbers
from tests.compat.consumer.readers import Recorder, until

Consumers = Callable[..., KafkaConsumer]
T0 = TopicPartition("t", 0)


def test_a_listener_is_told_of_its_partitions(producer: KafkaProducer, new_consumer: Consumers) -> None:
    fill(producer, "t", [1])
    listener = Recorder()
    consumer = new_consumer(group_id="g")
    consumer.subscribe(["t"], listener=listener)
    assert listener.told() == []
    consumer.poll(1000)
    assert listener.told() == [("revoked", set()), ("assigned", {0})]
    consumer.close()
    assert listener.told()[2:] == [("revoked", {0})]


def test_a_listener_may_seek_and_commit(producer: KafkaProducer, new_consumer: Consumers) -> None:
    fill(producer, "t", range(10))

    class Seeking(Recorder):
        def on_partitions_assigned(self, assigned: set[TopicPartition]) -> None:
            for partition in assigned:
                consumer.seek(partition, 6)

    consumer = new_consumer(group_id="g")
    consumer.subscribe(["t"], listener=Seeking())
    assert numbers(consumer) == [6, 7, 8, 9]


def test_a_listener_that_fails_is_reported_and_the_assignment_stands(
    producer: KafkaProducer, new_consumer: Consumers
) -> None:
    class Failing(Recorder):
        def on_partitions_assigned(self, assigned: set[TopicPartition]) -> None:
            raise ZeroDivisionError

    fill(producer, "t", [1])
    consumer = new_consumer(group_id="g")
    consumer.subscribe(["t"], listener=Failing())
    with pytest.raises(kafka.errors.KafkaError, match="rebalance callback") as raised:
        consumer.poll(1000)
    assert isinstance(raised.value.__cause__, ZeroDivisionError)
    assert numbers(consumer) == [1]


def test_a_listener_that_fails_before_a_rebalance_is_told_again_and_the_rebalance_goes_on(
    broker: TestBroker, producer: KafkaProducer, new_consumer: Consumers
) -> None:
    class Failing(Recorder):
        def on_partitions_revoked(self, revoked: set[TopicPartition]) -> None:
            super().on_partitions_revoked(revoked)
            if self.told().count(("revoked", {0})) == 1:
                raise ZeroDivisionError

    fill(producer, "t", [1])
    consumer = new_consumer(group_id="g")
    listener = Failing()
    consumer.subscribe(["t"], listener=listener)
    assert numbers(consumer) == [1]
    with KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers) as admin:
        admin.create_partitions({"t": 2})
    with pytest.raises(kafka.errors.KafkaError, match="rebalance callback"):
        until(lambda: consumer.poll(1000) or len(consumer.assignment()) == 2)
    until(lambda: consumer.poll(100) or len(consumer.assignment()) == 2)
    assert listener.told()[2:] == [("revoked", {0}), ("revoked", {0}), ("assigned", {0, 1})]
    fill(producer, "t", [2])
    assert numbers(consumer) == [2]


def test_a_coroutine_listener_is_run(producer: KafkaProducer, new_consumer: Consumers) -> None:
    seen: list[object] = []

    class Async(kafka.AsyncConsumerRebalanceListener):
        async def on_partitions_revoked(self, revoked: object) -> None: ...

        async def on_partitions_assigned(self, assigned: object) -> None:
            seen.append(assigned)

    fill(producer, "t", [1])
    consumer = new_consumer(group_id="g")
    consumer.subscribe(["t"], listener=Async())
    consumer.poll(1000)
    assert seen == [{T0}]
