"""Who is in a group, who leads it, and what all members can do."""

from __future__ import annotations

from typing import Any

import kafka.errors as errors
import pytest

from dafka.broker.groups.members import Member, Members
from dafka.broker.interface.groups import JoinRequest


def request(*protocols: str, instance: str | None = None, rebalance: float = 60.0) -> JoinRequest:
    return JoinRequest("", 10.0, rebalance, "consumer", [(name, b"") for name in protocols], instance)


def member(member_id: str, *protocols: str, **more: Any) -> Member:
    return Member(member_id, request(*protocols, **more), 100.0)


@pytest.fixture
def members() -> Members:
    return Members()


def test_the_first_one_leads_and_then_the_one_that_is_here_for_longest(members):
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


def test_protocols_are_those_that_all_know_whatever_they_join_with_next(members):
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


def test_the_protocol_is_the_one_that_most_like_best(members):
    for number, liked in enumerate([("a", "b"), ("b", "a"), ("c", "b", "a")]):
        members.add(member(str(number), *liked))
    assert members.chosen_protocol() == "b"


def test_an_instance_keeps_its_place_under_another_id(members):
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


def test_who_joins_again_without_its_instance_stays_a_static_member(members):
    one = member("i-1", "range", instance="i")
    members.add(one)
    members.change(one, request("range", "sticky"))
    assert members.of_instance("i") is one
    assert members.protocols == {"range", "sticky"}
    assert one.request.instance_id == "i"


def test_the_longest_rebalance_timeout_and_the_next_end_of_a_session_count(members):
    assert (members.rebalance_timeout, members.next_expiry) == (0.0, float("inf"))
    early, late = member("a", "p", rebalance=5.0), member("b", "p", rebalance=9.0)
    members.add(early)
    members.add(late)
    late.expires = 200.0
    assert (members.rebalance_timeout, members.next_expiry) == (9.0, 110.0)
    early.join = lambda joined: None  # it waits for us
    assert members.next_expiry == 200.0
    members.pending["c"] = 150.0
    assert members.next_expiry == 150.0


def test_what_waits_is_answered_once(members):
    answers: list[Any] = []
    one = member("a", "p")
    one.join = one.sync = one.heartbeat = answers.append
    one.dismiss(errors.UnknownMemberIdError)
    one.dismiss(errors.UnknownMemberIdError)
    assert [getattr(answer, "error", answer) for answer in answers] == [errors.UnknownMemberIdError] * 3
    assert not one.waits
