"""Histories of Streams groups by seed, and that they find what is broken on purpose.

The long form: ``./scripts/streams_groups``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from broker.groups.modern.world import BrokenError
from broker.groups.streams.streams_histories import World

from dafka.broker.groups.modern import due
from dafka.broker.groups.streams import group as group_module
from dafka.broker.groups.streams.group import StreamsGroup
from dafka.broker.groups.streams.member import Member
from dafka.broker.groups.streams.owned import Owned
from dafka.broker.groups.streams.tasks import NOTHING


@pytest.mark.parametrize("seed", range(20))
def test_no_task_is_run_twice_and_every_task_is_run_when_it_is_quiet(seed):
    World(seed).run(200)


@pytest.mark.parametrize("seed", range(1000, 1015))
def test_groups_whose_targets_are_put_off_hold_the_same(seed, monkeypatch):
    monkeypatch.setattr(due, "MEMBERS_ASSIGNED_FOR_EACH", 1)
    monkeypatch.setattr(due, "PAUSE_OF_A_MEMBER", 0.5)
    World(seed).run(200)


def release_before_it_is_given_up(patch: Any) -> None:
    patch.setattr(group_module, "has_any", lambda owned, tasks: False)


def give_what_others_have(patch: Any) -> None:
    patch.setattr(Owned, "free", lambda self, process, wanted: wanted)
    patch.setattr(Owned, "take", lambda self, process, roles: None)
    patch.setattr(Owned, "release", lambda self, process, roles: None)


def keep_what_a_lost_member_had(patch: Any) -> None:
    patch.setattr(StreamsGroup, "_release_all", lambda self, member: None)


def take_every_epoch(patch: Any) -> None:
    patch.setattr(StreamsGroup, "check_epoch", lambda *_: None)


def forget_a_change_of_topics(patch: Any) -> None:
    patch.setattr(StreamsGroup, "topics_changed", lambda self: False)


def never_make_a_topic(patch: Any) -> None:
    patch.setattr(StreamsGroup, "missing", {})


def never_end_a_rebalance(patch: Any) -> None:
    patch.setattr(StreamsGroup, "is_reconciled", lambda self, member: member.epoch == self.assignment_epoch)


def revoke_everything(patch: Any) -> None:
    patch.setattr(group_module, "split", lambda had, target: (NOTHING, had))


def forget_the_delay(patch: Any) -> None:
    patch.setattr(StreamsGroup, "assign_if_small", lambda self, now: None)


def forget_the_copies(patch: Any) -> None:
    before = StreamsGroup.spec
    patch.setattr(StreamsGroup, "spec", lambda self: before(self)._replace(standbys=0))


def begin_again_without_the_former_target(patch: Any) -> None:
    before = Member.saved
    patch.setattr(Member, "saved", lambda self, target: before(self, None))


@pytest.mark.parametrize(
    "mutate",
    [
        release_before_it_is_given_up,
        give_what_others_have,
        keep_what_a_lost_member_had,
        take_every_epoch,
        forget_a_change_of_topics,
        never_make_a_topic,
        never_end_a_rebalance,
        revoke_everything,
        forget_the_delay,
        forget_the_copies,
        begin_again_without_the_former_target,
    ],
)
def test_the_histories_find_a_group_that(mutate: Callable[[Any], None], monkeypatch):
    mutate(monkeypatch)
    with pytest.raises((BrokenError, AssertionError, KeyError)):
        for seed in range(60):
            World(seed).run(200)
