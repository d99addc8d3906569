"""Many random histories of a group, in each of which a partition has one owner per generation.

Members join, sync, heartbeat, leave, crash and stall in any order, with a clock that jumps. The leader
assigns as a real one: every partition to exactly one of the members it was told of. Static members restart.
In every other history the answers to many members at once take their time. The broker ends and goes on with
what it has kept; the calls that wait for it then are made again.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

import kafka.errors as errors
import pytest
from broker.groups.restarts import HOST, Disk

from dafka.broker.groups.generation import State, at_once
from dafka.broker.groups.group import Group
from dafka.broker.groups.kept_rows import CLASSIC
from dafka.broker.groups.members import Reply
from dafka.broker.groups.restoring import restoring
from dafka.broker.interface.broker import JoinRequest, LeavingMember
from dafka.broker.interface.groups import GroupType
from dafka.broker.limits import EMPTY_SECONDS

PARTITIONS = range(12)
SESSION, REBALANCE = 10.0, 25.0


class Life:
    """One consumer: its next call depends only on the last answer that it got."""

    def __init__(self, world: World, instance: str | None) -> None:
        self.world = world
        self.instance = instance
        self.member_id = ""
        self.generation = -1
        self.joined: Any = None
        self.waiting = False
        self.owned: frozenset[int] = frozenset()
        self.calls = 0

    def step(self) -> None:
        if self.waiting:
            return
        world = self.world
        if self.generation < 0:
            self._join()
        elif self.joined is not None:
            self._sync()
        else:
            error = world.group.heartbeat(world.now, self.generation, self.member_id, self.instance)
            if error is not None:
                self._lost(error)

    def _join(self) -> None:
        world = self.world
        metadata = b"%d" % world.random.randrange(3)
        request = JoinRequest(
            self.member_id,
            SESSION,
            REBALANCE,
            "consumer",
            [("p", metadata)],
            self.instance,
            client_host=HOST,
            require_known_member=world.random.random() < 0.5,
        )
        self.waiting = True
        world.call(self, lambda reply: world.group.join(world.now, request, reply), self._on_joined)

    def _on_joined(self, joined: Any) -> None:
        self.waiting = False
        if joined.error is errors.MemberIdRequiredError:
            self.member_id = joined.member_id
        elif joined.error is not None:
            self._lost(joined.error)
        else:
            self.member_id, self.generation, self.joined = joined.member_id, joined.generation, joined

    def _sync(self) -> None:
        world, joined = self.world, self.joined
        shares: dict[str, bytes] = {}
        if joined.leader == joined.member_id:
            ids = [member.member_id for member in joined.members]
            assert joined.member_id in ids
            for place, member_id in enumerate(ids):
                shares[member_id] = bytes(PARTITIONS[place :: len(ids)])
        self.waiting = True
        world.call(
            self,
            lambda reply: world.group.sync(
                world.now, self.generation, self.member_id, self.instance, None, None, shares, reply
            ),
            self._on_synced,
        )

    def _on_synced(self, synced: Any) -> None:
        self.waiting = False
        self.joined = None
        if synced.error is not None:
            self._lost(synced.error)
        else:
            self.owned = frozenset(synced.assignment)

    def _lost(self, error: Any) -> None:
        self.generation, self.joined, self.owned = -1, None, frozenset()
        if error in (errors.UnknownMemberIdError, errors.FencedInstanceIdError):
            self.member_id = ""
        else:
            assert error in (errors.RebalanceInProgressError, errors.IllegalGenerationError), error


class World:
    """A group and the consumers around it."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.now = 0.0
        self.seed = seed
        self.group = self.new_group()
        self.disk = Disk({GroupType.CLASSIC: CLASSIC})
        self.under_way: list[Iterator[Reply]] = []
        self.lives: list[Life] = []
        self.stable: set[int] = set()
        self.instances = 0

    def new_group(self) -> Group:
        return Group(self.now, self.deliver if self.seed % 2 else at_once)

    def restart(self) -> None:
        """The broker ends, and is there again."""

        def make(kind: GroupType, whole: Any, members: Any) -> Group:
            found = self.new_group()
            deque(restoring(self.now, found, whole, members), 0)
            return found

        self.group = self.disk.again(make) or self.new_group()
        self.under_way.clear()
        for life in self.lives:
            life.calls += 1  # no answer of the old broker comes
            life.waiting = False

    def call(self, life: Life, call: Any, then: Any) -> None:
        """Make a call for a member; the answer must come once, and is lost if the member is gone then."""
        life.calls += 1
        number = life.calls
        answers: list[Any] = []

        def reply(answer: Any) -> None:
            assert not answers, "answered twice"
            answers.append(answer)
            if life in self.lives and life.calls == number:
                then(answer)

        call(reply)

    def deliver(self, replies: Iterable[Reply], count: int) -> None:
        """Answers to many members come later, and some at a time."""
        self.under_way.append(iter(replies))

    def hand_out(self, most: int) -> None:
        """Let so many of the answers under way come, of one call."""
        if self.under_way:
            replies = self.random.choice(self.under_way)
            given = 0
            for given, (reply, value) in enumerate(islice(replies, most), 1):  # noqa: B007
                reply(value)
            if given < most:
                self.under_way.remove(replies)

    def advance(self, seconds: float) -> None:
        until = self.now + seconds
        ticks = 0
        while self.group.wake_at <= until:
            self.now = max(self.now, self.group.wake_at)
            self.group.tick(self.now)
            ticks += 1
            assert ticks < 1000, "the group wants to be ticked again and again"
        self.now = until

    def step(self) -> None:
        self.hand_out(self.random.randrange(1, 4))
        dice = self.random.random()
        if self.random.random() < 0.005:
            self.restart()
        if dice < 0.04 and len(self.lives) < 8:
            self.instances += 1
            instance = f"i{self.instances}" if self.random.random() < 0.3 else None
            self.lives.append(Life(self, instance))
        elif dice < 0.06 and self.lives:
            self.lives.remove(self.random.choice(self.lives))  # a crash
        elif dice < 0.08 and self.lives:
            life = self.random.choice(self.lives)
            self.lives.remove(life)
            if life.member_id and life.instance is None:
                self.group.leave(self.now, [LeavingMember(life.member_id)])
        elif dice < 0.10 and self.lives:
            place = self.random.randrange(len(self.lives))
            if self.lives[place].instance is not None:  # a restart
                self.lives[place] = Life(self, self.lives[place].instance)
        elif dice < 0.5:
            self.advance(self.random.choice([0.001, 0.01, 0.5, 2.0, 6.0]))
        elif self.lives:
            self.random.choice(self.lives).step()
        self.check()

    def check(self) -> None:
        group = self.group
        self.disk.members.note("g", group)
        if group.state is not State.STABLE:
            return
        self.stable.add(group.generation)
        shares = [partition for member in group.members.values() for partition in member.assignment]
        assert sorted(shares) == list(PARTITIONS)
        for life in self.lives:
            if life.generation == group.generation and life.owned and life.member_id in group.members:
                assert life.owned == frozenset(group.members[life.member_id].assignment)
        assert group.leader in group.members

    def settle(self) -> None:
        """Let all members continue undisturbed: the group must become stable with exactly the living ones."""
        for _ in range(200):
            while self.under_way:
                self.hand_out(100)
            for life in self.lives:
                life.step()
            self.advance(1.0)
            self.check()

    def stay(self, seconds: float) -> None:
        """Let members send their heartbeats for so long."""
        for _ in range(int(seconds / SESSION * 2)):
            for life in self.lives:
                life.step()
            self.advance(SESSION / 2)


@pytest.mark.parametrize("seed", range(60))
def test_each_partition_has_exactly_one_owner_in_every_stable_generation(seed):
    world = World(seed)
    for _ in range(1500):
        world.step()
    world.settle()
    world.restart()
    world.stay(EMPTY_SECONDS + 2 * SESSION)
    group = world.group
    if not world.lives:
        assert group.state in (State.EMPTY, State.DEAD)
        return
    assert group.state is State.STABLE
    assert set(group.members) == {life.member_id for life in world.lives}
    owned = [partition for life in world.lives for partition in life.owned]
    assert sorted(owned) == list(PARTITIONS)
    assert len(world.stable) > 3
