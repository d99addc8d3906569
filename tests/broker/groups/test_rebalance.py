"""How long a rebalance waits for joins, at any time that a test chooses."""

from __future__ import annotations

import pytest

from dafka.broker.groups.members import Member, Members
from dafka.broker.groups.rebalance import JoinPhase
from dafka.broker.interface.groups import JoinRequest
from dafka.broker.limits import INITIAL_DELAY, INITIAL_DELAY_MAX, INITIAL_DELAY_UNREADY

NOW = 1000.0
TIMEOUT = 60.0


def add(members: Members, name: str, *, joined: bool = True, knows_partitions: bool = True) -> Member:
    request = JoinRequest("", 10.0, TIMEOUT, "consumer", [("range", b"")], knows_partitions=knows_partitions)
    member = Member(name, request, NOW)
    member.join = (lambda answer: None) if joined else None
    members.add(member)
    return member


@pytest.fixture
def members() -> Members:
    return Members()


@pytest.fixture
def phase() -> JoinPhase:
    return JoinPhase()


@pytest.mark.parametrize(
    ("knows_partitions", "delay"), [(True, INITIAL_DELAY), (False, INITIAL_DELAY_UNREADY)]
)
def test_the_first_generation_has_an_initial_delay(phase, members, knows_partitions, delay):
    add(members, "a", knows_partitions=knows_partitions)
    phase.begin(NOW, members, initial=True)
    assert phase.wake_at(NOW) == NOW + delay
    assert not phase.is_complete(NOW + delay * 0.9, members)
    assert phase.is_complete(NOW + delay, members)


def test_new_members_extend_the_initial_delay_up_to_its_maximum(phase, members):
    add(members, "a")
    phase.begin(NOW, members, initial=True)
    phase.extend(NOW + INITIAL_DELAY / 2)
    assert phase.wake_at(NOW) == pytest.approx(NOW + INITIAL_DELAY * 1.5, rel=1e-12)
    phase.extend(NOW + INITIAL_DELAY_MAX)
    assert phase.wake_at(NOW) == NOW + INITIAL_DELAY_MAX


def test_a_later_rebalance_is_complete_when_all_have_joined_or_after_the_rebalance_timeout(phase, members):
    add(members, "a")
    missing = add(members, "b", joined=False)
    phase.begin(NOW, members, initial=False)
    phase.extend(NOW + 1)  # there is no initial delay to extend
    assert phase.wake_at(NOW) == NOW + TIMEOUT
    assert not phase.is_complete(NOW + TIMEOUT - 1, members)
    assert phase.is_complete(NOW + TIMEOUT, members)
    missing.join = lambda answer: None
    assert phase.is_complete(NOW, members)


@pytest.mark.parametrize("initial", [True, False])
def test_only_a_later_rebalance_waits_for_pending_ids(phase, members, initial):
    add(members, "a")
    members.pending["b"] = NOW + 10
    phase.begin(NOW, members, initial=initial)
    assert phase.is_complete(NOW + INITIAL_DELAY, members) is initial


def test_a_rebalance_without_any_join_waits_for_one_more_timeout(phase, members):
    add(members, "a", joined=False)
    phase.begin(NOW, members, initial=False)
    phase.begin_again(NOW + TIMEOUT, members)
    assert not phase.is_complete(NOW + TIMEOUT, members)
    assert phase.is_complete(NOW + 2 * TIMEOUT, members)


def test_an_ended_phase_never_wakes(phase, members):
    add(members, "a")
    phase.begin(NOW, members, initial=False)
    phase.end()
    assert phase.wake_at(NOW) == float("inf")
