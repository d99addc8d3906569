"""The states of a classic group, answers to members that have joined, and how they reach many members."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import Enum
from typing import NamedTuple

from dafka.broker.groups.members import JoinReply, Member, Reply
from dafka.broker.interface.groups import Joined, JoinedMember

Deliver = Callable[[Iterable[Reply], int], object]


class State(Enum):
    """The state of a group, by Kafka's names."""

    EMPTY = "Empty"
    PREPARING = "PreparingRebalance"
    COMPLETING = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


def at_once(replies: Iterable[Reply], count: int) -> None:
    """Give answers without delay."""
    for reply, value in replies:
        reply(value)


class Generation(NamedTuple):
    """Its number, the protocol that its members use, and the member that computes the assignment."""

    number: int
    protocol_type: str | None
    protocol: str | None
    leader: str

    def joined(self, member_id: str, everybody: Iterable[Member]) -> Joined:
        """The answer to the join of a member; the leader is told of everybody."""
        members: Sequence[JoinedMember] = ()
        if member_id == self.leader:
            members = [
                JoinedMember(other.member_id, other.request.instance_id, other.metadata(self.protocol))
                for other in everybody
            ]
        return Joined(None, self.number, self.protocol_type, self.protocol, self.leader, member_id, members)

    def answers(
        self, joins: Iterable[tuple[JoinReply | None, str]], everybody: Sequence[Member]
    ) -> Iterator[Reply]:
        """The answers to the joins of these members, each made when it is taken."""
        for reply, member_id in joins:
            if reply is not None:
                yield reply, self.joined(member_id, everybody)
