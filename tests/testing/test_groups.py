"""Looking at consumer groups in a TestBroker, and what it can do to them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from compat.kafka import ConsumerRebalanceListener, KafkaConsumer, TopicPartition
from compat.kafka.errors import CommitFailedError
from compat.kafka.share import ShareConsumer
from dafka.broker.interface.streams_groups import StreamsHeartbeat, Subtopology, Topology
from dafka.testing import GroupMember, TestBroker, wait_until

Consumers = Callable[..., KafkaConsumer]


class Listener(ConsumerRebalanceListener):
    """Notes what it is told."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def on_partitions_revoked(self, revoked: set[TopicPartition]) -> None:
        self.told.append("revoked")

    def on_partitions_assigned(self, assigned: set[TopicPartition]) -> None:
        self.told.append("assigned")

    def on_partitions_lost(self, lost: set[TopicPartition]) -> None:
        self.told.append("lost")


@pytest.fixture
def polling() -> Iterator[Callable[[KafkaConsumer], None]]:
    """Polls consumers in threads until the end of the test."""
    stop = threading.Event()
    threads: list[threading.Thread] = []

    def poll(consumer: KafkaConsumer) -> None:
        while not stop.is_set():
            consumer.poll(20)

    def start(consumer: KafkaConsumer) -> None:
        threads.append(threading.Thread(target=poll, args=(consumer,)))
        threads[-1].start()

    yield start
    stop.set()
    for thread in threads:
        thread.join(100)


def test_a_group_is_listed_with_its_members_and_what_they_read(
    dafka_broker: TestBroker, kafka_consumer_factory: Consumers, polling: Callable[[KafkaConsumer], None]
) -> None:
    dafka_broker.create_topic("t", 4)
    assert (dafka_broker.groups(), dafka_broker.group_state("g"), dafka_broker.members("g")) == (
        [],
        "Dead",
        [],
    )
    for name in ("one", "two"):
        polling(kafka_consumer_factory("t", group_id="g", client_id=name))
    members = dafka_broker.wait_for_members("g", 2)
    assert dafka_broker.groups() == ["g"] and dafka_broker.group_state("g") == "Stable"
    assert {type(one) for one in members} == {GroupMember}
    assert {one.client_id for one in members} == {"one", "two"}
    assert {len(one.partitions) for one in members} == {2}
    assert frozenset().union(*(one.partitions for one in members)) == {("t", number) for number in range(4)}


def test_a_group_that_was_left_is_empty(dafka_broker: TestBroker, kafka_consumer_factory: Consumers) -> None:
    dafka_broker.preload("t", [b"v"])
    consumer = kafka_consumer_factory("t", group_id="g")
    wait_until(lambda: consumer.poll(100))
    consumer.close()
    assert dafka_broker.wait_for_members("g", 0) == []


@pytest.mark.parametrize("config", [{}, {"group_instance_id": "i"}], ids=["dynamic", "static"])
def test_a_dropped_member_loses_its_partitions_and_joins_again(
    dafka_broker: TestBroker, kafka_consumer_factory: Consumers, config: dict[str, str]
) -> None:
    dafka_broker.preload("t", [b"v"])
    listener = Listener()
    consumer = kafka_consumer_factory(group_id="g", client_id="me", enable_auto_commit=False, **config)
    consumer.subscribe(["t"], listener=listener)
    wait_until(lambda: consumer.poll(100))
    (dropped,) = dafka_broker.drop_member("g", "me")
    assert dropped.partitions == {("t", 0)}
    assert dafka_broker.members("g") == []
    with pytest.raises(CommitFailedError):
        consumer.commit()
    wait_until(lambda: consumer.poll(100) or dafka_broker.group_state("g") == "Stable")
    (again,) = dafka_broker.wait_for_members("g")
    assert again.member_id != dropped.member_id
    wait_until(lambda: consumer.poll(10) or listener.told[-1] == "assigned")
    assert listener.told == ["revoked", "assigned", "lost", "assigned"]


def test_the_others_get_the_partitions_of_a_dropped_member(
    dafka_broker: TestBroker, kafka_consumer_factory: Consumers, polling: Callable[[KafkaConsumer], None]
) -> None:
    dafka_broker.create_topic("t", 4)
    stays, goes = (kafka_consumer_factory("t", group_id="g", client_id=name) for name in ("stays", "goes"))
    polling(stays)

    def share() -> bool:
        goes.poll(10)
        members = dafka_broker.members("g")
        return dafka_broker.group_state("g") == "Stable" and len(members) == 2 and len(goes.assignment()) == 2

    wait_until(share)
    (leaving,) = (one for one in dafka_broker.members("g") if one.client_id == "goes")
    assert dafka_broker.drop_member("g", leaving) == [leaving]
    with pytest.raises(LookupError, match="no member GroupMember"):
        dafka_broker.drop_member("g", leaving)
    (only,) = dafka_broker.wait_for_members("g", 1)
    assert only.client_id == "stays" and len(only.partitions) == 4


def test_a_member_that_is_not_there_cannot_be_dropped(dafka_broker: TestBroker) -> None:
    with pytest.raises(LookupError, match="group 'g' has no member 'me'; it has"):
        dafka_broker.drop_member("g", "me")
    with pytest.raises(LookupError):
        dafka_broker.drop_member("g")


def test_an_expired_group_is_forgotten_and_begins_anew(
    dafka_broker: TestBroker, kafka_consumer_factory: Consumers
) -> None:
    dafka_broker.preload("t", [b"v"])
    consumer = kafka_consumer_factory("t", group_id="g", enable_auto_commit=False)
    wait_until(lambda: consumer.poll(100))
    consumer.commit()
    dafka_broker.expire_group("g")
    assert (dafka_broker.groups(), dafka_broker.committed("g")) == ([], {})
    (records,) = wait_until(lambda: consumer.poll(100)).values()
    assert [record.value for record in records] == [b"v"]
    consumer.commit()
    consumer.close()
    assert dafka_broker.committed("g") == {("t", 0): 1}
    dafka_broker.expire_group("g")
    with pytest.raises(LookupError, match="GroupIdNotFoundError"):
        dafka_broker.expire_group("g")


def test_groups_whose_assignment_the_broker_computes_are_seen_and_changed_alike(
    dafka_broker: TestBroker, kafka_consumer_factory: Consumers, polling: Callable[[KafkaConsumer], None]
) -> None:
    dafka_broker.create_topic("t", 4)
    listener = Listener()
    for name in ("one", "two"):
        consumer = kafka_consumer_factory(group_id="g", client_id=name, group_protocol="consumer")
        consumer.subscribe(["t"], listener=listener)
        polling(consumer)

    def shared() -> bool:
        members = dafka_broker.members("g")
        stable = dafka_broker.group_state("g") == "Stable"
        return stable and sorted(len(one.partitions) for one in members) == [2, 2]

    wait_until(shared)
    members = dafka_broker.members("g")
    assert {one.client_id for one in members} == {"one", "two"}
    assert frozenset().union(*(one.partitions for one in members)) == {("t", number) for number in range(4)}
    (dropped,) = dafka_broker.drop_member("g", "one")
    assert dropped.client_id == "one" and len(dropped.partitions) == 2
    wait_until(lambda: "lost" in listener.told and shared())
    with pytest.raises(LookupError, match="three"):
        dafka_broker.drop_member("g", "three")
    dafka_broker.expire_group("g")
    wait_until(lambda: listener.told.count("lost") == 3 and shared())


def test_share_groups_are_seen_and_changed_alike(dafka_broker: TestBroker) -> None:
    dafka_broker.create_topic("t")
    options = {"bootstrap_servers": dafka_broker.bootstrap_servers, "fetch_max_wait_ms": 20}
    with ShareConsumer("t", group_id="g", client_id="one", **options) as consumer:
        wait_until(lambda: consumer.poll(20) == {} and dafka_broker.share_offsets("g") == {("t", 0): 0})
        dafka_broker.preload("t", [b"v"])
        (records,) = wait_until(lambda: consumer.poll(100)).values()
        assert [record.delivery_count for record in records] == [1]
        assert (dafka_broker.group_state("g"), dafka_broker.groups()) == ("Stable", ["g"])
        (member,) = dafka_broker.members("g")
        assert (member.client_id, member.partitions) == ("one", {("t", 0)})
        assert dafka_broker.drop_member("g", "one") == [member]  # its partitions are for the next member
        (again,) = wait_until(lambda: consumer.poll(100)).values()
        assert [record.delivery_count for record in again] == [2]
        consumer.commit()
        assert dafka_broker.share_offsets("g", "t") == {("t", 0): 1}
    assert dafka_broker.group_state("g") == "Empty"
    dafka_broker.expire_group("g")
    assert dafka_broker.groups() == []


def test_groups_of_kafka_streams_are_seen_and_changed_alike(dafka_broker: TestBroker) -> None:
    topology = Topology(0, [Subtopology("0", ["t"])])
    member = StreamsHeartbeat("m", 0, -1, None, None, 9.0, topology, {}, {}, {}, "p")
    assert dafka_broker._within(lambda broker: broker.streams_group_heartbeat("g", member)).error is None
    assert dafka_broker.groups() == ["g"]
    assert [one.member_id for one in dafka_broker.members("g")] == ["m"]
    dafka_broker.drop_member("g", "m")
    assert dafka_broker.group_state("g") == "Empty"
    dafka_broker.expire_group("g")
    assert dafka_broker.groups() == []


@pytest.mark.parametrize("name", [None, 5, b"g"])
def test_a_group_that_is_no_name_is_named(dafka_broker: TestBroker, name: Any) -> None:
    for ask in (
        *(dafka_broker.group_state, dafka_broker.members, dafka_broker.drop_member, dafka_broker.lag),
        *(dafka_broker.expire_group, dafka_broker.share_offsets, dafka_broker.committed),
    ):
        with pytest.raises(TypeError, match="group is a str, not"):
            ask(name)
