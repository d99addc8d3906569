"""A membership as the coordinator sees it: the effect of its answers to joins, syncs and heartbeats."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import gevent
import pytest
from kafka.errors import (
    FencedInstanceIdError,
    GroupMaxSizeReachedError,
    IllegalGenerationError,
    MemberIdRequiredError,
    NotCoordinatorError,
    RebalanceInProgressError,
    UnknownMemberIdError,
)
from timing import until

from compat.kafka._calls import Calls
from compat.kafka.consumer._group_session import NO_GENERATION, Session
from dafka.broker import BrokerStoppedError
from dafka.broker.interface.broker import Joined, JoinRequest, LeavingMember, Synced
from dafka.hub.hub import get_hub

SECONDS = 100.0
CONFIG = {
    "group_id": "g",
    "client_id": "c",
    "group_instance_id": None,
    "session_timeout_ms": 10_000,
    "heartbeat_interval_ms": 5,
    "max_poll_interval_ms": 60_000,
    "retry_backoff_ms": 5,
}
PROTOCOLS = [("range", b"metadata")]


class Coordinator:
    """A broker whose answers are scripted: the next of the list, and after the last one the default."""

    def __init__(self) -> None:
        self.joins: list[Any] = []
        self.syncs: list[Any] = []
        self.beats: list[Any] = []
        self.asked: list[JoinRequest] = []
        self.assigned: list[Any] = []
        self.left: list[LeavingMember] = []
        self.beaten = threading.Event()

    def join_group(self, group: str, request: JoinRequest) -> Joined:
        self.asked.append(request)
        error, member = self.joins.pop(0) if self.joins else (None, "m")
        leader = "m" if error is None and member == "m" else "other"
        return Joined(error, len(self.asked), "consumer", "range", leader, member, [])

    def sync_group(self, group: str, generation: int, member_id: str, *_: Any, **options: Any) -> Synced:
        self.assigned.append(options["assignments"])
        error = self.syncs.pop(0) if self.syncs else None
        return Synced(error, b"assignment", "consumer", "range")

    def heartbeat(self, *_: Any, max_wait: float) -> Any:
        gevent.sleep(max_wait)
        self.beaten.set()
        answer = self.beats.pop(0) if self.beats else None
        if isinstance(answer, Exception):
            raise answer
        return answer

    def leave_group(self, group: str, members: list[LeavingMember]) -> list[None]:
        self.left += members
        return [None]


class Client:
    """What a session needs of a client."""

    def __init__(self, broker: Any) -> None:
        self.hub = get_hub()
        self.broker = broker

    def call(self, fn: Callable[..., Any], *args: Any) -> Any:
        return self.hub.run(fn, *args)


class Program:
    """The program's thread, which a session may have to wake."""

    def __init__(self) -> None:
        self.woken = threading.Event()

    def wake(self) -> None:
        self.woken.set()


@pytest.fixture
def coordinator() -> Coordinator:
    return Coordinator()


@pytest.fixture
def program() -> Program:
    return Program()


@pytest.fixture
def new_session(coordinator: Coordinator, program: Program) -> Iterator[Callable[..., Session]]:
    made: list[Session] = []

    def make(**config: Any) -> Session:
        client: Any = Client(coordinator)
        made.append(Session(client, Calls(client), {**CONFIG, **config}, program.wake))
        return made[-1]

    yield make
    for session in made:
        session.leave(10_000)


def outcome(session: Session, **options: Any) -> Any:
    """The outcome of a join or sync."""
    attempt = session.join(PROTOCOLS, **options)
    assert attempt.wait(SECONDS)
    return attempt.outcome


def test_a_leader_is_asked_to_assign_before_it_syncs(
    coordinator: Coordinator, new_session: Callable[..., Session]
) -> None:
    session = new_session()
    joined = outcome(session)
    assert isinstance(joined, Joined) and not coordinator.assigned
    assert (session.generation, session.member_id, session.protocol) == (1, "m", "range")
    synced = outcome(session, assignments={"m": b"all"})
    assert isinstance(synced, Synced) and coordinator.assigned == [{"m": b"all"}]


def test_a_follower_joins_and_syncs_in_one_attempt(
    coordinator: Coordinator, new_session: Callable[..., Session]
) -> None:
    coordinator.joins = [(None, "f")]
    synced = outcome(new_session())
    assert isinstance(synced, Synced) and synced.assignment == b"assignment"
    assert coordinator.assigned == [None]


def test_a_member_without_an_id_joins_again_with_the_one_it_is_given(
    coordinator: Coordinator, new_session: Callable[..., Session]
) -> None:
    coordinator.joins = [(MemberIdRequiredError, "given"), (None, "given")]
    outcome(new_session())
    assert [request.member_id for request in coordinator.asked] == ["", "given"]


def test_a_join_is_repeated_while_the_coordinator_moves(
    coordinator: Coordinator, new_session: Callable[..., Session]
) -> None:
    coordinator.joins = [(NotCoordinatorError, ""), (RebalanceInProgressError, ""), (None, "m")]
    assert isinstance(outcome(new_session()), Joined)
    assert len(coordinator.asked) == 3


def test_a_sync_that_meets_a_rebalance_joins_again(
    coordinator: Coordinator, new_session: Callable[..., Session]
) -> None:
    coordinator.joins = [(None, "f"), (None, "f")]
    coordinator.syncs = [RebalanceInProgressError]
    assert isinstance(outcome(new_session()), Synced)
    assert len(coordinator.asked) == 2


@pytest.mark.parametrize("error", [UnknownMemberIdError, IllegalGenerationError])
def test_a_sync_of_an_unknown_member_loses_the_membership(
    coordinator: Coordinator, new_session: Callable[..., Session], error: Any
) -> None:
    coordinator.joins, coordinator.syncs = [(None, "f")], [error]
    session = new_session()
    assert isinstance(outcome(session), UnknownMemberIdError)
    assert session.lost and session.pending_error is error


@pytest.mark.parametrize(
    ("error", "config"), [(GroupMaxSizeReachedError, {}), (FencedInstanceIdError, {"group_instance_id": "i"})]
)
def test_an_error_that_lasts_is_the_outcome_of_a_join(
    coordinator: Coordinator, new_session: Callable[..., Session], error: Any, config: dict[str, Any]
) -> None:
    coordinator.joins = [(error, "")]
    assert type(outcome(new_session(**config))) is error


def test_a_heartbeat_that_meets_a_rebalance_wakes_the_program_and_goes_on(
    coordinator: Coordinator, program: Program, new_session: Callable[..., Session]
) -> None:
    coordinator.beats = [None, RebalanceInProgressError]
    session = new_session()
    outcome(session)
    assert program.woken.wait(SECONDS)
    assert session.called and session.pending_error is RebalanceInProgressError and not session.lost
    coordinator.beaten.clear()
    assert coordinator.beaten.wait(SECONDS)


def test_a_heartbeat_of_an_unknown_member_loses_the_membership(
    coordinator: Coordinator, program: Program, new_session: Callable[..., Session]
) -> None:
    coordinator.beats = [UnknownMemberIdError]
    session = new_session()
    outcome(session)
    assert program.woken.wait(SECONDS)
    assert session.lost
    session.forget()
    assert (session.member_id, session.generation, session.pending_error) == ("", NO_GENERATION, None)


def test_a_heartbeat_that_meets_a_stopped_broker_is_repeated(
    coordinator: Coordinator, program: Program, new_session: Callable[..., Session]
) -> None:
    coordinator.beats = [BrokerStoppedError("stopped"), UnknownMemberIdError]
    session = new_session()
    outcome(session)
    assert program.woken.wait(10)
    assert session.lost


def test_an_illegal_generation_keeps_the_member_id(
    coordinator: Coordinator, program: Program, new_session: Callable[..., Session]
) -> None:
    coordinator.beats = [IllegalGenerationError]
    session = new_session()
    outcome(session)
    assert program.woken.wait(SECONDS)
    session.forget()
    assert (session.member_id, session.generation) == ("m", NO_GENERATION)


def test_a_heartbeat_without_a_coordinator_is_repeated(
    coordinator: Coordinator, new_session: Callable[..., Session]
) -> None:
    coordinator.beats = [NotCoordinatorError, None]
    session = new_session()
    outcome(session)
    until(lambda: not coordinator.beats)
    assert not session.called and not session.lost


def test_a_program_that_does_not_poll_leaves_its_group(
    coordinator: Coordinator, new_session: Callable[..., Session]
) -> None:
    session = new_session(max_poll_interval_ms=50)
    outcome(session)
    until(lambda: coordinator.left)
    assert [one.member_id for one in coordinator.left] == ["m"]
    assert session.pending_error is UnknownMemberIdError


def test_a_refused_commit_counts_only_under_the_name_of_now(new_session: Callable[..., Session]) -> None:
    session = new_session()
    outcome(session)
    session.fail_membership(RebalanceInProgressError, 0, "m")
    assert not session.called
    session.fail_membership(UnknownMemberIdError, 1, "m")
    session.fail_membership(RebalanceInProgressError, 1, "m")
    assert session.pending_error is UnknownMemberIdError


def test_a_static_member_that_closes_stays_in_its_group(
    coordinator: Coordinator, new_session: Callable[..., Session]
) -> None:
    session = new_session(group_instance_id="i")
    outcome(session)
    session.leave(10_000)
    assert not coordinator.left and session.generation == NO_GENERATION


def test_a_newer_attempt_ends_one_that_was_left_under_way(
    coordinator: Coordinator, new_session: Callable[..., Session]
) -> None:
    coordinator.joins = [(RebalanceInProgressError, "")] * 10_000
    session = new_session()
    first = session.join(PROTOCOLS)
    assert not first.wait(0.02)
    coordinator.joins.clear()
    assert isinstance(outcome(session), Joined)
    until(lambda: first.green is not None and first.green.dead)
