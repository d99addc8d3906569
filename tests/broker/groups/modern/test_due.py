"""When groups of the newer protocols have another target: large ones one for all that changes in a while."""

from __future__ import annotations

import pytest
from broker.groups.modern.any_group import AnyModern
from broker.groups.modern.known_topics import FakeTopics

from dafka.broker.groups.modern import due


@pytest.fixture
def group():
    return AnyModern(0.0, FakeTopics(a=3))


def assign(group: AnyModern, at: float) -> None:
    """Nothing for each member of now, which is a target."""
    group.install(group.epoch, {name: {} for name in group.members}, at)


@pytest.fixture
def large(group, monkeypatch):
    """A group of three members, of which two are few enough for a target with each change."""
    monkeypatch.setattr(due, "MEMBERS_ASSIGNED_FOR_EACH", 2)
    monkeypatch.setattr(due, "PAUSE_OF_A_MEMBER", 0.5)
    for name in "xyz":
        group.enter(name, "a")
    assign(group, 0.0)
    return group


def test_a_large_group_has_one_target_for_all_that_changes_in_a_while(large):
    large.enter("more", "a", at=1.0)
    assert large.needs_target and not large.is_target_due(1.0)
    large.enter("again", "a", at=1.5)
    assert not large.is_target_due(2.4) and large.is_target_due(2.5)  # half a second for each member
    assign(large, 2.5)
    assert not large.needs_target


def test_a_change_of_a_large_group_that_was_quiet_is_assigned_at_once(large):
    large.enter("more", "a", at=2.0)
    assert large.is_target_due(2.0)


def test_each_change_of_a_group_that_is_small_again_is_assigned_at_once(large):
    large.remove(0.0, large.member("x"))
    assert large.is_target_due(0.0)


def test_the_tick_comes_when_a_target_is_due_that_was_put_off(large):
    large.enter("more", "a", at=1.0)
    assert large.wake_at == 2.0
    large.tick(1.5)  # for something else
    assert large.wake_at == 2.0
    large.tick(2.0)
    assert large.is_target_due(2.0) and large.wake_at == 10.0


def test_the_tick_comes_for_a_member_that_has_left(large):
    large.enter("more", "a", at=2.0)
    assign(large, 2.0)
    large.remove(2.5, large.member("x"))
    assert large.wake_at == 3.5


def test_the_tick_comes_for_a_member_that_joined_while_a_target_was_computed(large):
    large.enter("more", "a", at=2.0)
    epoch = large.epoch
    large.enter("again", "a", at=2.5)
    large.install(epoch, {"more": {}}, 3.0)
    assert large.needs_target and large.wake_at == 5.5


def test_a_member_whose_target_is_put_off_is_asked_to_come_when_it_should_be_there(large):
    large.enter("more", "a", at=1.0)
    assert large.come_again(1.0, "x", 60.0) == 60.0
    assert large.come_again(1.0, "more", 60.0) == 2.0  # a second until it is due, and half the pause of two
    assert large.come_again(1.0, "more", 0.3) == 0.3
    assert large.come_again(9.0, "more", 60.0) == 1.0  # it is being computed
    assign(large, 2.0)
    assert large.come_again(2.0, "more", 60.0) == 60.0


def test_a_new_member_of_a_small_group_comes_as_usual(group):
    group.enter("x", "a")
    assert group.come_again(0.0, "x", 60.0) == 60.0
