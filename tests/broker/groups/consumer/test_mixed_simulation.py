"""Histories of groups with members of both protocols, and that they find what is broken on purpose.

The long form: ``./scripts/mixed_groups``.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Any

import pytest
from broker.groups.consumer.mixed_histories import World
from broker.groups.modern.world import BrokenError

from dafka.broker.groups.consumer import classic
from dafka.broker.groups.consumer.group import ConsumerGroup
from dafka.broker.groups.consumer.member import Member


@pytest.mark.parametrize("first", range(0, 40, 10))
def test_members_of_both_protocols_share_the_partitions_while_the_group_changes_its_own(first):
    changes = 0
    for seed in range(first, first + 10):
        world = World(seed)
        world.run(300)
        changes += world.changes
    assert changes


def upgrade_without_what_members_have(patch: Any) -> None:
    patch.setattr(ConsumerGroup, "giving", lambda self, member, *had: iter(()))


def take_in_whoever_still_reads(patch: Any) -> None:
    def joining(group: ConsumerGroup, request: Any, member_id: str, owns: bool) -> tuple[Member, bool]:
        return before(group, request, member_id, False)

    before = classic._joining
    patch.setattr(classic, "_joining", joining)


def never_go_back(patch: Any) -> None:
    patch.setattr(ConsumerGroup, "only_classic", False)


def take_every_commit(patch: Any) -> None:
    patch.setattr(ConsumerGroup, "has_since", lambda self, member, topic, partition: 0)


def take_no_commit_of_an_older_epoch(patch: Any) -> None:
    patch.setattr(ConsumerGroup, "has_since", lambda self, member, topic, partition: inf)


@pytest.mark.parametrize(
    "mutate",
    [
        upgrade_without_what_members_have,
        take_in_whoever_still_reads,
        never_go_back,
        take_every_commit,
        take_no_commit_of_an_older_epoch,
    ],
)
def test_the_histories_find_a_group_that(mutate: Callable[[Any], None], monkeypatch):
    mutate(monkeypatch)
    with pytest.raises((BrokenError, AssertionError, KeyError)):
        for seed in range(150):
            World(seed).run(300)
