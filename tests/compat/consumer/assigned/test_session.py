"""The heartbeats of a member whose partitions the broker assigns, with a broker that answers as told."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import gevent
import pytest
from kafka.errors import (
    CoordinatorNotAvailableError,
    FencedMemberEpochError,
    GroupMaxSizeReachedError,
    UnknownMemberIdError,
    UnreleasedInstanceIdError,
)
from timing import until

from compat.kafka.consumer._assigned.session import AssignedSession
from dafka.broker import BrokerStoppedError
from dafka.broker.interface.consumer_groups import ConsumerHeartbeat, ConsumerHeartbeatAnswer
from dafka.hub.hub import get_hub

A = UUID(int=1)
CONFIG = {
    "group_id": "g",
    "client_id": "c",
    "client_rack": "",
    "group_remote_assignor": None,
    "max_poll_interval_ms": 100_000,
    "retry_backoff_ms": 10,
    "group_instance_id": None,
}


class Fake:
    """A broker, and the client of it: notes heartbeats, and answers with what a test has put in."""

    is_remote = True

    def __init__(self) -> None:
        self.hub = get_hub()
        self.broker = self
        self.asked: list[ConsumerHeartbeat] = []
        self.answers: list[ConsumerHeartbeatAnswer] = []
        self.names = {A: "a"}
        self.epoch = 1
        self.failure: Exception | None = None
        self.delay = 0.0  # seconds until it answers

    def consumer_group_heartbeat(self, group: str, request: ConsumerHeartbeat) -> ConsumerHeartbeatAnswer:
        self.asked.append(request)
        gevent.sleep(self.delay)
        if self.failure is not None:
            raise self.failure
        if self.answers:
            return self.answers.pop(0)
        assignment = {A: frozenset({0})} if request.member_epoch == 0 else None
        return ConsumerHeartbeatAnswer(None, "", request.member_id, self.epoch, 0.02, assignment)

    def topic_names(self, ids: Any) -> dict[UUID, str]:
        return {one: self.names[one] for one in ids if one in self.names}

    def interrupted(self) -> None:
        pass


@pytest.fixture
def fake() -> Fake:
    return Fake()


@pytest.fixture
def begin(fake: Fake) -> Iterator[Callable[..., AssignedSession]]:
    made: list[AssignedSession] = []

    def make(**config: Any) -> AssignedSession:
        calls = SimpleNamespace(within=lambda timeout, what, fn, *args: fake.hub.run(fn, *args))
        session = AssignedSession(fake, calls, {**CONFIG, **config}, fake.interrupted)  # type: ignore[arg-type]
        session.subscribe(["a"])
        made.append(session)
        return session

    yield make
    for session in made:
        session.leave(None)


def test_the_first_heartbeat_says_everything_and_the_next_ones_what_has_changed(fake, begin):
    session = begin()
    until(lambda: session.assigned == {("a", 0)} and session.called)
    first = fake.asked[0]
    assert (first.member_epoch, first.topics, first.owned, first.rebalance_timeout) == (0, ("a",), {}, 100.0)
    session.owns([("a", 0)])
    until(lambda: any(one.owned == {A: {0}} for one in fake.asked))
    seen = len(fake.asked)
    until(lambda: len(fake.asked) > seen + 2)
    later = fake.asked[-1]
    assert (later.member_epoch, later.topics, later.owned, later.rebalance_timeout) == (1, None, None, None)


def test_after_an_answer_that_did_not_come_everything_is_said_again(fake, begin):
    session = begin()
    until(lambda: session.epoch == 1)
    fake.answers.append(ConsumerHeartbeatAnswer(CoordinatorNotAvailableError))
    until(lambda: not fake.answers)
    until(lambda: fake.asked[-1].member_epoch == 1)
    until(lambda: [one for one in fake.asked if one.member_epoch == 1 and one.topics is not None])
    assert not session.lost


def test_partitions_the_program_still_owns_are_never_reported_as_revoked(fake, begin):
    session = begin()
    until(lambda: session.assigned == {("a", 0)})
    session.owns([("a", 0)])
    fake.answers.append(ConsumerHeartbeatAnswer(None, "", "m", 1, 0.02, {}))
    until(lambda: session.assigned == frozenset())
    seen = len(fake.asked)
    fake.answers.append(ConsumerHeartbeatAnswer(CoordinatorNotAvailableError))
    said = until(lambda: [one.owned for one in fake.asked[seen:] if one.topics is not None])
    assert said[0] == {A: {0}}
    session.owns([])
    until(lambda: any(one.owned == {} for one in fake.asked[seen:]))


def test_partitions_the_program_may_begin_to_read_are_not_reported_as_revoked(fake, begin):
    session = begin()
    until(lambda: session.assigned == {("a", 0)})
    fake.answers.append(ConsumerHeartbeatAnswer(None, "", "m", 1, 0.02, {}))
    seen = len(fake.asked)
    until(lambda: session.assigned == frozenset())
    fake.answers.append(ConsumerHeartbeatAnswer(CoordinatorNotAvailableError))
    said = until(lambda: [one.owned for one in fake.asked[seen + 1 :] if one.topics is not None])
    assert said[0] == {A: {0}}


def test_a_fenced_member_waits_for_its_program_and_joins_again(fake, begin):
    session = begin()
    until(lambda: session.epoch == 1)
    session.owns([("a", 0)])
    fake.answers.append(ConsumerHeartbeatAnswer(FencedMemberEpochError))
    until(lambda: session.lost)
    assert (session.epoch, session.assigned) == (0, None)
    fake.epoch = 5
    seen = len(fake.asked)
    session.rejoin()
    until(lambda: session.epoch == 5)
    assert (fake.asked[seen].member_epoch, fake.asked[seen].owned) == (0, {})
    assert fake.asked[seen].member_id == fake.asked[0].member_id


def test_a_fenced_static_member_gives_its_own_place_up_and_joins_again(fake, begin):
    session = begin(group_instance_id="i")
    until(lambda: session.epoch == 1)
    fake.answers.append(ConsumerHeartbeatAnswer(FencedMemberEpochError))
    until(lambda: session.lost)
    seen = len(fake.asked)
    fake.answers.append(ConsumerHeartbeatAnswer(UnreleasedInstanceIdError))
    session.rejoin()
    until(lambda: session.epoch == 1)
    assert [one.member_epoch for one in fake.asked[seen : seen + 3]] == [0, -2, 0]
    assert {one.member_id for one in fake.asked} == {session.member_id} and session.failure is None


@pytest.mark.parametrize("is_another", [False, True])
def test_a_static_member_may_have_joined_already_where_a_join_is_repeated_on_the_way(fake, begin, is_another):
    """What refuses it may be its own join, whose answer was lost; if not, the next answer says so."""
    refused = ConsumerHeartbeatAnswer(UnreleasedInstanceIdError)
    fake.answers += [refused, refused, refused] if is_another else [refused]
    session = begin(group_instance_id="i")
    if is_another:
        until(lambda: isinstance(session.failure, UnreleasedInstanceIdError))
    else:
        until(lambda: session.epoch == 1)
    assert [one.member_epoch for one in fake.asked[:3]] == [0, -2, 0]


def test_a_place_that_is_another_members_is_not_given_up(fake, begin):
    fake.is_remote = False
    fake.answers.append(ConsumerHeartbeatAnswer(UnreleasedInstanceIdError))
    session = begin(group_instance_id="i")
    until(lambda: isinstance(session.failure, UnreleasedInstanceIdError))
    assert [one.member_epoch for one in fake.asked] == [0]


def test_a_refused_commit_of_the_epoch_loses_the_membership_and_an_older_one_does_not(fake, begin):
    fake.epoch = 2
    session = begin()
    until(lambda: session.epoch == 2)
    session.lose(1)
    session.lose(2)
    until(lambda: session.lost)


def test_errors_of_the_group_reach_the_program(fake, begin):
    fake.answers.append(ConsumerHeartbeatAnswer(GroupMaxSizeReachedError))
    session = begin()
    until(lambda: isinstance(session.failure, GroupMaxSizeReachedError))
    session.wait(100)  # returns at once


def test_a_topic_whose_name_is_not_known_yet_comes_later(fake, begin):
    fake.names = {}
    session = begin()
    until(lambda: session.assigned == frozenset())
    fake.names = {A: "a"}
    until(lambda: session.assigned == {("a", 0)})


@pytest.mark.parametrize(("instance", "epoch"), [(None, -1), ("i", -2)])
def test_leaving_says_whether_the_member_will_come_back(fake, begin, instance, epoch):
    session = begin(group_instance_id=instance)
    until(lambda: session.epoch == 1)
    session.leave(None)
    assert fake.asked[-1].member_epoch == epoch


def test_a_member_whose_broker_was_stopped_goes_on_when_it_is_there_again(fake, begin):
    session = begin()
    until(lambda: session.epoch == 1)
    fake.failure = BrokerStoppedError("stopped")
    stopped = len(fake.asked)
    until(lambda: len(fake.asked) > stopped + 1)
    fake.failure, fake.answers = None, [ConsumerHeartbeatAnswer(UnknownMemberIdError, "")]
    until(lambda: session.lost)
    session.rejoin()
    until(lambda: session.epoch == 1)


def test_a_member_that_ends_before_it_knows_that_it_has_joined_leaves_as_well(fake, begin):
    fake.delay = 0.2
    session = begin()
    until(lambda: fake.asked)
    session.leave(None)
    assert [one.member_epoch for one in fake.asked] == [0, -1]


def test_a_program_that_does_not_poll_leaves_the_group(fake, begin):
    session = begin()
    until(lambda: session.epoch > 0)
    session._poll_interval = 0.05  # from now on: on a busy machine joining takes longer
    until(lambda: session.lost)
    assert fake.asked[-1].member_epoch == -1


def test_a_heartbeat_that_cannot_be_sent_is_an_error_for_the_program(fake, begin):
    fake.failure = ZeroDivisionError()
    session = begin()
    until(lambda: session.failure is fake.failure)
    assert session.called
