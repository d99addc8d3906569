"""The answers that the members of a generation get when they have joined."""

from __future__ import annotations

from typing import Any

import pytest

from dafka.broker.groups.generation import Generation, at_once
from dafka.broker.groups.members import Member
from dafka.broker.interface.groups import Joined, JoinedMember, JoinRequest

GENERATION = Generation(4, "consumer", "range", "leader")


def member(member_id: str, instance: str | None = None) -> Member:
    protocols = [("range", b"of " + member_id.encode()), ("sticky", b"other")]
    request = JoinRequest(member_id, 10.0, 60.0, "consumer", protocols, instance, "c")
    return Member(member_id, request, 0.0)


@pytest.fixture
def members() -> list[Member]:
    return [member("leader"), member("follower", "instance")]


def test_the_leader_gets_all_members_with_their_metadata_of_the_chosen_protocol(
    members: list[Member],
) -> None:
    assert GENERATION.joined("leader", members) == Joined(
        None,
        4,
        "consumer",
        "range",
        "leader",
        "leader",
        [
            JoinedMember("leader", None, b"of leader"),
            JoinedMember("follower", "instance", b"of follower"),
        ],
    )


def test_a_follower_gets_the_leader_and_no_members(members: list[Member]) -> None:
    joined = GENERATION.joined("follower", members)
    assert (joined.leader, joined.member_id, list(joined.members)) == ("leader", "follower", [])


def test_answers_are_made_when_they_are_taken_and_only_for_parked_joins(members: list[Member]) -> None:
    given: list[Any] = []
    answers = GENERATION.answers([(None, "gone"), (given.append, "follower")], members)
    assert given == []
    at_once(answers, 1)
    assert [joined.member_id for joined in given] == ["follower"]
