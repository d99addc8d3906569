"""Histories of consumer groups by seed, and that they find what is broken on purpose.

The long form: ``./scripts/consumer_groups``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from broker.groups.consumer.consumer_histories import World
from broker.groups.modern.world import BrokenError

from dafka.broker.groups.consumer import group, moves
from dafka.broker.groups.consumer.expressions import Expressions
from dafka.broker.groups.consumer.group import ConsumerGroup
from dafka.broker.groups.consumer.member import Member
from dafka.broker.groups.consumer.owned import Owned
from dafka.broker.groups.modern import due
from dafka.broker.groups.modern.assignment import NOTHING


@pytest.mark.parametrize("seed", range(60))
def test_nobody_owns_a_partition_twice_and_everything_is_owned_when_it_is_quiet(seed):
    World(seed).run(250)


@pytest.mark.parametrize("seed", range(1000, 1015))
def test_groups_whose_targets_are_put_off_hold_the_same(seed, monkeypatch):
    monkeypatch.setattr(due, "MEMBERS_ASSIGNED_FOR_EACH", 1)
    monkeypatch.setattr(due, "PAUSE_OF_A_MEMBER", 0.5)
    World(seed).run(250)


def release_before_it_is_given_up(patch: Any) -> None:
    patch.setattr(moves, "has_any", lambda owned, partitions: False)


def give_what_others_have(patch: Any) -> None:
    patch.setattr(Owned, "free", lambda self, topic, numbers: numbers)
    patch.setattr(Owned, "take", lambda self, partitions: dict(partitions))
    patch.setattr(Owned, "release", lambda self, partitions: None)


def keep_what_a_lost_member_had(patch: Any) -> None:
    patch.setattr(ConsumerGroup, "_release_all", lambda self, member: None)


def take_every_epoch(patch: Any) -> None:
    patch.setattr(ConsumerGroup, "_check", lambda self, member, request: None)


def forget_a_change_of_topics(patch: Any) -> None:
    patch.setattr(ConsumerGroup, "topics_changed", lambda self: False)


def never_end_a_rebalance(patch: Any) -> None:
    patch.setattr(ConsumerGroup, "is_reconciled", lambda self, member: member.epoch == self.assignment_epoch)


def begin_again_without_a_new_target(patch: Any) -> None:
    def begin_again(self: ConsumerGroup, count: int, assignment_epoch: int, is_whole: bool) -> None:
        self.assignment_epoch = self.epoch

    patch.setattr(ConsumerGroup, "begin_again", begin_again)


def begin_again_without_the_former_target(patch: Any) -> None:
    before = Member.saved
    patch.setattr(Member, "saved", lambda self, target: before(self, None))


def keep_no_target_that_changes(patch: Any) -> None:
    def install(self: ConsumerGroup, *target: Any) -> None:
        unsaved = set(self._unsaved)
        before(self, *target)
        self._unsaved = unsaved

    before = ConsumerGroup.install
    patch.setattr(ConsumerGroup, "install", install)


def revoke_everything(patch: Any) -> None:
    patch.setattr(moves, "compared", lambda had, target: (NOTHING, had, target))


def forget_that_an_expression_matches_more(patch: Any) -> None:
    before = Expressions.end
    patch.setattr(Expressions, "end", lambda self, found: before(self, found) and False)


def give_topics_that_are_no_longer_subscribed_to(patch: Any) -> None:
    patch.setattr(group, "_are_few", lambda names, partitions: False)


def look_for_topics_once(patch: Any) -> None:
    patch.setattr(Expressions, "fail", lambda self: None)


@pytest.mark.parametrize(
    "mutate",
    [
        forget_that_an_expression_matches_more,
        give_topics_that_are_no_longer_subscribed_to,
        look_for_topics_once,
        release_before_it_is_given_up,
        give_what_others_have,
        keep_what_a_lost_member_had,
        take_every_epoch,
        forget_a_change_of_topics,
        never_end_a_rebalance,
        revoke_everything,
        begin_again_without_a_new_target,
        begin_again_without_the_former_target,
        keep_no_target_that_changes,
    ],
)
def test_the_histories_find_a_group_that(mutate: Callable[[Any], None], monkeypatch):
    mutate(monkeypatch)
    with pytest.raises((BrokenError, AssertionError, KeyError)):
        for seed in range(200):
            World(seed).run(250)
