"""A Streams group and its processes, driven by a seed: processes lag, die, lose answers and come back.

Checked at every step: no task is run by two members; no process has a task in two roles; a member gives up
only what is not in its target; epochs do not go back. When it is quiet, every task is run once and has as
many copies as there are other processes for it, internal topics exist with as many partitions as they need,
and shares are even.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from kafka.errors import KafkaError

ROOT = Path(__file__).parents[4]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]  # for a run as a program

import histories  # noqa: E402 - needs the path
from broker.groups.modern import world  # noqa: E402
from broker.groups.modern.known_topics import FakeTopics  # noqa: E402
from broker.groups.modern.world import INTERVAL, MOST, REBALANCE, SESSION, BrokenError  # noqa: E402
from broker.groups.restarts import HOST, Disk  # noqa: E402

from dafka.broker.groups.streams.group import Answer, Settings, StreamsGroup  # noqa: E402
from dafka.broker.groups.streams.kept_members import FORMAT  # noqa: E402
from dafka.broker.groups.streams.restoring import restoring  # noqa: E402
from dafka.broker.groups.streams.tasks import NOTHING, Roles, TaskId, each, joined, minus, split  # noqa: E402
from dafka.broker.interface.groups import GroupType  # noqa: E402
from dafka.broker.interface.streams_groups import (  # noqa: E402
    Endpoint,
    InternalTopic,
    StatusCode,
    StreamsHeartbeat,
    Subtopology,
    Topology,
)

TOPOLOGY = Topology(
    1,
    [
        Subtopology("0", ["a"], repartition_sinks=["r"]),
        Subtopology("1", ["b"], [], [InternalTopic("c1")], [], [InternalTopic("r")]),
        Subtopology("2", ["a", "b"], [], [InternalTopic("c2")]),
    ],
)


class Client:
    """A stream thread as the protocol wants it: it stops a task before it says so, and all of them when its
    session has passed without an answer."""

    def __init__(self, name: str, process: str) -> None:
        self.name = name
        self.process = process
        self.epoch = 0
        self.endpoints = -1
        self.running = NOTHING
        self.closing = NOTHING  # it still runs these, while it commits
        self.sure = False  # whether its last heartbeat was answered
        self.heard = 0.0  # when it sent the last one that was

    @property
    def has(self) -> Roles:
        return joined(self.running, self.closing)

    def request(self) -> StreamsHeartbeat:
        owned = NOTHING if self.epoch == 0 else self.has
        joining = self.epoch == 0
        return StreamsHeartbeat(
            self.name,
            self.epoch,
            self.endpoints,
            rebalance_timeout=REBALANCE if joining else None,
            topology=TOPOLOGY if joining else None,
            active=owned.active,
            standby=owned.standby,
            warmup={},
            process_id=self.process if joining else None,
            endpoint=Endpoint(self.process, 1) if joining else None,
            client_host=HOST,
        )

    def stop(self) -> None:
        self.running, self.closing, self.epoch, self.sure = NOTHING, NOTHING, 0, False


class World(world.World[Client]):
    """One history of a group."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.topics = FakeTopics(a=self.random.randint(1, 8))
        if self.random.random() < 0.7:
            self.topics.create("b", self.random.randint(1, 5))
        self.group = StreamsGroup(0.0, self.topics, 1)
        self.disk = Disk({GroupType.STREAMS: FORMAT})
        self.delay = self.random.choice([0.0, 0.0, 1.0])
        self.interval = self.random.choice([0.0, 0.0, 0.7])
        self.standbys = self.random.choice([0, 1, 2])

    # -- what may happen --------------------------------------------------------------------------

    def happenings(self) -> list[tuple[Callable[[], None], int]]:
        return [
            (self.beat, 60),
            (self.close_tasks, 25),
            (self.join, 6),
            (self.leave, 3),
            (self.die, 3),
            (self.change_topics, 2),
            (self.change_standbys, 1),
            (self.stall, 1),
            (self.restart, 2),
            (self.come_with_an_old_epoch, 3),
        ]

    def settings(self) -> Settings:
        return Settings(SESSION, INTERVAL, self.delay, self.interval, self.standbys)

    def join(self) -> None:
        if len(self.clients) < MOST - 2:
            self.clients.append(Client(next(self.names), f"p{self.random.randint(1, 4)}"))

    def send(self, client: Client, lost: str = "") -> None:
        if not client.sure and client.epoch and self.random.random() < 0.2:
            client.stop()  # it restarts rather than ask again
        super().send(client, lost)

    def heartbeat(self, request: StreamsHeartbeat) -> Answer:
        self.group.receive(self.now, request, self.settings(), MOST)
        for topic in self.group.missing.values():
            self.topics.create(topic.name, topic.partitions)
        return self.group.proceed(self.now, request, self.settings())

    def make(self, kind: Any, whole: Any, members: Any) -> StreamsGroup:
        group = StreamsGroup(self.now, self.topics, self.group.epoch)
        if self.group.topology is not None:
            group.begin_with(self.group.topology)
        if kind is not None:
            deque(restoring(self.now, group, SESSION, whole, members), 0)
        return group

    def own(self, client: Client) -> Roles:
        return minus(self.target(client), self.revoked(client))

    def take(self, client: Client, answer: Answer, own: Roles) -> None:
        if answer.tasks is not None:
            stopped = split(client.running, answer.tasks)[1]
            if split(split(stopped, own)[0], self.target(client))[0] != NOTHING:
                raise BrokenError(f"{client.name} was to stop what is its own")
            client.closing = split(joined(client.closing, stopped), answer.tasks)[1]
            client.running = answer.tasks

    def target(self, client: Client) -> Roles:
        member = self.group.members.get(client.name)
        return NOTHING if member is None else self.group.target_of(member)

    def revoked(self, client: Client) -> Roles:
        """Tasks that it is to give up, though it may have been told so in vain and they may be its own
        again."""
        member = self.group.members.get(client.name)
        return NOTHING if member is None else member.revoking

    def late_request(self, client: Client, epoch: int) -> StreamsHeartbeat:
        return client.request()._replace(
            member_epoch=epoch, topology=None, process_id=None, endpoint=None, rebalance_timeout=None
        )

    def close_tasks(self) -> None:
        client = self.some()
        if client is not None:
            client.closing = NOTHING

    def leave(self) -> None:
        client = self.some()
        if client is not None:
            self.clients.remove(client)
            with suppress(KafkaError):
                self.group.receive(self.now, StreamsHeartbeat(client.name, -1), self.settings(), MOST)

    def change_standbys(self) -> None:
        self.standbys = self.random.choice([0, 1, 2])

    def change_topics(self) -> None:
        name = self.random.choice(["b", "b", "a", "r", "c1", "c2"])
        known = self.topics.find(name)
        if known is None:
            if name == "b":
                self.topics.create(name, self.random.randint(1, 5))
        elif self.random.random() < 0.5:
            self.topics.delete(name)
        elif name in ("a", "b") and not self.made():
            self.topics.extend(name, known.partitions + 1)

    def made(self) -> bool:
        """Whether there are internal topics, which do not grow with the others."""
        return any(self.topics.find(name) for name in ("r", "c1", "c2"))

    # -- what must hold ------------------------------------------------------------------------------

    def check(self) -> None:
        self.check_epoch()
        runs: dict[TaskId, str] = {}
        roles: set[tuple[str, TaskId]] = set()
        for client in self.clients:
            if client.name not in self.group.members:
                continue  # removed, and has yet to hear of it: its commits are refused
            for task in each(client.has.active):
                if task in runs:
                    raise BrokenError(f"{task} is run by {runs[task]} and {client.name}")
                runs[task] = client.name
            for share in client.has:
                for task in each(share):
                    if (client.process, task) in roles:
                        raise BrokenError(f"{client.process} has {task} twice")
                    roles.add((client.process, task))
        for member in self.group.members.values():
            if member.deadline == float("inf"):
                raise BrokenError(f"{member.member_id} would stay for ever")

    def quiet(self) -> None:
        """From here on everybody is well; after some time everything is run."""
        for name in ("a", "b"):
            if self.topics.find(name) is None:
                self.topics.create(name, 3)
        fixed = {"c2": max(self.partitions("a"), self.partitions("b")), "r": self.partitions("a")}
        fixed["c1"] = max(fixed["r"], self.partitions("b"))
        for name, number in fixed.items():
            known = self.topics.find(name)
            if known is not None and known.partitions != number:
                self.topics.delete(name)
        for _ in range(40):
            self.pass_time(0 if self.clients else INTERVAL)
            for client in list(self.clients):
                self.pass_time(INTERVAL / max(len(self.clients), 1))
                client.closing = NOTHING
                self.send(client)
                self.check()
        if self.clients:
            self.check_quiet(fixed)

    def partitions(self, name: str) -> int:
        known = self.topics.find(name)
        return 0 if known is None else known.partitions

    def check_quiet(self, fixed: dict[str, int]) -> None:
        found = {name: self.partitions(name) for name in fixed}
        if found != fixed:
            raise BrokenError(f"internal topics {found}, expected {fixed}")
        tasks = {"0": self.partitions("a"), "1": fixed["c1"], "2": fixed["c2"]}
        expected = sorted((name, number) for name, count in tasks.items() for number in range(count))
        running = sorted(task for client in self.clients for task in each(client.running.active))
        if running != expected:
            raise BrokenError(f"run: {running}, expected: {expected}")
        processes = {client.process for client in self.clients}
        copies = min(self.standbys, len(processes) - 1)
        standby = sorted(task for client in self.clients for task in each(client.running.standby))
        wanted = sorted(task for task in expected if task[0] != "0" for _ in range(copies))
        if standby != wanted:
            raise BrokenError(f"copies: {standby}, expected: {wanted}")
        if self.group.state_name != "Stable":
            raise BrokenError(f"the group is {self.group.state_name}")
        if set(self.group.members) != {client.name for client in self.clients}:
            raise BrokenError("there are members without a client")
        counts = [len(list(each(client.running.active))) for client in self.clients]
        threads = [sum(one.process == process for one in self.clients) for process in processes]
        if len(set(threads)) == 1 and max(counts) > -(-len(expected) // len(counts)):
            raise BrokenError(f"shares of {counts}")
        told = {one.code for one in self.group._statuses(self.now, next(iter(self.group.members.values())))}
        if told & {StatusCode.MISSING_SOURCE_TOPICS, StatusCode.MISSING_INTERNAL_TOPICS}:
            raise BrokenError(f"members are told {told}")


def play(seed: int) -> None:
    World(seed).run(200)


if __name__ == "__main__":
    histories.main("scripts/streams_groups", "Random histories of groups of Kafka Streams.", play, 10_000)
