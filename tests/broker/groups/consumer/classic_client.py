"""A client with the classic protocol in histories of groups that change theirs.

When it joins again it stops reading everything (eager), or only what it is not given any more (cooperative).
"""

from __future__ import annotations

from random import Random
from typing import Any, Protocol

from broker.groups.modern.world import REBALANCE, SESSION
from broker.groups.restarts import HOST
from kafka.errors import MemberIdRequiredError, RebalanceInProgressError, UnknownMemberIdError
from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment, ConsumerProtocolSubscription

from dafka.broker.interface.groups import JoinRequest

OUT, JOINING, JOINED, SYNCING, STABLE = "out", "joining", "joined", "syncing", "stable"


class Coordinator(Protocol):
    """The calls of such a client; answers come by the functions that it gives."""

    random: Random
    partitions: int
    is_quiet: bool

    def classic_join(self, request: JoinRequest, reply: Any) -> None: ...

    def classic_sync(self, one: Classic, shares: dict[str, bytes], reply: Any) -> None: ...

    def classic_heartbeat(self, one: Classic) -> Any: ...


class Classic:
    """A client with the classic protocol; its next call depends on the last answer that it got."""

    def __init__(self, world: Coordinator, cooperative: bool) -> None:
        self.world = world
        self.cooperative = cooperative
        self.member_id = ""
        self.phase = OUT
        self.joined: Any = None
        self.generation = -1
        self.reading: set[int] = set()
        self.calls = 0  # an answer to an older call is not looked at

    @property
    def protocol(self) -> str:
        return "cooperative-sticky" if self.cooperative else "range"

    def step(self, lost: bool = False) -> None:
        if self.phase == OUT:
            self._join(lost)
        elif self.phase == JOINED:
            self._sync(lost)
        elif self.phase == STABLE:
            error = self.world.classic_heartbeat(self)
            if error is not None and not lost:
                self._failed(error)

    def give_up_waiting(self) -> None:
        """The connection was lost; it asks again."""
        if self.phase in (JOINING, SYNCING):
            self.calls += 1
            self.phase = OUT

    def _join(self, lost: bool) -> None:
        if not self.cooperative:
            self.reading = set()
        owned = [("t", sorted(self.reading))] if self.reading else []
        metadata = ConsumerProtocolSubscription(
            version=1, topics=["t"], user_data=b"", owned_partitions=owned
        ).encode()
        protocols = [(self.protocol, bytes(metadata))]
        self.calls += 1
        self.phase = OUT if lost else JOINING
        number = self.calls if not lost else -1
        self.world.classic_join(
            JoinRequest(
                self.member_id,
                SESSION,
                REBALANCE,
                "consumer",
                protocols,
                client_id="c",
                client_host=HOST,
                require_known_member=True,
            ),
            lambda answer: self._was_joined(number, answer),
        )

    def _was_joined(self, number: int, answer: Any) -> None:
        if number != self.calls:
            return
        if answer.error is MemberIdRequiredError:
            self.member_id, self.phase = answer.member_id, OUT
        elif answer.error is not None:
            self._failed(answer.error)
        else:
            self.member_id, self.generation = answer.member_id, answer.generation
            self.joined, self.phase = answer, JOINED

    def _sync(self, lost: bool) -> None:
        joined = self.joined
        shares: dict[str, bytes] = {}
        if joined.leader == self.member_id and joined.members:
            shares = self._assigned(joined.members)
        self.calls += 1
        self.phase = OUT if lost else SYNCING
        number = self.calls if not lost else -1
        self.world.classic_sync(self, shares, lambda answer: self._was_synced(number, answer))

    def _assigned(self, members: Any) -> dict[str, bytes]:
        """Fair shares, of which a cooperative member first gets what no other one still has."""
        owner: dict[int, str] = {}
        for one in members:
            subscription = ConsumerProtocolSubscription.decode(one.metadata)
            for topic in subscription.owned_partitions or ():
                owner.update(dict.fromkeys(topic.partitions, one.member_id))
        names = sorted(one.member_id for one in members)
        if not self.world.is_quiet:  # leaders come to an end when their shares stay the same
            self.world.random.shuffle(names)
        shares: dict[str, list[int]] = {name: [] for name in names}
        for number in range(self.world.partitions):
            name = names[number % len(names)]
            if owner.get(number, name) == name:
                shares[name].append(number)
        return {
            name: bytes(ConsumerProtocolAssignment(0, [("t", numbers)], b"").encode())
            for name, numbers in shares.items()
        }

    def _was_synced(self, number: int, answer: Any) -> None:
        if number != self.calls:
            return
        if answer.error is not None:
            self._failed(answer.error)
            return
        told: set[int] = set()
        if answer.assignment:
            assigned = ConsumerProtocolAssignment.decode(answer.assignment).partitions()
            told = {one.partition for one in assigned}
        given_up = self.reading - told
        self.reading = told
        self.phase = OUT if given_up else STABLE  # the revoked ones are for others in the next generation

    def _failed(self, error: Any) -> None:
        self.phase = OUT
        if error is RebalanceInProgressError:
            return
        self.reading, self.generation = set(), -1
        if error is UnknownMemberIdError:
            self.member_id = ""
