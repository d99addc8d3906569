"""What is kept of a share group is the same when it was read again, and its members go on after a crash."""

from __future__ import annotations

import json
import random
from collections import deque
from contextlib import suppress
from typing import Any
from uuid import UUID

import pytest
from broker.groups.modern.known_topics import FakeTopics
from broker.groups.modern.world import standing
from broker.groups.restarts import HOST, Disk
from kafka.errors import FencedMemberEpochError, UnknownMemberIdError

from dafka.broker import limits
from dafka.broker.groups.modern.assignment import Assignment
from dafka.broker.interface.groups import GroupType
from dafka.broker.interface.share import ShareHeartbeat
from dafka.broker.share.group import ShareGroup
from dafka.broker.share.kept import FORMAT, SavedGroup, SavedMember

SESSION = 10.0
SEEDS = 150


def test_a_member_is_read_as_it_was():
    told = {UUID(int=1): frozenset({0, 1})}
    for member in (
        SavedMember("x", 5, 4, "r", "c", "/h", frozenset({"t"}), told),
        SavedMember("x", 5, 4, None, "c", "/h", frozenset(), {}),
        SavedMember("x", 5, 4, None, "c", "/h", frozenset({"t"}), told, {UUID(int=1): frozenset({2})}),
    ):
        row = json.loads(json.dumps(FORMAT.member(member)))
        assert FORMAT.is_member(row) and not FORMAT.is_member([*row, 1])
        assert FORMAT.read_member(row) == member
        former = row[:-1]  # of before targets were kept
        assert FORMAT.is_member(former) and FORMAT.read_member(former) == member._replace(target=None)


def test_a_group_is_read_as_it_was():
    row = FORMAT.whole(SavedGroup(2, 7))
    assert FORMAT.is_whole(row) and FORMAT.read_whole(row) == SavedGroup(2, 7)
    assert FORMAT.is_whole(row[:1]) and FORMAT.read_whole(row[:1]) == SavedGroup(2, None)
    assert not FORMAT.is_whole([-1])


T, U = UUID(int=1), UUID(int=2)


def restored(topics: FakeTopics, *targets: Assignment) -> tuple[ShareGroup, int]:
    """A group of members with these targets, all of epoch 1, after a restart; and in how many steps."""
    group = ShareGroup(0.0, topics, lambda group, name: None, 1)
    kept = [
        SavedMember(f"m{number}", 1, 0, None, "c", HOST, frozenset(topics.names()), target)
        for number, target in enumerate(targets)
    ]
    return group, sum(1 for _ in group.restoring(0.0, SESSION, SavedGroup(len(kept), 1), kept))


@pytest.mark.parametrize(
    "targets, is_as_it_was",
    [
        ([{T: {0, 1, 2}, U: {0}}], True),
        ([{T: {0, 1}, U: {0}}, {T: {1, 2}}], True),  # several members may read a partition
        ([{T: {0, 1, 2}}], False),
        ([{T: {0, 1}, U: {0}}], False),
        ([{T: {0, 1, 2, 3}, U: {0}}], False),
        ([{T: {0, 1, 3}, U: {0}}], False),
        ([{T: {0, 1, 2}, U: {0}, UUID(int=3): {0}}], False),
    ],
)
def test_a_group_whose_members_read_all_there_is_and_nothing_else_goes_on(targets, is_as_it_was):
    topics = FakeTopics(t=3, u=1)
    ids = {T: topics.find("t").topic_id, U: topics.find("u").topic_id}
    group, _ = restored(
        topics,
        *({ids.get(topic, topic): frozenset(some) for topic, some in one.items()} for one in targets),
    )
    assert group.needs_target is not is_as_it_was


def test_subscriptions_of_very_many_members_are_looked_at_in_steps(monkeypatch):
    """A thousand topics take a millisecond: their ids are hashed by Python."""
    monkeypatch.setattr(limits, "TOPICS_AT_ONCE", 2)
    topics = FakeTopics(**{f"t{number}": 1 for number in range(10)})
    everything = {topics.find(name).topic_id: frozenset({0}) for name in topics.names()}
    group, steps = restored(topics, *[everything] * 3)
    assert not group.needs_target
    assert steps == 3 + 3 * 5 + 5  # members, the topics of each, and all topics


class History:
    """Members that join, die, leave and lose answers, and a broker that crashes before or after it writes."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.now = 0.0
        self.topics = FakeTopics(t=3, u=1)
        self.disk = Disk({GroupType.SHARE: FORMAT})
        self.group = self.empty(0)
        self.members: dict[str, tuple[int, Assignment]] = {}  # the epoch that each knows, and what it reads
        self.names = 0

    def empty(self, epoch: int) -> ShareGroup:
        return ShareGroup(self.now, self.topics, lambda group, name: None, epoch)

    def begin_again(self, same: bool = False) -> None:
        """A new process begins; ``same``: with all that the one before had done."""

        def made(kind: GroupType, whole: Any, members: Any) -> ShareGroup:
            group = self.empty(epoch)
            deque(group.restoring(self.now, SESSION, whole, members), 0)
            return group

        before, epoch = self.group, self.group.epoch if same else 0
        self.group = self.disk.again(made) or self.empty(before.epoch)
        if same and before.members and before._version == self.topics.version:
            assert standing(self.group) == standing(before)

    def beat(self, name: str, leave: bool = False, crash: str = "") -> None:
        """A heartbeat; the broker may crash ``"before"`` its write is on the disk, or ``"after"`` that."""
        epoch, reads = self.members[name]
        topics = ["t", "u"] if epoch == 0 else None
        request = ShareHeartbeat(
            "g", name, -1 if leave else epoch, topics=topics, client_id="c", client_host=HOST
        )
        rows = dict(self.disk.rows)
        answer = None
        try:
            self.group.receive(self.now, request, SESSION)
            answer = self.group.answer(request, 1.0)
        except (UnknownMemberIdError, FencedMemberEpochError):
            assert epoch or leave, "who joins is never refused"
        self.disk.members.note("g", self.group)
        if crash:
            if crash == "before":
                self.disk.rows = rows
            self.begin_again(same=crash == "after")
        elif leave:
            del self.members[name]
        elif answer is None:
            self.members[name] = 0, {}
        elif self.random.random() < 0.9:
            assert answer.member_epoch >= epoch
            given = reads if answer.assignment is None else answer.assignment
            self.members[name] = answer.member_epoch, given

    def step(self) -> None:
        pick = self.random.random()
        self.now += self.random.choice((0.1, 1.0, 4.0))
        if pick < 0.15 or not self.members:
            self.names += 1
            self.members[f"m{self.names}"] = 0, {}
        elif pick < 0.2:
            self.topics.extend("t", self.topics.known["t"].partitions + 1)
        elif pick < 0.25:
            self.members.pop(self.random.choice(list(self.members)))  # it dies
        else:
            crash = self.random.choice(("", "", "", "before", "after"))
            self.beat(self.random.choice(list(self.members)), leave=pick > 0.93, crash=crash)

    def settle(self) -> None:
        for _ in range(30):
            self.now += 1.0
            for name in self.members:
                self.beat(name)
        epochs = dict(self.members)
        for name in self.members:
            with suppress(UnknownMemberIdError):
                self.beat(name)
        assert epochs == self.members, "it does not come to rest"
        read = {
            (topic, one) for _, had in self.members.values() for topic, some in had.items() for one in some
        }
        known = self.topics.known.values()
        assert not self.members or read == {
            (topic.topic_id, number) for topic in known for number in range(topic.partitions)
        }
        assert {name: one.told for name, one in self.group.members.items()} == {
            name: had for name, (_, had) in self.members.items()
        }


@pytest.mark.parametrize("first", range(0, SEEDS, 50))
def test_after_crashes_all_partitions_are_read_and_nobody_is_refused_for_ever(first):
    for seed in range(first, first + 50):
        history = History(seed)
        try:
            for _ in range(60):
                history.step()
            history.settle()
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}") from error
