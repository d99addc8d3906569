"""The members of a group, their leader, and the protocols that all support."""

from __future__ import annotations

from typing import Any

import kafka.errors as errors
import pytest

from dafka.broker.groups.members import Member, Members
from dafka.broker.interface.groups import JoinRequest, LeavingMember


def request(*protocols: str, instance: str | None = None, rebalance: float = 60.0) -> JoinRequest:
    return JoinRequest("", 10.0, rebalance, "consumer", [(name, b"") for name in protocols], instance)


def member(member_id: str, *protocols: str, **more: Any) -> Member:
    return Member(member_id, request(*protocols, **more), 100.0)


@pytest.fixture
def members() -> Members:
    return Members()


def test_the_first_member_leads_and_the_oldest_one_succeeds_it(members):
    assert members.leader is None
    people = [member(name, "range") for name in "abc"]
    for one in people:
        members.add(one)
    assert (members.leader, list(members), len(members)) == ("a", ["a", "b", "c"], 3)
    members.remove(people[1])
    assert members.leader == "a"
    members.remove(people[0])
    assert members.leader == "c"
    members.remove(people[2])
    assert members.leader is None
    assert not members


def test_shared_protocols_follow_the_members_and_their_changes(members):
    assert members.protocols == set()
    first, second = member("a", "range", "sticky"), member("b", "sticky", "range", "own", "own")
    members.add(first)
    members.add(second)
    assert members.protocols == {"range", "sticky"}
    members.change(first, request("own", "range"))
    assert members.protocols == {"range", "own"}
    members.remove(second)
    assert members.protocols == {"range", "own"}
    members.change(first, request("sticky"))
    assert members.protocols == {"sticky"}


def test_the_protocol_with_the_most_votes_is_chosen(members):
    for number, liked in enumerate([("a", "b"), ("b", "a"), ("c", "b", "a")]):
        members.add(member(str(number), *liked))
    assert members.chosen_protocol() == "b"


def test_a_static_member_keeps_its_place_under_a_new_member_id(members):
    old = member("i-1", "range", instance="i")
    members.add(old)
    members.add(member("b", "range"))
    members.rename(old, "i-2")
    assert list(members) == ["i-2", "b"]
    assert members.leader == "i-2"
    assert members.of_instance("i") is members["i-2"] is old
    assert members.refusal("i-2", "i") is None
    assert members.refusal("i-1", "i") is errors.FencedInstanceIdError
    members.remove(old)
    assert members.of_instance("i") is None
    assert members.refusal("i-2", "i") is errors.UnknownMemberIdError


def test_a_static_member_that_rejoins_without_its_instance_id_stays_static(members):
    one = member("i-1", "range", instance="i")
    members.add(one)
    members.change(one, request("range", "sticky"))
    assert members.of_instance("i") is one
    assert members.protocols == {"range", "sticky"}
    assert one.request.instance_id == "i"


def test_the_longest_rebalance_timeout_and_the_earliest_expiry_count(members):
    assert (members.rebalance_timeout, members.next_expiry) == (0.0, float("inf"))
    early, late = member("a", "p", rebalance=5.0), member("b", "p", rebalance=9.0)
    members.add(early)
    members.add(late)
    late.expires = 200.0
    assert (members.rebalance_timeout, members.next_expiry) == (9.0, 110.0)
    early.join = lambda joined: None  # a parked join
    assert members.next_expiry == 200.0
    members.pending["c"] = 150.0
    assert members.next_expiry == 150.0


def test_a_parked_call_is_answered_once(members):
    answers: list[Any] = []
    one = member("a", "p")
    one.join = one.sync = one.heartbeat = answers.append
    for _ in range(2):
        for reply, value in one.dismiss(errors.UnknownMemberIdError):
            reply(value)
    assert [getattr(answer, "error", answer) for answer in answers] == [errors.UnknownMemberIdError] * 3
    assert not one.waits


def test_a_join_that_does_not_suit_the_members_is_refused(members):
    assert members.join_refusal(request("range"), None) is None
    assert members.join_refusal(request(), None) is errors.InconsistentGroupProtocolError
    members.add(member("a", "range"))
    assert members.join_refusal(request("range"), "consumer") is None
    assert members.join_refusal(request("range"), "connect") is errors.InconsistentGroupProtocolError
    assert members.join_refusal(request("sticky"), "consumer") is errors.InconsistentGroupProtocolError


def test_members_that_leave_are_named_once_and_pending_ids_go_at_once(members):
    members.add(member("a", "range"))
    members.add(member("b", "range", instance="i"))
    members.pending["p"] = 7.0
    leaving = [LeavingMember(*one, None) for one in (("p", None), ("a", None), ("a", None), ("", "i"))]
    answers, gone = members.resign(leaving)
    assert answers == [None, None, errors.UnknownMemberIdError, None]
    assert gone == [members["a"], members["b"]]
    assert not members.pending


def test_a_member_that_misses_a_rebalance_is_absent_and_later_late(members):
    joined, absent, static = member("a", "r"), member("b", "r"), member("c", "r", instance="i")
    joined.join = print
    for one in (joined, absent, static):
        members.add(one)
    assert members.absent() == [absent]
    assert members.late(109.0, syncs_are_over=False) == []
    assert members.late(110.0, syncs_are_over=False) == [absent, static]  # of those who wait none is late
    joined.synced = False
    assert members.late(109.0, syncs_are_over=True) == [joined]


def test_ids_that_nobody_joins_with_are_forgotten(members):
    members.pending.update(early=5.0, late=6.0)
    members.expire_pending(5.0)
    assert members.pending == {"late": 6.0}


def test_protocols_that_nobody_supports_any_more_are_forgotten(members):
    """A member may join again and again, with other names each time."""
    one = member("a", "range", "own")
    members.add(one)
    assert members.protocols == {"range", "own"}
    members.change(one, request("range", "range"))
    assert members.protocols == {"range"}
    for number in range(3):
        members.change(one, request("range", f"own-{number}"))
    assert list(members._protocols) == ["range", "own-2"]
    members.remove(one)
    assert members.protocols == set()
    assert not members._protocols
