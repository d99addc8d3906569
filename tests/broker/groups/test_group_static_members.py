"""Static members (KIP-345) in the group state machine."""

from __future__ import annotations

from typing import Any

import kafka.errors as errors
from broker.groups import clocked
from broker.groups.clocked import SESSION, Table, error_of

from dafka.broker.interface.broker import LeavingMember
from dafka.broker.limits import INITIAL_DELAY


def static(table: Table) -> tuple[Any, Any]:
    """A stable group of a dynamic leader and a static member "i"."""
    dynamic, fixed = table.join(), table.join(instance="i")
    table.pass_time(INITIAL_DELAY)
    leader, follower = dynamic[0], fixed[0]
    waiting = table.sync(follower, instance="i")
    table.sync(leader, {follower.member_id: b"its share"})
    assert waiting[0].assignment == b"its share"
    return leader, follower


def test_a_static_member_that_returns_gets_its_place_without_a_rebalance(table):
    leader, old = static(table)
    (again,) = table.join(instance="i", protocols=[("range", b"new")])
    assert (again.error, again.generation) == (None, 1)
    assert again.member_id != old.member_id and again.member_id.startswith("i-")
    assert table.sync(again, instance="i")[0].assignment == b"its share"
    assert table.beat(leader) is None


def test_the_previous_process_of_a_static_member_is_fenced(table):
    _leader, old = static(table)
    heard: list[Any] = []
    table.group.heartbeat(table.now, 1, old.member_id, "i", heard.append)
    table.join(instance="i")
    assert heard == [errors.FencedInstanceIdError]
    assert table.beat(old, instance="i") is errors.FencedInstanceIdError
    assert error_of(table.sync(old, instance="i")) is errors.FencedInstanceIdError
    assert error_of(table.join(old.member_id, instance="i")) is errors.FencedInstanceIdError
    assert table.group.check_commit(table.now, 1, old.member_id, "i", []) is errors.FencedInstanceIdError
    leaving = [LeavingMember(old.member_id, "i")]
    assert table.group.leave(table.now, leaving) == [errors.FencedInstanceIdError]


def test_a_static_leader_that_returns_does_not_assign_again(table):
    (leader,) = table.stable(instance="i")
    (again,) = table.join(instance="i")
    assert again.leader == leader.member_id != again.member_id
    (third,) = table.join(instance="i", can_skip_assignment=True)
    assert third.leader == third.member_id and third.skip_assignment
    assert [member.member_id for member in third.members] == [third.member_id]


def test_a_static_member_keeps_its_place_through_a_rebalance_until_its_session_ends(table):
    leader, _fixed = static(table)
    table.join()
    table.join(leader.member_id)
    table.pass_time(SESSION * 0.9)
    assert "i" in {member.request.instance_id for member in table.group.members.values()}
    table.pass_time(SESSION * 0.2)
    assert "i" not in {member.request.instance_id for member in table.group.members.values()}


def test_a_static_member_can_be_removed_by_its_instance_id(table):
    static(table)
    assert table.group.leave(table.now, [LeavingMember("", "i")]) == [None]
    assert table.group.leave(table.now, [LeavingMember("", "i")]) == [errors.UnknownMemberIdError]


def test_a_static_member_may_rejoin_with_its_member_id(table):
    leader, fixed = static(table)
    table.join()
    table.join(leader.member_id)
    answer = table.join(fixed.member_id, instance="i")
    assert answer[0].generation == 2


def test_a_group_whose_static_members_are_away_waits_for_them_without_haste(table, monkeypatch):
    """Also if their rebalance timeout is 0: it looks at them again once a second until their sessions end."""
    monkeypatch.setattr(clocked, "REBALANCE", 0.0)
    waiting = table.join(instance="i")
    table.pass_time(INITIAL_DELAY)
    table.sync(waiting[0], instance="i")
    table.join()  # and never syncs
    ticks = 0
    while table.group.members and ticks < 1000:
        table.now = max(table.now, table.group.wake_at)
        table.group.tick(table.now)
        ticks += 1
    assert not table.group.members and ticks < 3 * SESSION
