"""A classic group goes on with the members that were kept."""

from __future__ import annotations

from collections import deque

from kafka.errors import RebalanceInProgressError

from dafka.broker.groups.generation import State
from dafka.broker.groups.group import Group
from dafka.broker.groups.kept_rows import SavedClassic, SavedGeneration
from dafka.broker.groups.restoring import restoring
from dafka.broker.interface.groups import JoinRequest
from dafka.broker.limits import EMPTY_SECONDS


def restored(*names, count=None, leader="a", settled=True):
    group = Group(5.0)
    members = [
        SavedClassic(name, JoinRequest(name, 10.0, 60.0, "consumer", [("range", b"")]), name.encode())
        for name in names
    ]
    whole = SavedGeneration(len(names) if count is None else count, 3, "consumer", "range", leader, settled)
    deque(restoring(5.0, group, whole, members), 0)
    return group


def test_sessions_begin_when_the_broker_does():
    group = restored("a", "b")
    assert group.state is State.STABLE and group.leader == "a" and group.wake_at == 15.0
    assert group.heartbeat(14.0, 3, "a", None) is None
    group.tick(15.0)
    assert list(group.members) == ["a"]


def test_without_a_member_that_is_not_kept_the_others_join_again():
    group = restored("b", count=2)
    assert group.leader == "b" and group.heartbeat(6.0, 3, "b", None) is RebalanceInProgressError


def test_a_group_that_was_about_to_rebalance_does_so():
    assert restored("a", settled=False).state is State.PREPARING


def test_nothing_becomes_of_a_group_without_members():
    assert restored(count=1).state is State.EMPTY


def test_it_is_not_ticked_for_having_been_empty_before_its_members_were_restored():
    group = restored("a")
    now = 5.0
    while now < EMPTY_SECONDS + 20:
        now += 5.0
        assert group.heartbeat(now, 3, "a", None) is None
        group.tick(now)
        assert group.wake_at > now
