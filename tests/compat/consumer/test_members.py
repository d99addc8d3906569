"""Several consumers in one group: who reads what, and what happens when members come, go and die."""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from compat.kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from compat.kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from compat.kafka.coordinator.assignors.range import RangePartitionAssignor
from compat.kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from compat.kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from compat.kafka.errors import (
    CommitFailedError,
    FencedInstanceIdError,
    InconsistentGroupProtocolError,
    InvalidSessionTimeoutError,
    KafkaConfigurationError,
    KafkaError,
    RebalanceInProgressError,
)
from compat.kafka.protocol.consumer.metadata import ConsumerProtocolSubscription
from dafka import Broker
from tests.compat.consumer.readers import Reader, Recorder, settled, silence, until

EAGER = [RangePartitionAssignor, RoundRobinPartitionAssignor, StickyPartitionAssignor]
PARTITIONS = 12
T = [TopicPartition("t", number) for number in range(PARTITIONS)]
QUICK = {"session_timeout_ms": 400, "heartbeat_interval_ms": 50}

Members = Callable[..., KafkaConsumer]


@pytest.fixture(autouse=True)
def topic(broker: Broker) -> None:
    """The topic "t"."""
    with KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers) as admin:
        admin.create_topics({"t": {"num_partitions": PARTITIONS}})


@pytest.fixture
def new_member(broker: Broker) -> Iterator[Members]:
    """Makes consumers of the group "g"; those that do not say what they read subscribe to "t"."""
    made: list[KafkaConsumer] = []

    def make(*, listener: Any = None, subscribe: bool = True, **config: Any) -> KafkaConsumer:
        options = {
            "group_id": "g",
            "auto_offset_reset": "earliest",
            "enable_auto_commit": False,
            "heartbeat_interval_ms": 500,
            **config,
        }
        consumer = KafkaConsumer(bootstrap_servers=broker.bootstrap_servers, **options)
        if subscribe:
            consumer.subscribe(["t"], listener=listener)
        made.append(consumer)
        return consumer

    yield make
    for consumer in made:
        consumer.close(autocommit=False)


@pytest.fixture
def new_reader(new_member: Members) -> Iterator[Callable[..., Reader]]:
    """Makes consumers of the group "g" that are polled by threads."""
    made: list[Reader] = []

    def make(delay: float = 0.0, **config: Any) -> Reader:
        made.append(Reader(new_member(**config), delay))
        return made[-1]

    yield make
    for reader in made:
        reader.stop()


def produce(producer: KafkaProducer, first: int, count: int) -> range:
    for number in range(first, first + count):
        producer.send("t", b"%d" % number, partition=number % PARTITIONS)
    producer.flush(10)
    return range(first, first + count)


def join(*consumers: KafkaConsumer) -> None:
    """Poll these in turn until they are all members of one generation."""

    def polled() -> bool:
        for consumer in consumers:
            consumer.poll(5, max_records=1, update_offsets=False)
        return settled(list(consumers), PARTITIONS)

    until(polled)


# -- every record once ----------------------------------------------------------------------------


@pytest.mark.parametrize("assignor", [*EAGER, CooperativeStickyAssignor], ids=lambda one: one.name)
def test_every_record_is_read_once_whatever_the_members_do(
    producer: KafkaProducer, new_reader: Callable[..., Reader], assignor: Any
) -> None:
    config = {"partition_assignment_strategy": [assignor], **QUICK}
    readers: list[Reader] = []
    expected: set[int] = set()

    def numbers() -> list[int]:
        return sorted(number for reader in readers for number in reader.read)

    def step(*members: Reader) -> None:
        until(lambda: settled([one.consumer for one in members], PARTITIONS))
        expected.update(produce(producer, len(expected), 240))
        until(lambda: len(numbers()) >= len(expected))

    readers += [new_reader(**config) for _ in range(2)]
    step(*readers)
    produce_during_join = produce(producer, len(expected), 600)
    expected.update(produce_during_join)
    readers.append(new_reader(**config))
    step(*readers)
    readers[0].leave()
    step(*readers[1:])
    readers[1].crash()
    step(readers[2])
    assert numbers() == sorted(expected)


def test_ten_members_share_the_partitions(producer: KafkaProducer, new_reader: Callable[..., Reader]) -> None:
    expected = produce(producer, 0, 1200)
    readers = [new_reader() for _ in range(10)]
    consumers = [reader.consumer for reader in readers]
    until(lambda: settled(consumers, PARTITIONS))
    assert sorted(len(consumer.assignment()) for consumer in consumers) == [1] * 8 + [2] * 2
    until(lambda: sum(len(reader.read) for reader in readers) >= 1200)
    assert sorted(number for reader in readers for number in reader.read) == list(expected)


# -- how long it takes ----------------------------------------------------------------------------


def test_the_first_record_of_a_new_group_comes_at_once(producer: KafkaProducer, new_member: Members) -> None:
    produce(producer, 0, 1)
    consumer = new_member()
    start = time.monotonic()
    next(consumer)
    assert time.monotonic() - start < 1  # 0.1 where nothing else is going on


def test_ten_members_rebalance_at_once(new_reader: Callable[..., Reader]) -> None:
    readers = [new_reader(fetch_max_wait_ms=20_000) for _ in range(9)]
    consumers = [reader.consumer for reader in readers]
    until(lambda: settled(consumers, PARTITIONS))
    start = time.monotonic()
    consumers.append(new_reader().consumer)
    until(lambda: settled(consumers, PARTITIONS))
    assert time.monotonic() - start < 3  # 0.5 where nothing else is going on


def test_members_that_wait_for_records_hear_of_a_rebalance_at_once(
    new_member: Members, new_reader: Callable[..., Reader]
) -> None:
    first = new_member(fetch_max_wait_ms=20_000)
    join(first)
    waiting = threading.Thread(target=first.poll, args=(1500,))
    waiting.start()
    start = time.monotonic()
    second = new_reader()
    until(lambda: settled([first, second.consumer], PARTITIONS))
    assert time.monotonic() - start < 1.5
    waiting.join()


def test_polls_that_do_not_wait_get_there_as_well(producer: KafkaProducer, new_member: Members) -> None:
    produce(producer, 0, 1)
    consumer = new_member()
    start = time.monotonic()
    assert consumer.poll(0) == {}
    assert time.monotonic() - start < 1
    assert until(lambda: consumer.poll(0))


# -- listeners ------------------------------------------------------------------------------------


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


def test_cooperative_members_give_up_only_what_moves(new_member: Members) -> None:
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


def test_a_listener_may_commit_what_is_revoked(producer: KafkaProducer, new_member: Members) -> None:
    produce(producer, 0, PARTITIONS)

    class Committing(Recorder):
        def on_partitions_revoked(self, revoked: set[TopicPartition]) -> None:
            super().on_partitions_revoked(revoked)
            if revoked:
                first.commit()

    first = new_member(listener=Committing())
    until(lambda: first.poll(100) == {} and first.assignment())
    second = new_member()
    join(first, second)
    assert {second.committed(partition) for partition in second.assignment()} == {1}


def test_positions_are_committed_before_partitions_are_revoked(
    producer: KafkaProducer, new_member: Members
) -> None:
    produce(producer, 0, PARTITIONS)
    first = new_member(enable_auto_commit=True, auto_commit_interval_ms=60_000)
    until(lambda: first.poll(100) == {} and first.assignment())
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
    assert time.monotonic() - start < 5  # far less than the session timeout
    assert second.assignment() == set(T)


# -- dying, stalling, being lost ------------------------------------------------------------------


def test_the_partitions_of_a_member_that_died_go_to_the_others(new_member: Members) -> None:
    first, second = new_member(**QUICK), new_member(**QUICK)
    join(first, second)
    silence(first)
    join(second)
    assert second.assignment() == set(T)


def test_heartbeats_go_on_while_the_program_computes(new_member: Members) -> None:
    consumer = new_member(**QUICK)
    join(consumer)
    before = consumer.group_metadata()
    time.sleep(1.0)
    consumer.poll(10)
    assert consumer.group_metadata() == before


def test_a_program_that_does_not_poll_loses_its_partitions(
    producer: KafkaProducer, new_member: Members
) -> None:
    produce(producer, 0, PARTITIONS)
    listener = Recorder()
    slow = new_member(listener=listener, max_poll_interval_ms=200)
    until(lambda: slow.poll(100))
    other = new_member()
    join(other)  # while the slow one computes, the other gets everything
    assert slow.group_metadata().state == "<unjoined>"
    with pytest.raises(CommitFailedError):
        slow.commit()
    join(slow, other)
    assert [what for what, _ in listener.told()] == ["revoked", "assigned", "lost", "assigned"]
    slow.commit()


def test_a_member_that_was_taken_for_dead_finds_out(producer: KafkaProducer, new_member: Members) -> None:
    produce(producer, 0, PARTITIONS)
    listener = Recorder()
    consumer = new_member(listener=listener, **QUICK)
    until(lambda: consumer.poll(100))
    silence(consumer)
    other = new_member()
    join(other)
    with pytest.raises(CommitFailedError) as refused:
        consumer.commit()
    assert "UnknownMemberIdError" in repr(refused.value)
    join(consumer, other)
    assert [what for what, _ in listener.told()] == ["revoked", "assigned", "lost", "assigned"]


def test_an_asynchronous_commit_of_a_lost_member_fails(producer: KafkaProducer, new_member: Members) -> None:
    produce(producer, 0, PARTITIONS)
    consumer = new_member(**QUICK)
    until(lambda: consumer.poll(100))
    silence(consumer)
    join(new_member())
    outcomes: list[Any] = []
    consumer.commit_async(callback=lambda offsets, outcome: outcomes.append(outcome))
    until(lambda: consumer.poll(10) or outcomes)
    assert isinstance(outcomes[0], CommitFailedError)


def test_a_commit_during_a_rebalance_says_so(new_member: Members) -> None:
    first = new_member()
    join(first)
    second = new_member()
    assert second.poll(20) == {}  # it waits for the first one, which computes
    with pytest.raises(RebalanceInProgressError):
        second.commit({T[0]: _at(1)})
    assert second.group_metadata().state == "<rebalancing>"
    join(first, second)
    second.commit({T[0]: _at(1)})


def _at(offset: int) -> Any:
    from compat.kafka import OffsetAndMetadata

    return OffsetAndMetadata(offset, "", -1)


def test_a_consumer_that_is_dropped_leaves(new_member: Members, broker: Broker) -> None:
    config = {"group_id": "g", "bootstrap_servers": broker.bootstrap_servers}
    dropped = KafkaConsumer(**config)
    listener: Any = Recorder()
    listener.consumer = dropped
    dropped.subscribe(["t"], listener=listener)
    join(dropped)
    del dropped, listener
    gc.collect()
    other = new_member()
    start = time.monotonic()
    join(other)
    assert time.monotonic() - start < 10  # far less than the session timeout


# -- subscriptions --------------------------------------------------------------------------------


def test_new_partitions_are_noticed_and_shared(new_member: Members, broker: Broker) -> None:
    first, second = new_member(), new_member()
    join(first, second)
    with KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers) as admin:
        admin.create_partitions({"t": PARTITIONS + 4})
    until(lambda: (first.poll(10), second.poll(10)) and settled([first, second], PARTITIONS + 4))
    assert len(first.assignment()) == len(second.assignment()) == (PARTITIONS + 4) / 2


@pytest.mark.parametrize("assignor", [RangePartitionAssignor, CooperativeStickyAssignor])
def test_members_may_change_what_they_subscribe_to(
    new_member: Members, broker: Broker, assignor: Any
) -> None:
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
        producer.send("fewer", b"old", partition=1).get(10)
        until(lambda: has_read(b"old"))
        admin.delete_topics(["fewer"])
        admin.create_topics({"fewer": {"num_partitions": 1}})
        with KafkaProducer(bootstrap_servers=broker.bootstrap_servers) as another:
            another.send("fewer", b"new", partition=0).get(10)
        until(lambda: has_read(b"new") and consumer.assignment() == {TopicPartition("fewer", 0)})


def test_unsubscribing_leaves_and_subscribing_joins_again(new_member: Members) -> None:
    first, second = new_member(), new_member()
    join(first, second)
    first.unsubscribe()
    join(second)
    assert first.assignment() == set()
    first.subscribe(["t"])
    join(first, second)


# -- static members -------------------------------------------------------------------------------


def test_a_static_member_that_restarts_disturbs_nobody(new_member: Members) -> None:
    listener = Recorder()
    first = new_member(listener=listener)
    second = new_member(group_instance_id="i")
    join(first, second)
    told = len(listener.calls)
    had = second.assignment()
    second.close()
    again = new_member(group_instance_id="i")
    until(lambda: (again.poll(10), first.poll(10)) and again.assignment())
    assert again.assignment() == had
    assert again.group_metadata().group_instance_id == "i"
    assert again.group_metadata().generation_id == first.group_metadata().generation_id
    assert len(listener.calls) == told


def test_the_instance_that_was_there_before_is_fenced(new_member: Members) -> None:
    old = new_member(group_instance_id="i")
    join(old)
    new = new_member(group_instance_id="i")
    join(new)
    with pytest.raises(FencedInstanceIdError):
        old.commit({T[0]: _at(1)})
    with pytest.raises(FencedInstanceIdError):
        until(lambda: old.poll(50))
    assert new.assignment() == set(T)


# -- what is refused ------------------------------------------------------------------------------


def test_members_need_an_assignor_in_common(new_member: Members) -> None:
    join(new_member(partition_assignment_strategy=[RangePartitionAssignor]))
    with pytest.raises(InconsistentGroupProtocolError):
        new_member(partition_assignment_strategy=[RoundRobinPartitionAssignor]).poll(1000)


def test_session_timeouts_have_bounds(new_member: Members) -> None:
    with pytest.raises(InvalidSessionTimeoutError):
        new_member(session_timeout_ms=2_000_000).poll(1000)
    with pytest.raises(KafkaConfigurationError, match="Heartbeat interval"):
        new_member(session_timeout_ms=500, heartbeat_interval_ms=500)


def test_a_member_of_no_group_may_not_commit_for_one_that_has_members(new_member: Members) -> None:
    join(new_member())
    outsider = new_member(subscribe=False)
    outsider.assign([T[0]])
    with pytest.raises(CommitFailedError):
        outsider.commit({T[0]: _at(1)})


def test_an_assignor_that_fails_is_the_leaders_error(new_member: Members) -> None:
    class Failing(RangePartitionAssignor):
        fails = True

        def assign(self, cluster: Any, members: Any) -> Any:  # type: ignore[override]
            if self.fails:
                raise ZeroDivisionError
            return RangePartitionAssignor.assign(cluster, members)

    assignor = Failing()
    consumer = new_member(partition_assignment_strategy=[assignor])
    with pytest.raises(ZeroDivisionError):
        consumer.poll(1000)
    assignor.fails = False
    join(consumer)


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


# -- the rest -------------------------------------------------------------------------------------


def test_closing_from_another_thread_ends_the_wait_for_other_members(new_member: Members) -> None:
    first = new_member()
    join(first)
    second = new_member()
    timer = threading.Timer(0.2, second.close)
    timer.start()
    start = time.monotonic()
    assert second.poll(30_000) == {}  # the first one does not come
    assert time.monotonic() - start < 10
    timer.join()


def test_members_speak_kafka_pythons_octets(new_member: Members) -> None:
    consumer = new_member()
    join(consumer)
    described = consumer._client.call(consumer._client.broker.describe_groups, ["g"])["g"]
    (member,) = described.members
    assert described.protocol == "range"
    assert list(ConsumerProtocolSubscription.decode(member.metadata).topics) == ["t"]
    assert member.member_id == consumer.group_metadata().member_id
    assert member.client_id == consumer.config["client_id"]
