"""What groups of the newer protocols share: members, epochs, sessions, topics and targets."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from broker.groups.modern.any_group import AnyMember, AnyModern
from broker.groups.modern.known_topics import FakeTopics
from kafka.errors import (
    FencedMemberEpochError,
    GroupMaxSizeReachedError,
    InvalidRequestError,
    UnknownMemberIdError,
)

from dafka.broker.groups.times import Kept
from dafka.broker.limits import EMPTY_SECONDS


@pytest.fixture
def topics():
    return FakeTopics(a=3, b=2)


@pytest.fixture
def group(topics):
    return AnyModern(0.0, topics)


def test_the_state_follows_from_members_and_epochs(group):
    assert group.state_name == "Empty"
    member = group.enter("m", "a")
    assert group.state_name == "Assigning" and group.needs_target
    group.install(group.epoch, {"m": {}})
    assert group.state_name == "Reconciling" and not group.needs_target
    member.advance(group.assignment_epoch)
    assert group.state_name == "Stable"
    group.remove(1.0, member)
    assert group.state_name == "Empty" and not group.needs_target


def test_an_unknown_member_is_refused(group):
    with pytest.raises(UnknownMemberIdError):
        group.member("m")


def test_a_member_too_many_is_refused_and_a_known_one_is_not(group):
    group.enter("m")
    group.check_size("m", 1)
    with pytest.raises(GroupMaxSizeReachedError):
        group.check_size("n", 1)


def test_the_epoch_before_the_last_answer_counts_as_long_as_that_may_be_lost(group):
    member = group.enter("m")
    member.advance(4)
    member.advance(7)
    group.check_epoch(member, 7)
    group.check_epoch(member, 4)
    for epoch, lost in ((4, False), (8, True), (5, True), (3, True)):
        with pytest.raises(FencedMemberEpochError):
            group.check_epoch(member, epoch, lost)


def test_a_silent_member_is_removed_and_the_epoch_is_raised(group):
    group.enter("m", "a")
    group.enter("n", "a", at=5.0)
    epoch = group.epoch
    assert group.wake_at == 10.0
    group.tick(10.0)
    assert set(group.members) == {"n"} and group.epoch == epoch + 1
    assert group.wake_at == 15.0


def test_an_empty_group_is_forgotten_and_what_is_kept_of_it_stays(group):
    group.remove(1.0, group.enter("m", "a"))
    group.tick(EMPTY_SECONDS)
    assert not group.dead
    group.tick(1.0 + EMPTY_SECONDS)
    assert group.dead and group.kept == Kept("share", group.epoch, 2)


def test_nothing_is_kept_of_a_deleted_group(group):
    group.die()
    assert group.dead and group.kept is None and group.state_name == "Dead"


def test_a_revived_group_goes_on_with_its_epoch(topics):
    group = AnyModern(0.0, topics, 41)
    assert (group.epoch, group.assignment_epoch, group.state_name) == (41, 41, "Empty")
    group.enter("m", "a")
    assert group.needs_target and group.epoch == 42


def test_changes_of_subscribed_topics_are_noticed_once(group, topics):
    group.enter("m", "a", "later")
    assert not group.topics_changed()
    for change in (
        lambda: topics.extend("a", 4),
        lambda: topics.create("later", 1),
        lambda: topics.delete("a"),
        lambda: topics.create("a", 4),  # another topic of that name
    ):
        change()
        assert group.topics_changed()
        assert not group.topics_changed()
    topics.create("c", 1)
    assert not group.topics_changed()


@pytest.mark.parametrize("is_known", [True, False])
def test_names_that_are_not_topics_are_not_looked_up_again_and_again(group, topics, monkeypatch, is_known):
    monkeypatch.setattr("dafka.broker.groups.modern.group.FEW_NAMES", 2)
    if not is_known:
        monkeypatch.setattr(topics, "changed_since", lambda version: None)
    group.enter("m", "a", "b", "later", *map(str, range(100)))
    assert not group.topics_changed()
    topics.create("later", 4)
    asked = []
    find = topics.find
    monkeypatch.setattr(topics, "find", lambda name: [asked.append(name), find(name)][1])
    assert group.topics_changed()
    assert sorted(asked) == (["later"] if is_known else ["a", "b", "later"])
    assert len(group.partitions()) == 3


def test_partitions_are_those_of_topics_that_exist_and_somebody_reads(group, topics):
    m, n = group.enter("m", "a", "none"), group.enter("n", "a", "b")
    a, b = topics.known["a"].topic_id, topics.known["b"].topic_id
    assert group.partitions() == {a: 3, b: 2}
    group.remove(1.0, n)
    assert group.partitions() == {a: 3}
    assert not group.subscribe(m, ["none", "a"])
    assert group.subscribe(m, ["b"])
    assert group.partitions() == {b: 2}
    assert group.subscribed() == {"b"}


def test_a_target_of_an_older_epoch_is_not_installed_and_those_who_left_have_no_part(group):
    group.enter("m", "a")
    first = group.epoch
    n = group.enter("n", "a")
    group.install(group.epoch, {"m": {}, "n": {}})
    group.install(first, {})
    assert set(group.target) == {"m", "n"}
    group.raise_epoch()
    late = group.epoch
    group.remove(1.0, n)
    group.install(late, {"m": {}, "n": {}})
    assert set(group.target) == {"m"} and group.assignment_epoch == late and group.needs_target


def test_each_tick_removes_some_of_very_many_expired_members(group, monkeypatch):
    monkeypatch.setattr("dafka.broker.groups.modern.group.REMOVED_AT_ONCE", 4)
    for number in range(5):
        group.enter(f"m{number}", "a")
    group.tick(10.0)
    assert len(group.members) == 3 and group.wake_at <= 10.0
    group.tick(10.0)
    group.tick(10.0)
    assert not group.members and group.wake_at == 10.0 + EMPTY_SECONDS


def test_a_tick_looks_at_the_time_of_each_member_once(group, monkeypatch):
    """Ten thousand members take some milliseconds, in which nobody is heard."""
    looked = Counter[str]()

    def deadline(member: Any) -> float:
        looked[member.member_id] += 1
        return member.expires

    for number, session in enumerate((3.0, 9.0, 5.0)):
        group.enter(f"m{number}", "a", session=session)
    monkeypatch.setattr(AnyMember, "deadline", property(deadline))
    group.tick(4.0)
    assert looked == {"m0": 1, "m1": 1, "m2": 1}
    assert set(group.members) == {"m1", "m2"} and group.wake_at == 5.0


def test_names_that_no_topic_can_have_are_refused_and_change_nothing(group):
    m = group.enter("m", "a")
    with pytest.raises(InvalidRequestError):
        group.subscribe(m, ["n" * 250])
    assert m.topics == {"a"} and group.subscribed() == {"a"}
    assert group.subscribe(m, ["n" * 249])


def test_members_with_the_same_topics_share_them(group):
    m, n = group.enter("m", "a", "b"), group.enter("n", "b", "a")
    assert m.topics is n.topics


def test_subscriptions_are_bounded(group, monkeypatch):
    monkeypatch.setattr("dafka.broker.groups.modern.group.GROUP_SUBSCRIPTIONS", 3)
    m, n = group.enter("m", "a", "b"), group.enter("n", "a")
    with pytest.raises(InvalidRequestError):
        group.subscribe(n, ["a", "b"])
    assert n.topics == {"a"}
    assert group.subscribe(m, ["a"]) and group.subscribe(n, ["a", "b"])
