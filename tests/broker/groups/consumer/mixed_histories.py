"""A group with members of both protocols, driven by a seed: it changes its own protocol, there and back.

Members of the newer protocol are those of :mod:`consumer_histories`, the others those of
:mod:`classic_client`. Answers get lost, members die and lag. Checked at every step: nobody reads what another
member reads; offsets of what a member reads are taken with the epoch it knows, and those of what another
member reads are not. When it is quiet, every partition is read by one member, and the group has the type that
its members make it.
"""

from __future__ import annotations

import sys
from collections import deque
from contextlib import suppress
from itertools import count
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch
from uuid import UUID

from kafka.errors import GroupIdNotFoundError, KafkaError, UnknownMemberIdError

ROOT = Path(__file__).parents[4]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]  # for a run as a program

import histories  # noqa: E402 - needs the path
from broker.groups.consumer.classic_client import Classic  # noqa: E402
from broker.groups.consumer.consumer_histories import Client, Search, pairs  # noqa: E402
from broker.groups.modern.known_topics import FakeTopics  # noqa: E402
from broker.groups.modern.world import INTERVAL, MOST, REBALANCE, SESSION, BrokenError  # noqa: E402
from broker.groups.restarts import Disk  # noqa: E402

from dafka.broker.groups import group as group_module  # noqa: E402
from dafka.broker.groups.consumer import classic  # noqa: E402
from dafka.broker.groups.consumer.group import ConsumerGroup  # noqa: E402
from dafka.broker.groups.consumer.kept import FORMAT  # noqa: E402
from dafka.broker.groups.consumer.migration import dismiss, downgraded, upgraded  # noqa: E402
from dafka.broker.groups.consumer.restoring import restoring  # noqa: E402
from dafka.broker.groups.generation import at_once  # noqa: E402
from dafka.broker.groups.group import Group  # noqa: E402
from dafka.broker.groups.kept_rows import CLASSIC  # noqa: E402
from dafka.broker.groups.restoring import restoring as restoring_classic  # noqa: E402
from dafka.broker.interface.groups import GroupType, JoinRequest, LeavingMember  # noqa: E402


class World:
    """One history of a group, which is None, a classic one or one of the newer protocol."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.topics = FakeTopics(t=self.random.randint(1, 12))
        self.group: Group | ConsumerGroup | None = None
        self.cooperative = self.random.random() < 0.5
        self.newer: list[Client] = []
        self.classic: list[Classic] = []
        self.names = (f"m{number}" for number in count())
        self.now = 0.0
        self.is_quiet = False
        self.changes = 0  # of the group's protocol, while it had members
        self.searches: list[Search] = []  # in the group that there is, and in earlier ones
        self.disk = Disk({GroupType.CONSUMER: FORMAT, GroupType.CLASSIC: CLASSIC})

    @property
    def partitions(self) -> int:
        found = self.topics.find("t")
        assert found is not None
        return found.partitions

    # -- what the coordinators do ---------------------------------------------------------------------

    def changed(self) -> None:
        self._changed()
        if self.group is not None:
            self.disk.members.note("g", self.group)

    def _changed(self) -> None:
        group = self.group
        if isinstance(group, ConsumerGroup) and group.only_classic:
            self.group = downgraded(self.now, group, at_once)
            self.changes += 1
        elif group is not None and group.dead:
            self.disk.members.note("g", group)
            self.group = None

    def restart(self) -> None:
        """The broker ends, perhaps before the last thing that it did is on the disk, and is there again."""
        self.changed()
        rows, epoch = dict(self.disk.rows), self._epoch()
        if self.newer and self.random.random() < 0.3:
            self.send(self.random.choice(self.newer), lost="answer")
            self.disk.rows = rows
        else:
            epoch = self._epoch()

        def make(kind: Any, whole: Any, members: Any) -> Any:
            if kind is GroupType.CLASSIC:
                old = Group(self.now)
                deque(restoring_classic(self.now, old, whole, members), 0)
                return old
            group = ConsumerGroup(self.now, self.topics, epoch)
            deque(restoring(self.now, group, SESSION, whole, members), 0)
            return group

        self.group = self.disk.again(make)
        for one in self.classic:
            one.give_up_waiting()

    def _epoch(self) -> int:
        return self.group.epoch if isinstance(self.group, ConsumerGroup) else 0

    def classic_join(self, request: JoinRequest, reply: Any) -> None:
        group = self.group
        if isinstance(group, ConsumerGroup) and group.occupied:
            answer = classic.join(self.now, group, request)
            self.changed()
            reply(answer)
            return
        if not isinstance(group, Group):
            if request.member_id:
                reply(_Refused(UnknownMemberIdError))
                return
            self.group = group = Group(self.now)
        group.join(self.now, request, reply)
        self.changed()

    def classic_sync(self, one: Classic, shares: dict[str, bytes], reply: Any) -> None:
        group, member = self.group, (one.generation, one.member_id, None)
        if group is None:
            reply(_Refused(UnknownMemberIdError))
        elif isinstance(group, ConsumerGroup):
            answer = classic.sync(self.now, group, *member, "consumer", one.joined.protocol)
            self.changed()
            reply(answer)
        else:
            group.sync(self.now, *member, "consumer", one.joined.protocol, shares, reply)
            self.changed()

    def classic_heartbeat(self, one: Classic) -> Any:
        group, member = self.group, (one.generation, one.member_id, None)
        if group is None:
            return UnknownMemberIdError
        if isinstance(group, ConsumerGroup):
            answer = classic.heartbeat(self.now, group, *member)
        else:
            answer = group.heartbeat(self.now, *member)
        self.changed()
        return answer

    def heartbeat(self, client: Client) -> Any:
        before, group = self.group, self.group
        if not isinstance(group, ConsumerGroup):
            if client.epoch > 0 or (group is not None and client.epoch < 0):
                raise GroupIdNotFoundError
            if group is None or not group.occupied:
                group = ConsumerGroup(self.now, self.topics, 1)
            else:
                group = upgraded(self.now, "g", group, self.topics)
        answer = group.heartbeat(self.now, client.request(), SESSION, MOST)
        self.group = group
        if client.epoch >= 0 and (search := Search.begun(self.now, group, self.topics)):
            self.searches.append(search)
        if isinstance(before, Group):
            self.changes += before.occupied
            dismiss(before)
        self.changed()
        return answer

    # -- what may happen --------------------------------------------------------------------------

    def run(self, steps: int) -> None:
        happenings = (
            (self.beat, 40),
            (self.step, 60),
            (self.give_up, 15),
            (self.join, 5),
            (self.classic_comes, 5),
            (self.leave, 3),
            (self.die, 3),
            (self.stall, 1),
            (self.restart, 2),
            (self.extend, 1),
            (self.lose_connection, 3),
            (self.find_topics, 10),
        )
        actions = [action for action, weight in happenings for _ in range(weight)]
        with patch.object(classic, "uuid4", self.uuid), patch.object(group_module, "uuid4", self.uuid):
            for _ in range(steps):
                self.pass_time(self.random.uniform(0, INTERVAL / 8))
                self.random.choice(actions)()
                self.check()
            if self.random.random() < 0.3:
                self.restart()
            self.quiet()

    def uuid(self) -> UUID:
        """Of a member, the same in every run of a seed."""
        return UUID(int=self.random.getrandbits(128))

    def pass_time(self, seconds: float) -> None:
        self.now += seconds
        if self.group is not None and self.now >= self.group.wake_at:
            self.group.tick(self.now)
            self.changed()
        for client in self.newer:
            if self.now - client.heard >= SESSION:
                client.stop()

    def beat(self) -> None:
        if self.newer:
            lost = self.random.choice(["", "", "", "", "request", "answer"])
            self.send(self.random.choice(self.newer), lost)

    def send(self, client: Client, lost: str = "") -> None:
        sent = self.now
        if lost == "request":
            client.sure = False
            return
        try:
            answer = self.heartbeat(client)
        except KafkaError:
            client.stop()
            return
        if lost:
            client.sure = False
            return
        client.heard, client.sure, client.epoch = sent, True, answer.epoch
        if answer.assignment is not None:
            told = pairs(answer.assignment)
            client.giving_up = (client.giving_up | (client.reading - told)) - told
            client.reading = told

    def step(self) -> None:
        if self.classic:
            self.random.choice(self.classic).step(lost=self.random.random() < 0.1)

    def give_up(self) -> None:
        if self.newer:
            self.random.choice(self.newer).giving_up = set()

    def join(self) -> None:
        if len(self.newer) < 4:
            names, regex = self.random.choice([(["t"], None), (["t"], None), ([], "t"), (["t"], "t.*")])
            self.newer.append(Client(next(self.names), names, None, regex))

    def find_topics(self) -> None:
        """A search for topics of expressions ends."""
        if self.searches:
            self.searches.pop(0).end()
            self.changed()

    def classic_comes(self) -> None:
        if len(self.classic) < 4:
            self.classic.append(Classic(self, self.cooperative))

    def lose_connection(self) -> None:
        if self.classic:
            self.random.choice(self.classic).give_up_waiting()

    def leave(self) -> None:
        both: list[Any] = [*self.newer, *self.classic]
        if both:
            self.end(self.random.choice(both))

    def end(self, one: Any) -> None:
        if isinstance(one, Classic):
            self.classic.remove(one)
            one.calls += 1
            leaving = [LeavingMember(one.member_id, None, None)]
            if isinstance(self.group, ConsumerGroup):
                classic.leave(self.now, self.group, leaving)
            elif self.group is not None:
                self.group.leave(self.now, leaving)
            self.changed()
            return
        self.newer.remove(one)
        one.epoch = -1
        with suppress(KafkaError):
            self.heartbeat(one)

    def die(self) -> None:
        both: list[Any] = [*self.newer, *self.classic]
        if both:
            one = self.random.choice(both)
            (self.classic if isinstance(one, Classic) else self.newer).remove(one)
            if isinstance(one, Classic):
                one.calls += 1

    def stall(self) -> None:
        self.pass_time(self.random.choice([SESSION * 0.6, SESSION, REBALANCE]))

    def extend(self) -> None:
        if isinstance(self.group, Group):
            return  # its leader would have to notice
        self.topics.extend("t", self.partitions + 1)

    # -- what must hold ------------------------------------------------------------------------------

    def readers(self) -> dict[str, set[int]]:
        """What each client reads that the group still has as a member."""
        members = self.group.members if self.group is not None else ()
        found = {
            one.name: {number for _, number in one.reading | one.giving_up}
            for one in self.newer
            if one.name in members
        }
        found.update((one.member_id, one.reading) for one in self.classic if one.member_id in members)
        return found

    def check(self) -> None:
        seen: dict[int, str] = {}
        for name, numbers in self.readers().items():
            for number in numbers:
                if number in seen:
                    raise BrokenError(f"{number} is read by {seen[number]} and {name}")
                seen[number] = name
        if isinstance(self.group, ConsumerGroup):
            self.check_commits(self.group, seen)

    def check_commits(self, group: ConsumerGroup, seen: dict[int, str]) -> None:
        for one in self.newer:
            member = group.members.get(one.name)
            if member is None or one.epoch <= 0:
                continue
            for number in range(self.partitions):
                error = group.check_commit(self.now, one.epoch, one.name, None, [("t", number)])
                if seen.get(number) == one.name and error is not None:
                    raise BrokenError(f"{one.name} reads {number} and may not commit: {error}")
                if one.epoch < member.epoch and seen.get(number, one.name) != one.name and error is None:
                    raise BrokenError(f"{one.name} may commit for {number}, which {seen[number]} reads")

    def quiet(self) -> None:
        """Some leave; the others are well from here on. After some time everything is read."""
        self.is_quiet = True
        ending = self.random.choice(["mixed", "newer", "classic"])
        for one in list(self.classic) if ending == "newer" else []:
            self.end(one)
        for other in list(self.newer) if ending == "classic" else []:
            self.end(other)
        for _ in range(60):
            self.pass_time(INTERVAL)
            for client in list(self.newer):
                client.giving_up = set()
                self.send(client)
                self.find_topics()
                self.check()
            for one in list(self.classic):
                one.step()
                one.step()
                self.check()
        if not self.newer and not self.classic:
            return
        read = sorted(number for numbers in self.readers().values() for number in numbers)
        if read != list(range(self.partitions)):
            raise BrokenError(f"read: {read} of {self.partitions}")
        assert self.group is not None
        if isinstance(self.group, ConsumerGroup) is not bool(self.newer):
            raise BrokenError(f"a {self.group.type.value} group with {len(self.newer)} newer members")
        if len(self.group.members) != len(self.newer) + len(self.classic):
            raise BrokenError("there are members without a client")
        if self.group.state_name != "Stable":
            raise BrokenError(f"the group is {self.group.state_name}")


class _Refused:
    """The answer where there is no group."""

    member_id = ""

    def __init__(self, error: Any) -> None:
        self.error = error


def play(seed: int) -> None:
    World(seed).run(300)


if __name__ == "__main__":
    histories.main("scripts/mixed_groups", "Random histories of groups of both protocols.", play, 10_000)
