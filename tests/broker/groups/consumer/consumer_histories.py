"""A consumer group and its clients, driven by a seed: clients lag, die, come back and lose answers.

Some subscribe by regular expressions, whose topics are found later, or not for now. Checked at every step:
nobody reads what another member reads; a member is told to stop reading only what is not in its target or
what it no longer subscribes to, and to read only what it does; epochs do not go back. When it is quiet, every
partition is read by one subscriber.
"""

from __future__ import annotations

import re
import sys
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import Any
from unittest.mock import patch
from uuid import UUID

from kafka.errors import KafkaError

ROOT = Path(__file__).parents[4]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]  # for a run as a program

import histories  # noqa: E402 - needs the path
from broker.groups.modern import world  # noqa: E402
from broker.groups.modern.known_topics import FakeTopics  # noqa: E402
from broker.groups.modern.world import INTERVAL, MOST, REBALANCE, SESSION, BrokenError  # noqa: E402
from broker.groups.restarts import HOST, Disk  # noqa: E402

from dafka.broker import limits  # noqa: E402
from dafka.broker.groups.consumer import group as group_module  # noqa: E402
from dafka.broker.groups.consumer.group import ConsumerGroup  # noqa: E402
from dafka.broker.groups.consumer.kept import FORMAT  # noqa: E402
from dafka.broker.groups.consumer.restoring import restoring  # noqa: E402
from dafka.broker.interface.consumer_groups import ConsumerHeartbeat, ConsumerHeartbeatAnswer  # noqa: E402
from dafka.broker.interface.groups import GroupType  # noqa: E402

REFRESH = 60.0


class Search:
    """Topics of a group's expressions that are being looked for: what there was when that began counts."""

    def __init__(self, group: ConsumerGroup, expressions: Iterable[str], topics: FakeTopics) -> None:
        self.group = group
        self.found = {
            one: frozenset(filter(re.compile(one).fullmatch, topics.names())) for one in expressions
        }

    @classmethod
    def begun(cls, now: float, group: ConsumerGroup, topics: FakeTopics) -> Search | None:
        """The one that is due after a heartbeat."""
        resolution = group.expressions.begin(now, topics, REFRESH)
        return None if resolution is None else cls(group, resolution.expressions, topics)

    def end(self, meanwhile: Callable[[], object] = lambda: None) -> None:
        """The group takes over what was found; ``meanwhile`` happens after each member."""
        for _ in self.group.resolving(self.found):
            meanwhile()


def pairs(assignment: Any) -> set[tuple[UUID, int]]:
    return {(topic, number) for topic, numbers in assignment.items() for number in numbers}


def by_topic(partitions: set[tuple[UUID, int]]) -> dict[UUID, frozenset[int]]:
    return {
        topic: frozenset(number for other, number in partitions if other == topic)
        for topic in {topic for topic, _ in partitions}
    }


class Client:
    """A client as the protocol wants it: it stops reading before it says so, and by itself when its session
    has passed without an answer."""

    def __init__(self, name: str, topics: list[str], instance: str | None, regex: str | None = None) -> None:
        self.name = name
        self.topics, self.regex = topics, regex
        self.instance = instance
        self.epoch = 0
        self.reading: set[tuple[UUID, int]] = set()
        self.giving_up: set[tuple[UUID, int]] = set()  # it still reads these, while it commits
        self.sure = False  # whether its last heartbeat was answered
        self.heard = 0.0  # when it sent the last one that was

    def request(self) -> ConsumerHeartbeat:
        full = not self.sure or self.epoch == 0
        return ConsumerHeartbeat(
            self.name,
            self.epoch,
            self.instance,
            rebalance_timeout=REBALANCE if full else None,
            topics=self.topics if full else None,
            regex=(self.regex or "") if full else None,
            owned=by_topic(self.reading | self.giving_up),
            client_host=HOST,
        )

    def stop(self) -> None:
        self.reading, self.giving_up, self.epoch, self.sure = set(), set(), 0, False


class World(world.World[Client]):
    """One history of a group."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.topics = FakeTopics(a=self.random.randint(1, 12), b=self.random.randint(1, 6))
        self.group = ConsumerGroup(0.0, self.topics, 1)
        self.disk = Disk({GroupType.CONSUMER: FORMAT})
        self.under_way: list[str] = []  # members whose heartbeats have yet to arrive
        self.is_ending = False
        self.away: list[Client] = []  # static ones that have left and will come back
        self.search: Search | None = None

    # -- what may happen --------------------------------------------------------------------------

    def happenings(self) -> list[tuple[Callable[[], None], int]]:
        return [
            (self.beat, 60),
            (self.give_up, 25),
            (self.join, 6),
            (self.leave, 3),
            (self.die, 3),
            (self.change_topics, 2),
            (self.resubscribe, 3),
            (self.go_away, 2),
            (self.come_back, 3),
            (self.stall, 1),
            (self.restart, 2),
            (self.come_with_an_old_epoch, 3),
            (self.find_topics, 15),
        ]

    def wanted(self) -> tuple[list[str], str | None]:
        """Names, and an expression."""
        names = self.random.choice([["a"], ["a", "b"], ["a", "b"], ["b"], ["a", "later"]])
        if self.random.random() < 0.5:
            return names, None
        regex = self.random.choice(["a|b", "a|b", "a.*", "later|b", "none"])
        return names if self.random.random() < 0.3 else [], regex

    def find_topics(self) -> None:
        """The search for topics that is under way ends, perhaps with nothing."""
        search, self.search = self.search, None
        if search is not None and self.random.random() < 0.2:
            search.group.expressions.fail()
        elif search is not None:
            search.end(self.meanwhile)

    def meanwhile(self) -> None:
        if not self.is_ending and self.random.random() < 0.2:
            self.beat()

    def join(self) -> None:
        if len(self.clients) < MOST - 2:
            static = self.random.random() < 0.3
            name = next(self.names)
            names, regex = self.wanted()
            self.clients.append(Client(name, names, f"i{name}" if static else None, regex))

    def heartbeat(self, request: ConsumerHeartbeat) -> ConsumerHeartbeatAnswer:
        """Some moves are computed ahead, and then those of others may come first."""
        if self.random.random() < 0.4:
            with patch.object(group_module, "MOVED_AT_ONCE", 0):
                self.group.look_ahead(request, lambda function, *arguments: function(*arguments))
            self.under_way.append(request.member_id)  # no member has two of them
            for _ in chain(self.group.reserving(request.member_id), (None,)):
                other = None if self.is_ending else self.some()
                if other is not None and other.name not in self.under_way and self.random.random() < 0.4:
                    self.send(other)
            self.under_way.pop()
        answer = self.group.heartbeat(self.now, request, SESSION, MOST)
        if request.member_epoch >= 0 and (search := Search.begun(self.now, self.group, self.topics)):
            self.search = search
        return answer

    def restart(self) -> None:
        self.is_ending = True  # nobody is answered of whom there is nothing on the disk
        super().restart()
        self.is_ending, self.search = False, None

    def is_settled(self) -> bool:
        """Not if a member has given up topics, and the next target is yet to come."""
        group = self.group
        return not any(
            group.expressions.lacks(member.regex)
            or (group.is_reconciled(member) and member.assigned != group.target_of(member))
            for member in group.members.values()
        )

    def make(self, kind: Any, whole: Any, members: Any) -> ConsumerGroup:
        group = ConsumerGroup(self.now, self.topics, self.group.epoch)
        if kind is not None:
            deque(restoring(self.now, group, SESSION, whole, members), 0)
        return group

    def own(self, client: Client) -> set[tuple[UUID, int]]:
        return self.targets(client) - self.revoked(client)

    def take(self, client: Client, answer: ConsumerHeartbeatAnswer, own: set[tuple[UUID, int]]) -> None:
        if answer.assignment is not None:
            told = pairs(answer.assignment)
            there = {known.topic_id for known in self.topics.known.values()}
            if not self.subscribed(client).issuperset(there.intersection(answer.assignment)):
                raise BrokenError(f"{client.name} is to read what it does not subscribe to")
            if (client.reading - told) & own & self.targets(client):
                raise BrokenError(f"{client.name} was to stop reading what is its own")
            client.giving_up |= client.reading - told
            client.giving_up -= told
            client.reading = told

    def revoked(self, client: Client) -> set[tuple[UUID, int]]:
        """Partitions that it is to give up, though it may have been told so in vain and they may be its own
        again."""
        member = self.group.members.get(client.name)
        return set() if member is None else pairs(member.revoking)

    def targets(self, client: Client) -> set[tuple[UUID, int]]:
        member = self.group.members.get(client.name)
        target = set() if member is None else pairs(self.group.target_of(member))
        return {(topic, number) for topic, number in target if topic in self.subscribed(client)}

    def subscribed(self, client: Client) -> set[UUID]:
        """The ids of the topics that a member subscribes to, as far as its group knows."""
        member = self.group.members.get(client.name)
        names = set() if member is None else member.names | self.group.expressions.topics(member.regex)
        return {self.topics.known[name].topic_id for name in names if name in self.topics.known}

    def late_request(self, client: Client, epoch: int) -> ConsumerHeartbeat:
        owned = by_topic(client.reading)
        return ConsumerHeartbeat(client.name, epoch, client.instance, owned=owned, client_host=HOST)

    def give_up(self) -> None:
        client = self.some()
        if client is not None:
            client.giving_up = set()

    def leave(self) -> None:
        client = self.some()
        if client is not None:
            self.clients.remove(client)
            self.end(client, -1)

    def end(self, client: Client, epoch: int) -> None:
        with suppress(KafkaError):
            self.heartbeat(ConsumerHeartbeat(client.name, epoch, client.instance))

    def go_away(self) -> None:
        client = self.some()
        if client is not None and client.instance is not None:
            self.clients.remove(client)
            self.end(client, -2)
            client.stop()
            client.name = next(self.names)
            self.away.append(client)

    def come_back(self) -> None:
        if self.away and len(self.clients) < MOST - 2:
            self.clients.append(self.away.pop(self.random.randrange(len(self.away))))

    def resubscribe(self) -> None:
        client = self.some()
        if client is not None:
            (client.topics, client.regex), client.sure = self.wanted(), False

    def change_topics(self) -> None:
        name = self.random.choice(["a", "b", "later"])
        known = self.topics.find(name)
        if known is None:
            self.topics.create(name, self.random.randint(1, 6))
        elif self.random.random() < 0.3:
            self.topics.delete(name)
        else:
            self.topics.extend(name, known.partitions + 1)

    # -- what must hold ------------------------------------------------------------------------------

    def check(self) -> None:
        self.check_epoch()
        seen: dict[tuple[UUID, int], str] = {}
        for client in self.clients:
            if client.name not in self.group.members:
                continue  # removed, and has yet to hear of it: its commits are refused
            for partition in client.reading | client.giving_up:
                if partition in seen:
                    raise BrokenError(f"{partition} is read by {seen[partition]} and {client.name}")
                seen[partition] = client.name
        for member in self.group.members.values():
            if member.member_id not in {one.name for one in self.clients} and member.deadline == float("inf"):
                raise BrokenError(f"{member.member_id} would stay for ever")

    def quiet(self) -> None:
        """From here on everybody is well; after some time everything is read."""
        for _ in range(40):
            self.pass_time(0 if self.clients else INTERVAL)
            for client in list(self.clients):
                self.pass_time(INTERVAL / max(len(self.clients), 1))
                client.giving_up = set()
                self.send(client)
                if self.search is not None:
                    self.search.end()
                    self.search = None
                self.check()
        read = [partition for client in self.clients for partition in client.reading]
        wanted = {name for client in self.clients for name in self.read_by(client)}
        there = {name: self.topics.find(name) for name in wanted}
        expected = {
            (one.topic_id, number)
            for one in there.values()
            if one is not None
            for number in range(one.partitions)
        }
        if set(read) != expected or len(read) != len(expected):
            raise BrokenError(f"read: {sorted(read)}, expected: {sorted(expected)}")
        for client in self.clients:
            names = self.read_by(client)
            ids = {self.topics.known[name].topic_id for name in names if name in self.topics.known}
            if not {topic for topic, _ in client.reading} <= ids:
                raise BrokenError(f"{client.name} reads what it does not subscribe to")
        if len({frozenset(self.read_by(client)) for client in self.clients}) == 1:
            counts = [len(client.reading) for client in self.clients]
            if max(counts) - min(counts) > 1:
                raise BrokenError(f"shares of {counts}")
        if self.clients and self.group.state_name != "Stable":
            raise BrokenError(f"the group is {self.group.state_name}")
        if set(self.group.members) != {client.name for client in self.clients}:
            raise BrokenError("there are members without a client")

    def read_by(self, client: Client) -> set[str]:
        """The topics that a client wants to read, by name or by its expression."""
        matched = filter(re.compile(client.regex).fullmatch, self.topics.names()) if client.regex else ()
        return {*client.topics, *matched}


def play(seed: int) -> None:
    """With every other seed topics begin and end to be subscribed to, and partitions to be owned, one at a
    time, as where there are very many."""
    if seed % 2:
        World(seed).run(250)
        return
    with patch.object(limits, "TOPICS_AT_ONCE", 1):
        World(seed).run(250)


if __name__ == "__main__":
    histories.main("scripts/consumer_groups", "Random histories of consumer groups.", play, 10_000)
