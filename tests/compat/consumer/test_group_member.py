"""Several consumers in one group: their partitions, also when members come, go and die."""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Callable
from itertools import count, pairwise
from typing import Any

import pytest
from timing import takes_less, until

from compat.kafka import KafkaConsumer, KafkaProducer
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
    RebalanceInProgressError,
)
from compat.kafka.protocol.consumer.metadata import ConsumerProtocolSubscription
from dafka import Broker
from dafka.testing import TestBroker
from tests.compat.consumer.members import PARTITIONS, Members, T, join, produce
from tests.compat.consumer.readers import Reader, Recorder, settled, silence

EAGER = [RangePartitionAssignor, RoundRobinPartitionAssignor, StickyPartitionAssignor]
QUICK = {"session_timeout_ms": 400, "heartbeat_interval_ms": 50}


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
    groups = (new_member(group_id=f"g{number}") for number in count())
    assert takes_less(1, lambda: next(next(groups)))  # 0.1 where nothing else is going on


def test_ten_members_rebalance_at_once(new_reader: Callable[..., Reader]) -> None:
    readers = [new_reader(fetch_max_wait_ms=20_000) for _ in range(9)]
    consumers = [reader.consumer for reader in readers]
    until(lambda: settled(consumers, PARTITIONS))

    def join_another() -> None:
        consumers.append(new_reader(fetch_max_wait_ms=20_000).consumer)
        until(lambda: settled(consumers, PARTITIONS))

    assert takes_less(10, join_another, attempts=3)  # 0.5 where nothing else is going on


def test_members_that_wait_for_records_hear_of_a_rebalance_at_once(
    producer: KafkaProducer, new_member: Members, new_reader: Callable[..., Reader]
) -> None:
    first = new_member(fetch_max_wait_ms=29_000)
    join(first)
    waiting = threading.Thread(target=first.poll, args=(100_000,))
    waiting.start()
    start = time.monotonic()
    second = new_reader()
    until(lambda: settled([first, second.consumer], PARTITIONS))
    assert time.monotonic() - start < 25
    produce(producer, 0, PARTITIONS)
    waiting.join()


def test_polls_that_do_not_wait_get_there_as_well(producer: KafkaProducer, new_member: Members) -> None:
    produce(producer, 0, 1)
    consumer = new_member(fetch_max_wait_ms=29_000)
    start = time.monotonic()
    assert consumer.poll(0) == {}
    assert time.monotonic() - start < 25  # fetches wait so long
    assert until(lambda: consumer.poll(0))


# -- dying, stalling, being lost ------------------------------------------------------------------


def test_the_partitions_of_a_member_that_died_go_to_the_others(new_member: Members) -> None:
    first, second = new_member(**QUICK), new_member(**QUICK)
    join(first, second)
    silence(first)
    join(second)
    assert second.assignment() == set(T)


def test_heartbeats_go_on_while_the_program_computes(new_member: Members) -> None:
    consumer = new_member(**QUICK)

    def stays() -> bool:
        join(consumer)
        before = consumer.group_metadata()
        time.sleep(1.0)
        consumer.poll(10)
        return consumer.group_metadata() == before

    # Without heartbeats it is lost each time; a machine that stands still does it once.
    assert any(stays() for _ in range(8))


def test_heartbeats_without_an_interval_leave_the_hub_its_time(new_member: Members) -> None:
    consumer = new_member(heartbeat_interval_ms=0)
    join(consumer)
    assert consumer.poll(100) == {}
    assert consumer.assignment() == set(T)


def assert_lost_and_assigned_again(listener: Recorder) -> None:
    """It was told so at least once: a busy machine may lose it again, or make it wait for the others."""
    told = [what for what, _ in listener.told()]
    assert told[:2] == ["revoked", "assigned"] and told[-1] == "assigned"
    assert "lost" in told
    assert all(then == "assigned" for what, then in pairwise(told) if what in ("lost", "revoked"))
    assert all(then != "assigned" for what, then in pairwise(told) if what == "assigned")


def test_a_program_that_does_not_poll_loses_its_partitions(
    producer: KafkaProducer, new_member: Members
) -> None:
    produce(producer, 0, PARTITIONS)
    listener = Recorder()
    slow = new_member(listener=listener, max_poll_interval_ms=500)
    until(lambda: slow.poll(100))
    other = new_member()
    join(other)  # while the slow one computes, the other gets everything
    assert slow.group_metadata().state == "<unjoined>"
    with pytest.raises(CommitFailedError):
        slow.commit()

    def commits_again() -> bool:  # a busy machine may take it for slow once more
        join(slow, other)
        try:
            slow.commit()
        except CommitFailedError:
            return False
        return True

    until(commits_again)
    assert_lost_and_assigned_again(listener)


def test_a_program_that_waits_in_a_poll_is_not_taken_for_one_that_does_not_poll(new_member: Members) -> None:
    consumer = new_member(max_poll_interval_ms=500, heartbeat_interval_ms=50, fetch_max_wait_ms=2000)

    def stays() -> bool:
        join(consumer)
        before = consumer.group_metadata()
        assert consumer.poll(1500) == {}
        return consumer.group_metadata() == before

    # One that is taken for it is so each time; a machine that stands still does it once.
    assert any(stays() for _ in range(8))


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
    assert_lost_and_assigned_again(listener)


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
    # It waits for the first one, which computes.
    until(lambda: second.poll(20) == {} and second.group_metadata().state == "<rebalancing>")
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
    assert time.monotonic() - start < 40  # less than the session timeout


# -- static members -------------------------------------------------------------------------------


def test_a_static_member_that_restarts_causes_no_rebalance(new_member: Members) -> None:
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
        new_member(partition_assignment_strategy=[RoundRobinPartitionAssignor]).poll(100_000)


def test_session_timeouts_have_bounds(new_member: Members) -> None:
    with pytest.raises(InvalidSessionTimeoutError):
        new_member(session_timeout_ms=2_000_000).poll(100_000)
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
        consumer.poll(100_000)
    assignor.fails = False
    join(consumer)


# -- the rest -------------------------------------------------------------------------------------


def test_closing_from_another_thread_ends_the_wait_for_other_members(new_member: Members) -> None:
    first = new_member()
    join(first)
    second = new_member()
    timer = threading.Timer(0.2, second.close)
    timer.start()
    start = time.monotonic()
    assert second.poll(200_000) == {}  # the first one does not come
    assert time.monotonic() - start < 100
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


def test_a_join_that_ended_with_the_broker_is_made_again(broker: TestBroker, new_member: Members) -> None:
    one = new_member()
    join(one)
    other = new_member()
    member: Any = one._member
    until(lambda: one.poll(0) == other.poll(0) == {} and member._attempt is not None)
    broker.restart()
    until(lambda: member._attempt.outcome is not None)
    join(one, other)
