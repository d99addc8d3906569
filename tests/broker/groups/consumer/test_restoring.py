"""A consumer group goes on with the members that were kept."""

from __future__ import annotations

from collections import deque

import pytest
from broker.groups.consumer.test_kept import MEMBER
from broker.groups.modern.known_topics import FakeTopics

from dafka.broker.groups.consumer.group import ConsumerGroup
from dafka.broker.groups.consumer.kept import SavedGroup
from dafka.broker.groups.consumer.restoring import restoring
from dafka.broker.interface.consumer_groups import ConsumerHeartbeat


@pytest.fixture
def topics():
    return FakeTopics(t=4)


def member(topics, name, *numbers, epoch=5, revoking=()):
    topic = topics.known["t"].topic_id
    return MEMBER._replace(
        member_id=name,
        epoch=epoch,
        instance_id=None,
        names=frozenset({"t"}),
        regex=None,
        assignor=None,
        assigned={topic: frozenset(numbers)} if numbers else {},
        revoking={topic: frozenset(revoking)} if revoking else {},
        since={},
    )


def restored(topics, *members, count=None):
    group = ConsumerGroup(0.0, topics, 5)
    whole = SavedGroup(len(members) if count is None else count, {})
    deque(restoring(0.0, group, 10.0, whole, members), 0)
    return group


def test_a_settled_group_is_as_it_was(topics):
    group = restored(topics, member(topics, "x", 0, 1), member(topics, "y", 2, 3))
    assert (group.state_name, group.epoch, group.assignment_epoch) == ("Stable", 5, 5)
    assert group.heartbeat(1.0, ConsumerHeartbeat("x", 5), 10.0, 9).assignment is None
    group.tick(10.0)
    assert list(group.members) == ["x"]


@pytest.mark.parametrize("what", ["a member was not kept", "a partition is nobody's", "one is on its way"])
def test_one_that_was_not_gets_a_new_target(topics, what):
    if what == "a member was not kept":
        group = restored(topics, member(topics, "x", 0, 1, 2, 3), count=2)
    elif what == "a partition is nobody's":
        group = restored(topics, member(topics, "x", 0, 1, 2))
    else:
        group = restored(topics, member(topics, "x", 0, 1, epoch=4), member(topics, "y", 2, 3))
    assert group.needs_target and group.epoch == 6


def test_a_member_that_is_away_may_have_had_something_to_give_up(topics):
    group = restored(topics, member(topics, "x", 0, 1, 2, 3, epoch=-2))
    assert group.needs_target


def test_a_partition_that_two_rows_have_is_one_members(topics):
    group = restored(topics, member(topics, "x", 0, 1, 2), member(topics, "y", 2, 3))
    assert [sum(map(len, one.assigned.values())) for one in group.members.values()] == [3, 1]


def test_a_member_that_was_to_give_something_up_has_its_time_again(topics):
    group = restored(topics, member(topics, "x", 0, 1, revoking=(2, 3)))
    assert group.members["x"].revoke_by == 60.0 and group.needs_target
