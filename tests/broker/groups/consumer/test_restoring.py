"""A consumer group goes on with the members that were kept."""

from __future__ import annotations

from collections import Counter, deque

import pytest
from broker.groups.consumer.test_kept import MEMBER
from broker.groups.modern.known_topics import FakeTopics

from dafka.broker import limits
from dafka.broker.groups.consumer.group import ConsumerGroup
from dafka.broker.groups.consumer.kept import SavedGroup
from dafka.broker.groups.consumer.owned import Owned
from dafka.broker.groups.consumer.restoring import restoring
from dafka.broker.interface.consumer_groups import ConsumerHeartbeat


@pytest.fixture
def topics():
    return FakeTopics(t=4)


def member(topics, name, *numbers, epoch=5, revoking=(), target=None):
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
        target=None if target is None else {topic: frozenset(target)},
    )


def restored(topics, *members, count=None, assignment_epoch=None):
    """A group of epoch 5; without an assignment epoch, of a folder of before targets were kept."""
    group = ConsumerGroup(0.0, topics, 5)
    whole = SavedGroup(len(members) if count is None else count, {}, assignment_epoch)
    deque(restoring(0.0, group, 10.0, whole, members), 0)
    return group


def test_a_settled_group_is_as_it_was(topics):
    group = restored(topics, member(topics, "x", 0, 1), member(topics, "y", 2, 3))
    assert (group.state_name, group.epoch, group.assignment_epoch) == ("Stable", 5, 5)
    assert group.heartbeat(1.0, ConsumerHeartbeat("x", 5), 10.0, 9).assignment is None
    group.tick(10.0)
    assert list(group.members) == ["x"]


def test_one_that_was_on_its_way_goes_on(topics):
    x = member(topics, "x", 0, 1, revoking=(2, 3), epoch=4)
    y = member(topics, "y", target=(2, 3))
    group = restored(topics, x, y, assignment_epoch=5)
    assert (group.state_name, group.epoch, group.assignment_epoch) == ("Reconciling", 5, 5)
    assert group.members["y"].lacks
    topic = topics.known["t"].topic_id
    left = group.heartbeat(1.0, ConsumerHeartbeat("x", 4, owned={topic: [0, 1]}), 10.0, 9)
    assert left.epoch == 5 and group.state_name == "Reconciling"
    got = group.heartbeat(1.0, ConsumerHeartbeat("y", 5, owned={}), 10.0, 9)
    assert got.assignment == {topic: {2, 3}} and group.state_name == "Stable"


def test_partitions_that_a_member_has_no_more_by_its_new_expression_are_assigned_again(topics):
    """It was told to give them up before the restart, and what the new expression matches was not known."""
    x = member(topics, "x", 0, 1)
    y = member(topics, "y", target=(2, 3))._replace(names=frozenset(), regex="a.*")
    group = restored(topics, x, y, assignment_epoch=5)
    assert (group.state_name, group.epoch) == ("Assigning", 6)
    topic = topics.known["t"].topic_id
    got = group.heartbeat(1.0, ConsumerHeartbeat("x", 5, owned={topic: [0, 1]}), 10.0, 9)
    assert got.assignment == {topic: {0, 1, 2, 3}}


def test_one_that_waits_for_its_target_gets_it_without_another_epoch(topics):
    x, y = member(topics, "x", 0, 1, 2, 3, epoch=4), member(topics, "y", epoch=0)
    group = restored(topics, x, y, assignment_epoch=4)
    assert (group.state_name, group.epoch, group.assignment_epoch) == ("Assigning", 5, 4)
    group.heartbeat(1.0, ConsumerHeartbeat("x", 4), 10.0, 9)
    assert (group.epoch, group.assignment_epoch) == (5, 5)


@pytest.mark.parametrize("what", ["a member was not kept", "topics have grown", "two are to have one"])
def test_a_target_of_another_state_is_not_gone_on_with(topics, what):
    x, y = member(topics, "x", 0, 1), member(topics, "y", 2, 3)
    if what == "topics have grown":
        topics.extend("t", 5)
    elif what == "two are to have one":
        y = y._replace(target=x.assigned)
    group = restored(topics, x, y, count=3 if what == "a member was not kept" else 2, assignment_epoch=5)
    assert group.needs_target and group.epoch == 6


@pytest.mark.parametrize("what", ["a member was not kept", "a partition is nobody's", "one is on its way"])
def test_one_of_before_targets_were_kept_gets_a_new_one_unless_it_was_settled(topics, what):
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


def test_very_many_topics_are_taken_over_some_at_a_time(monkeypatch):
    monkeypatch.setattr(limits, "TOPICS_AT_ONCE", 2)
    names = ("a", "b", "c", "d", "e")
    topics = FakeTopics(**dict.fromkeys(names, 1))
    everything = {known.topic_id: frozenset({0}) for known in topics.known.values()}
    x = member(FakeTopics(t=1), "x")._replace(names=frozenset(names), assigned=everything)
    group = ConsumerGroup(0.0, topics, 5)
    steps, taken, looked_up = 0, Counter[int](), Counter[int]()
    take, find_all = Owned.take, topics.find_all

    def counted_take(owned, partitions):
        taken[steps] += len(partitions)
        return take(owned, partitions)

    def counted_find(names):
        looked_up[steps] += len(names)
        return find_all(names)

    monkeypatch.setattr(Owned, "take", counted_take)
    monkeypatch.setattr(topics, "find_all", counted_find)
    for _ in restoring(0.0, group, 10.0, SavedGroup(1, {}, 5), [x]):
        steps += 1
    assert group.members["x"].assigned == everything and group.state_name == "Stable"
    assert max(taken.values()) == max(looked_up.values()) == 2
    assert taken.total() == 2 * len(names) and looked_up.total() == len(names)
