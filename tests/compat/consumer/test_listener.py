"""What a rebalance listener is told, what it may do, and what comes of what it raises."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import kafka
import pytest
from timing import until

from compat.kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from compat.kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from compat.kafka.errors import KafkaError
from dafka.testing import TestBroker
from tests.compat.consumer.members import PARTITIONS, Members, T, join, produce, read_first_records
from tests.compat.consumer.numbered import fill, numbers
from tests.compat.consumer.readers import Recorder

Consumers = Callable[..., KafkaConsumer]
T0 = TopicPartition("t", 0)


def test_a_listener_is_told_of_its_partitions(producer: KafkaProducer, new_consumer: Consumers) -> None:
    fill(producer, "t", [1])
    listener = Recorder()
    consumer = new_consumer(group_id="g")
    consumer.subscribe(["t"], listener=listener)
    assert listener.told() == []
    consumer.poll(100_000)
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
    with pytest.raises(KafkaError, match="rebalance callback") as raised:
        consumer.poll(100_000)
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
    with pytest.raises(KafkaError, match="rebalance callback"):
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
    consumer.poll(100_000)
    assert seen == [{T0}]


# -- several members -------------------------------------------------------------------------------


def test_eager_members_revoke_everything_before_anyone_is_assigned_anything(new_member: Members) -> None:
    calls: list[Any] = []
    one, two = Recorder(calls, "one"), Recorder(calls, "two")
    first = new_member(listener=one)
    join(first)
    second = new_member(listener=two)
    join(first, second)
    everything = set(range(PARTITIONS))
    half = {partition.partition for partition in first.assignment()}
    assert one.told() == [
        ("revoked", set()),
        ("assigned", everything),
        ("revoked", everything),
        ("assigned", half),
    ]
    assert two.told() == [("revoked", set()), ("assigned", everything - half)]
    after_join = [call[1] for call in calls[2:]]
    assert after_join.index("assigned") > max(
        place for place, what in enumerate(after_join) if what == "revoked"
    )
    assert {thread for *_, thread in calls} == {threading.get_ident()}


def test_cooperative_members_revoke_only_partitions_that_move(new_member: Members) -> None:
    calls: list[Any] = []
    one, two = Recorder(calls, "one"), Recorder(calls, "two")
    config = {"partition_assignment_strategy": [CooperativeStickyAssignor]}
    first = new_member(listener=one, **config)
    join(first)
    second = new_member(listener=two, **config)
    join(first, second)
    everything = set(range(PARTITIONS))
    kept = {partition.partition for partition in first.assignment()}
    assert len(kept) == PARTITIONS / 2
    assert one.told() == [("assigned", everything), ("revoked", everything - kept)]
    assert two.told() == [("assigned", everything - kept)]
    assert calls[-1][0] == "two"


def test_a_listener_may_commit_offsets_of_revoked_partitions(
    producer: KafkaProducer, new_member: Members
) -> None:
    produce(producer, 0, PARTITIONS)

    class Committing(Recorder):
        def on_partitions_revoked(self, revoked: set[TopicPartition]) -> None:
            super().on_partitions_revoked(revoked)
            if revoked:
                first.commit()

    first = new_member(listener=Committing())
    read_first_records(first)
    second = new_member()
    join(first, second)
    assert {second.committed(partition) for partition in second.assignment()} == {1}


def test_positions_are_committed_before_partitions_are_revoked(
    producer: KafkaProducer, new_member: Members
) -> None:
    produce(producer, 0, PARTITIONS)
    first = new_member(enable_auto_commit=True, auto_commit_interval_ms=60_000)
    read_first_records(first)
    assert first.committed(T[0]) is None
    second = new_member()
    join(first, second)
    assert second.poll(100) == {}
    assert {second.committed(partition) for partition in T} == {1}


def test_closing_gives_the_partitions_to_the_others_at_once(new_member: Members) -> None:
    listener = Recorder()
    first, second = new_member(listener=listener), new_member()
    join(first, second)
    owned = {partition.partition for partition in first.assignment()}
    first.close()
    assert listener.told()[-1] == ("revoked", owned)
    start = time.monotonic()
    join(second)
    assert time.monotonic() - start < 40  # less than the session timeout
    assert second.assignment() == set(T)


def test_a_listener_that_fails_while_revoking_is_reported(new_member: Members) -> None:
    class Failing(Recorder):
        def on_partitions_revoked(self, revoked: set[TopicPartition]) -> None:
            if revoked:
                raise ZeroDivisionError

    first = new_member(listener=Failing())
    join(first)
    new_member().poll(10)
    with pytest.raises(KafkaError, match="rebalance callback"):
        until(lambda: first.poll(50))
    with pytest.raises(KafkaError, match="rebalance callback"):
        first.close()
    assert first.group_metadata().member_id == ""
