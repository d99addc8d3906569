"""A consumer's positions: where they come from, and what becomes of commits."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from time import monotonic
from typing import Any

import pytest
from kafka.consumer.subscription_state import SubscriptionState
from timing import until

from compat.kafka._calls import Calls
from compat.kafka.consumer._membership import Identity, Membership
from compat.kafka.consumer._offsets import Positions
from compat.kafka.errors import (
    CommitFailedError,
    FencedInstanceIdError,
    IllegalGenerationError,
    KafkaTimeoutError,
    NoOffsetForPartitionError,
    NotCoordinatorError,
    NotLeaderForPartitionError,
    RebalanceInProgressError,
    UnknownMemberIdError,
    UnknownTopicOrPartitionError,
    UnstableOffsetCommitError,
)
from compat.kafka.structs import ConsumerGroupMetadata, OffsetAndMetadata, TopicPartition
from dafka.broker.interface.broker import CommittedOffset, ListedOffset
from dafka.hub.hub import get_hub

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
SECONDS = 100.0
CONFIG = {
    "group_id": "g",
    "group_instance_id": None,
    "isolation_level": "read_uncommitted",
    "auto_commit_interval_ms": 5_000,
    "enable_auto_commit": True,
    "retry_backoff_ms": 5,
    "request_timeout_ms": 20_000,
    "default_offset_commit_callback": None,
}
AT_5 = {T0: OffsetAndMetadata(5, "m", 3)}


class Broker:
    """A broker whose answers are scripted: the next of a list, and after the last one no error."""

    def __init__(self) -> None:
        self.committed: dict[tuple[str, int], CommittedOffset] = {}
        self.commits: list[dict[Any, CommittedOffset]] = []
        self.commit_errors: list[Any] = []
        self.fetch_errors: list[Any] = []
        self.list_errors: list[Any] = []
        self.ends = {("t", 0): 10, ("t", 1): 20}
        self.listed: list[Any] = []
        self.stable: list[bool] = []

    def fetch_offsets(self, group: str, wanted: Iterable[Any], *, require_stable: bool) -> Any:
        self.stable.append(require_stable)
        if self.fetch_errors:
            raise self.fetch_errors.pop(0)
        return {key: self.committed[key] for key in wanted if key in self.committed}

    def list_offsets(self, timestamps: dict[Any, int], *, read_committed: bool) -> Any:
        self.listed.append(timestamps)
        error = self.list_errors.pop(0) if self.list_errors else None
        return {
            key: ListedOffset(error) if error else ListedOffset(None, 0 if when == -2 else self.ends[key])
            for key, when in timestamps.items()
        }

    def commit_offsets(self, group: str, offsets: dict[Any, CommittedOffset], **name: Any) -> Any:
        self.commits.append(offsets)
        error = self.commit_errors.pop(0) if self.commit_errors else None
        return dict.fromkeys(offsets, error)


class Client:
    """What positions need of a client."""

    def __init__(self, broker: Any) -> None:
        self.hub = get_hub()
        self.broker = broker

    def call(self, fn: Callable[..., Any], *args: Any) -> Any:
        return self.hub.run(fn, *args)

    def pause(self, seconds: float) -> None:
        waiter = self.hub.waiter()
        waiter.wait(seconds)
        waiter.close()


class Member(Membership):
    """A member of generation 4, or one that has no name to commit under."""

    wait_slice = 1.0
    generation = 4

    def __init__(self) -> None:
        self.refused: list[Any] = []
        self.nameless: Exception | None = None
        self.outdated = 0

    def identity(self) -> Identity:
        if self.nameless is not None:
            raise self.nameless
        return 4, "m", None

    def commit_refused(self, error: type[Exception], generation: int, member_id: str) -> None:
        self.refused.append((error, generation, member_id))

    def changed(self) -> None:
        self.outdated += 1

    def poll(self, deadline: float, before_revoking: Callable[[float | None], None]) -> bool:
        return True

    def interrupt(self) -> None: ...

    def leave(self, timeout_ms: float | None) -> None: ...

    def close(self, timeout_ms: float | None) -> None: ...

    def metadata(self) -> ConsumerGroupMetadata:
        return ConsumerGroupMetadata(group_id="g")

    def partitions_for_topic(self, topic: str) -> Iterable[int] | None:
        return None


@pytest.fixture
def broker() -> Broker:
    return Broker()


@pytest.fixture
def member() -> Member:
    return Member()


@pytest.fixture
def subscription() -> SubscriptionState:
    state = SubscriptionState("earliest")
    state.assign_from_user([T0, T1])
    return state


@pytest.fixture
def new_positions(
    broker: Broker, member: Member, subscription: SubscriptionState
) -> Callable[..., Positions]:
    def make(state: SubscriptionState = subscription, **config: Any) -> Positions:
        client: Any = Client(broker)
        return Positions(client, Calls(client), state, member, {**CONFIG, **config})

    return make


def resolve(positions: Positions) -> bool:
    return positions.resolve(monotonic() + SECONDS)


def at(subscription: SubscriptionState) -> list[int | None]:
    """The offsets of both positions."""
    found = [subscription.assignment[one].position for one in (T0, T1)]
    return [None if one is None else one.offset for one in found]


# -- where positions come from ------------------------------------------------------------------------


def test_a_committed_offset_comes_before_the_reset_policy(
    broker: Broker, subscription: SubscriptionState, new_positions: Callable[..., Positions]
) -> None:
    broker.committed = {("t", 0): CommittedOffset(7)}
    assert resolve(new_positions())
    assert at(subscription) == [7, 0]
    assert broker.listed == [{("t", 1): -2}]


def test_without_a_group_nothing_committed_is_asked_for(
    broker: Broker, subscription: SubscriptionState, new_positions: Callable[..., Positions]
) -> None:
    assert resolve(new_positions(group_id=None))
    assert at(subscription) == [0, 0] and not broker.stable


def test_without_an_offset_and_a_policy_there_is_an_error(new_positions: Callable[..., Positions]) -> None:
    state = SubscriptionState("none")
    state.assign_from_user([T0])
    with pytest.raises(NoOffsetForPartitionError):
        resolve(new_positions(state))


def test_a_partition_whose_leader_has_moved_is_reset_later_and_the_metadata_looked_at(
    broker: Broker,
    member: Member,
    subscription: SubscriptionState,
    new_positions: Callable[..., Positions],
) -> None:
    broker.list_errors = [NotLeaderForPartitionError]
    positions = new_positions()
    assert not resolve(positions)
    assert at(subscription) == [None, None] and member.outdated
    until(lambda: resolve(positions))
    assert at(subscription) == [0, 0]


def test_offsets_of_an_open_transaction_are_waited_for_by_readers_of_committed_records(
    broker: Broker, new_positions: Callable[..., Positions]
) -> None:
    broker.fetch_errors = [UnstableOffsetCommitError(), UnstableOffsetCommitError()]
    assert resolve(new_positions(isolation_level="read_committed"))
    assert broker.stable == [True, True, True]


def test_offsets_at_a_time_are_asked_for_until_every_partition_is_found(
    broker: Broker, new_positions: Callable[..., Positions]
) -> None:
    broker.list_errors = [NotLeaderForPartitionError]
    found = new_positions().offsets_at({T0: -1, T1: -1}, 20_000)
    assert {one: offset and offset.offset for one, offset in found.items()} == {T0: 10, T1: 20}
    assert len(broker.listed) == 2


def test_offsets_of_a_partition_that_stays_unknown_end_with_the_timeout(
    broker: Broker, new_positions: Callable[..., Positions]
) -> None:
    broker.list_errors = [NotLeaderForPartitionError] * 1000
    with pytest.raises(KafkaTimeoutError):
        new_positions().offsets_at({T0: -1}, 50)


# -- commits ------------------------------------------------------------------------------------------


def test_a_commit_has_offset_metadata_and_leader_epoch(
    broker: Broker, new_positions: Callable[..., Positions]
) -> None:
    new_positions().commit(AT_5, None)
    assert broker.commits == [{("t", 0): CommittedOffset(5, "m", 3)}]


def test_a_commit_is_repeated_while_its_error_passes(
    broker: Broker, new_positions: Callable[..., Positions]
) -> None:
    broker.commit_errors = [NotCoordinatorError, NotCoordinatorError]
    new_positions().commit(AT_5, None)
    assert len(broker.commits) == 3


def test_a_commit_whose_error_lasts_ends_with_its_timeout(
    broker: Broker, new_positions: Callable[..., Positions]
) -> None:
    broker.commit_errors = [NotCoordinatorError] * 1000
    with pytest.raises(KafkaTimeoutError):
        new_positions().commit(AT_5, 50)


@pytest.mark.parametrize("error", [UnknownMemberIdError, IllegalGenerationError, RebalanceInProgressError])
def test_a_commit_that_the_group_refuses_fails_and_the_membership_hears_of_it(
    broker: Broker, member: Member, new_positions: Callable[..., Positions], error: Any
) -> None:
    broker.commit_errors = [error]
    with pytest.raises(CommitFailedError):
        new_positions().commit(AT_5, None)
    assert member.refused == [(error, 4, "m")]


def test_malformed_offsets_are_refused_before_they_are_sent(
    broker: Broker, new_positions: Callable[..., Positions]
) -> None:
    wrong: Any = {T0: 5}
    with pytest.raises(TypeError):
        new_positions().commit(wrong, None)
    with pytest.raises(struct.error):
        new_positions().commit({T0: OffsetAndMetadata(2**63, "", -1)}, None)
    assert not broker.commits


def test_callbacks_of_asynchronous_commits_are_called_in_the_programs_next_call(
    broker: Broker, new_positions: Callable[..., Positions]
) -> None:
    broker.commit_errors = [UnknownMemberIdError]
    positions, called = new_positions(), list[Any]()
    future = positions.commit_async(AT_5, lambda *outcome: called.append(outcome))
    until(lambda: future.is_done)
    assert not called
    positions.call_back()
    positions.call_back()
    assert [(offsets, type(error)) for offsets, error in called] == [(AT_5, CommitFailedError)]


def test_an_asynchronous_commit_without_a_membership_fails_and_is_not_sent(
    broker: Broker, member: Member, new_positions: Callable[..., Positions]
) -> None:
    member.nameless = CommitFailedError("left")
    future = new_positions().commit_async(AT_5, None)
    assert future.failed() and not broker.commits


def test_a_consumer_that_was_fenced_says_so_in_every_later_call(
    broker: Broker, new_positions: Callable[..., Positions]
) -> None:
    broker.commit_errors = [FencedInstanceIdError]
    positions = new_positions(group_instance_id="i")
    future = positions.commit_async(AT_5, None)
    until(lambda: future.is_done)
    for _ in range(2):
        with pytest.raises(FencedInstanceIdError, match="i"):
            positions.call_back()


# -- automatic commits --------------------------------------------------------------------------------


def test_an_automatic_commit_has_the_positions_and_is_due_once_an_interval(
    broker: Broker, subscription: SubscriptionState, new_positions: Callable[..., Positions]
) -> None:
    positions = new_positions(auto_commit_interval_ms=10)
    subscription.seek(T0, 3)
    until(positions.commit_is_due)
    positions.auto_commit_now()
    until(lambda: broker.commits)
    assert {key: one.offset for key, one in broker.commits[0].items()} == {("t", 0): 3}
    assert new_positions(auto_commit_interval_ms=60_000).commit_is_due() is False


def test_without_automatic_commits_none_is_sent(
    broker: Broker, subscription: SubscriptionState, new_positions: Callable[..., Positions]
) -> None:
    positions = new_positions(enable_auto_commit=False, auto_commit_interval_ms=0)
    subscription.seek(T0, 3)
    assert not positions.commit_is_due()
    positions.auto_commit_now()
    positions.auto_commit_and_wait()
    assert not broker.commits


@pytest.mark.parametrize("error", [UnknownTopicOrPartitionError, UnknownMemberIdError])
def test_an_automatic_commit_before_a_rebalance_does_not_wait_for_errors_that_last(
    broker: Broker, subscription: SubscriptionState, new_positions: Callable[..., Positions], error: Any
) -> None:
    broker.commit_errors = [error] * 1000
    subscription.seek(T0, 3)
    new_positions().auto_commit_and_wait(SECONDS * 1000)
    assert len(broker.commits) == 1
