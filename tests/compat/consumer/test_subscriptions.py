"""What the members of a group subscribe to, and what comes of topics and partitions that come and go."""

from __future__ import annotations

from typing import Any

import pytest
from timing import until

from compat.kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from compat.kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from compat.kafka.coordinator.assignors.range import RangePartitionAssignor
from dafka import Broker
from tests.compat.consumer.members import PARTITIONS, Members, T, join
from tests.compat.consumer.readers import settled


def test_new_partitions_are_noticed_and_shared(new_member: Members, broker: Broker) -> None:
    first, second = new_member(), new_member()
    join(first, second)
    with KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers) as admin:
        admin.create_partitions({"t": PARTITIONS + 4})
    until(lambda: (first.poll(10), second.poll(10)) and settled([first, second], PARTITIONS + 4))
    assert len(first.assignment()) == len(second.assignment()) == (PARTITIONS + 4) / 2


@pytest.mark.parametrize("assignor", [RangePartitionAssignor, CooperativeStickyAssignor])
def test_members_may_change_their_subscription(new_member: Members, broker: Broker, assignor: Any) -> None:
    with KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers) as admin:
        admin.create_topics({"u": {"num_partitions": 2}})
    config = {"partition_assignment_strategy": [assignor]}
    first, second = new_member(**config), new_member(**config)
    join(first, second)
    first.subscribe(["t", "u"])
    until(lambda: (first.poll(10), second.poll(10)) and settled([first, second], PARTITIONS + 2))
    assert {partition.topic for partition in second.assignment()} == {"t"}
    first.subscribe(["u"])
    wanted = ({TopicPartition("u", 0), TopicPartition("u", 1)}, set(T))
    until(lambda: (first.poll(10), second.poll(10)) and (first.assignment(), second.assignment()) == wanted)


def test_a_pattern_takes_in_topics_that_come_later(new_member: Members, broker: Broker) -> None:
    consumer = new_member(subscribe=False)
    consumer.subscribe(pattern="^log-")
    assert consumer.poll(200) == {}
    with KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers) as admin:
        admin.create_topics({"log-a": {"num_partitions": 1}, "other": {"num_partitions": 1}})
    until(lambda: consumer.poll(10) or consumer.assignment())
    assert consumer.assignment() == {TopicPartition("log-a", 0)}
    assert consumer.subscription() == {"log-a"}


def test_a_pattern_rebalances_the_group_when_topics_come_and_go(new_member: Members, broker: Broker) -> None:
    with KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers) as admin:
        admin.create_topics({"log-a": {"num_partitions": 2}})
        members = [new_member(subscribe=False) for _ in range(2)]
        for member in members:
            member.subscribe(pattern="^log-")

        def shared(partitions: int) -> bool:
            for member in members:
                member.poll(10)
            return settled(members, partitions)

        until(lambda: shared(2))
        admin.create_topics({"log-b": {"num_partitions": 2}, "other": {"num_partitions": 2}})
        until(lambda: shared(4))
        assert [len(member.assignment()) for member in members] == [2, 2]
        admin.delete_topics(["log-a"])
        until(lambda: shared(2))
        topics = {partition.topic for member in members for partition in member.assignment()}
        assert topics == {"log-b"} == members[0].subscription()


def test_a_rebalance_does_not_wait_for_offsets_of_partitions_that_are_gone(broker: Broker) -> None:
    with (
        KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers) as admin,
        KafkaProducer(bootstrap_servers=broker.bootstrap_servers) as producer,
        KafkaConsumer(
            "fewer",
            bootstrap_servers=broker.bootstrap_servers,
            group_id="automatic",
            auto_offset_reset="earliest",
            metadata_max_age_ms=100,
            request_timeout_ms=120_000,  # how long a commit is repeated
        ) as consumer,
    ):
        values: list[bytes] = []

        def has_read(value: bytes) -> bool:
            values.extend(row.value for rows in consumer.poll(100).values() for row in rows)
            return value in values

        admin.create_topics({"fewer": {"num_partitions": 2}})
        producer.send("fewer", b"old", partition=1).get(100)
        until(lambda: has_read(b"old"))
        admin.delete_topics(["fewer"])
        admin.create_topics({"fewer": {"num_partitions": 1}})
        with KafkaProducer(bootstrap_servers=broker.bootstrap_servers) as another:
            another.send("fewer", b"new", partition=0).get(100)
        until(lambda: has_read(b"new") and consumer.assignment() == {TopicPartition("fewer", 0)})


def test_unsubscribing_leaves_and_subscribing_joins_again(new_member: Members) -> None:
    first, second = new_member(), new_member()
    join(first, second)
    first.unsubscribe()
    join(second)
    assert first.assignment() == set()
    first.subscribe(["t"])
    join(first, second)
