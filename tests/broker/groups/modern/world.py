"""What histories of groups have in common whose assignment the broker computes: members that live by a seed.

A history adds what its members have and do, and what must hold.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from random import Random
from typing import Any, Generic, Protocol, TypeVar

from broker.groups.restarts import Disk
from kafka.errors import KafkaError

from dafka.broker.groups.modern.group import ModernGroup
from dafka.broker.interface.groups import GroupType

SESSION, REBALANCE, INTERVAL = 10.0, 15.0, 2.0
MOST = 12


class BrokenError(AssertionError):
    """What must hold does not."""


class Member(Protocol):
    """A client: ``sure`` is whether its last heartbeat was answered, ``heard`` when it sent that."""

    name: str
    epoch: int
    sure: bool
    heard: float

    def request(self) -> Any: ...

    def stop(self) -> None:
        """Stop whatever it does for the group, as after a session without an answer."""


C = TypeVar("C", bound=Member)


def standing(group: ModernGroup[Any, Any]) -> dict[str, Any]:
    """What a restart leaves as it was: epochs, targets, and how far members are on their way to them."""
    return {
        "epochs": (group.epoch, group.assignment_epoch),
        "state": group.state_name,
        "members": {
            name: (_some(group.target.get(name)), member.epoch, group.is_reconciled(member))
            for name, member in group.members.items()
        },
    }


def _some(target: Any) -> Any:
    """A target, None if there is nothing in it: a member that came after the last one has as much."""
    return target if target and any(target) else None


class World(ABC, Generic[C]):
    """One history of a group."""

    group: ModernGroup[Any, Any]
    disk: Disk

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.clients: list[C] = []
        self.names = (f"m{number}" for number in count())
        self.now = 0.0
        self.epoch = 0

    @abstractmethod
    def happenings(self) -> list[tuple[Callable[[], None], int]]:
        """What may happen, and how often beside the others."""

    @abstractmethod
    def heartbeat(self, request: Any) -> Any:
        """The group's answer."""

    @abstractmethod
    def make(self, kind: GroupType, whole: Any, members: Any) -> ModernGroup[Any, Any]:
        """The group of what was kept, or without a kind an empty one of the last epoch."""

    @abstractmethod
    def late_request(self, client: C, epoch: int) -> Any:
        """A heartbeat that a client had sent when that was its epoch."""

    @abstractmethod
    def own(self, client: C) -> Any:
        """What a client has to keep if it is in its next target too."""

    @abstractmethod
    def take(self, client: C, answer: Any, own: Any) -> None:
        """Do what the group answered; ``own`` is what :meth:`own` was before."""

    @abstractmethod
    def check(self) -> None:
        """Raise BrokenError if something does not hold that has to at any time."""

    @abstractmethod
    def quiet(self) -> None:
        """From here on everybody is well; after some time everything has its owner."""

    def run(self, steps: int) -> None:
        actions = [action for action, weight in self.happenings() for _ in range(weight)]
        for _ in range(steps):
            self.pass_time(self.random.uniform(0, INTERVAL / 4))
            self.random.choice(actions)()
            self.disk.members.note("g", self.group)
            self.check()
        if self.random.random() < 0.3:
            self.restart()
        self.quiet()

    # -- what may happen --------------------------------------------------------------------------

    def pass_time(self, seconds: float) -> None:
        self.now += seconds
        if self.now >= self.group.wake_at:
            self.group.tick(self.now)
        for client in self.clients:
            if self.now - client.heard >= SESSION:
                client.stop()

    def some(self) -> C | None:
        return self.random.choice(self.clients) if self.clients else None

    def beat(self) -> None:
        client = self.some()
        if client is not None:
            self.send(client, lost=self.random.choice(["", "", "", "", "", "request", "answer"]))

    def send(self, client: C, lost: str = "") -> None:
        sent = self.now
        request = client.request()
        if lost == "request":
            client.sure = False
            return
        own = self.own(client)
        try:
            answer = self.heartbeat(request)
        except KafkaError:
            if lost:
                client.sure = False
            else:
                client.stop()
            return
        if lost:
            client.sure = False
            return
        client.heard, client.sure = sent, True
        if answer.epoch < client.epoch:
            raise BrokenError(f"{client.name} went back from epoch {client.epoch} to {answer.epoch}")
        client.epoch = answer.epoch
        self.take(client, answer, own)

    def die(self) -> None:
        client = self.some()
        if client is not None:
            self.clients.remove(client)

    def stall(self) -> None:
        """A pause of the whole world, in which sessions and rebalances time out."""
        self.pass_time(self.random.choice([SESSION * 0.6, SESSION, REBALANCE]))

    def restart(self) -> None:
        """The broker ends, perhaps before the last thing that it did is on the disk, and is there again."""
        self.disk.members.note("g", self.group)
        rows, epoch, before = dict(self.disk.rows), self.group.epoch, standing(self.group)
        is_settled = self.is_settled()
        seen = self.group._version  # of the topics: a heartbeat has yet to come since later changes
        client = self.some()
        if client is not None and self.random.random() < 0.5:
            self.send(client, lost="answer")
            self.disk.rows, self.group.epoch = rows, epoch
        found = self.disk.again(self.make)
        self.group = found if found is not None else self.make(None, None, None)
        is_same = found is not None and found._topics.version == seen and is_settled
        if is_same and standing(found) != before:
            raise BrokenError(f"a restart made {standing(found)} of {before}")

    def come_with_an_old_epoch(self) -> None:
        """Something of long ago arrives, as from a process that had been stopped."""
        client = self.some()
        member = None if client is None else self.group.members.get(client.name)
        if client is None or member is None:
            return
        epoch = client.epoch - self.random.randint(1, 3)
        if epoch < 1 or epoch in (member.epoch, member.previous_epoch):
            return
        with suppress(KafkaError):
            self.heartbeat(self.late_request(client, epoch))
            raise BrokenError(f"epoch {epoch} was taken from {client.name}, whose epoch is {member.epoch}")

    def is_settled(self) -> bool:
        """Whether a restart leaves epochs as they are."""
        return True

    # -- what must hold ------------------------------------------------------------------------------

    def check_epoch(self) -> None:
        if self.group.epoch < self.epoch:
            raise BrokenError("the group's epoch went back")
        self.epoch = self.group.epoch
