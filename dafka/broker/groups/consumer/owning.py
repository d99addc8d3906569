"""The partitions of a consumer group's members, each of which is one member's alone.

Those of very many topics are taken and released some at a time: before the heartbeat in which a member gets
them, and in ticks after a member has gone. Until then nobody else can have them.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from math import inf
from typing import Any
from uuid import UUID

from dafka.broker import limits
from dafka.broker.groups.consumer.member import Member, Reserved
from dafka.broker.groups.consumer.moves import Move
from dafka.broker.groups.consumer.owned import Owned
from dafka.broker.groups.consumer.subscribed import SubscribedGroup
from dafka.broker.groups.modern.assignment import NOTHING, Assignment, size, without_nothing
from dafka.broker.groups.modern.topics import Topics
from dafka.hub.turns import in_pieces


class OwningGroup(SubscribedGroup):
    """A group whose members own partitions."""

    def __init__(self, now: float, topics: Topics, epoch: int = 0, name: str = "") -> None:
        super().__init__(now, topics, epoch, name)
        self._owned = Owned()
        self._let_go: list[list[Any]] = []  # what members had: very much is not freed at once

    def waits_for_others(self, member: Member) -> bool:
        """Whether what a member lacks is still somebody else's."""
        had = member.assigned
        return not any(
            self._owned.free(topic, numbers - had.get(topic, frozenset()))
            for topic, numbers in self.target_of(member).items()
        )

    def _taking(self, partitions: Assignment) -> Generator[None, None, Assignment]:
        """The free ones of these partitions, which are taken from now on, some at a time: the caller may
        pause."""
        taken: dict[UUID, frozenset[int]] = {}
        for some in in_pieces(partitions.items(), limits.TOPICS_AT_ONCE):
            taken.update(self._owned.take(without_nothing(dict(some))))
            yield
        return taken

    def _release_all(self, member: Member) -> None:
        self._reserved(member)
        self._owned.release(member.assigned)
        self._owned.release(member.revoking)
        if len(member.since) > limits.TOPICS_AT_ONCE:
            self._let_go.append(list(member.since.values()))
        member.since = {}
        member.assigned = member.revoking = NOTHING
        member.lacks, member.revoke_by = False, inf

    def _give_up(self, member: Member, partitions: Assignment) -> None:
        self._owned.release(partitions)
        member.lose(partitions)

    def reserving(self, member_id: str) -> Iterator[None]:
        """Take what the move of the next heartbeat needs, if that is of very many topics, some at a time.

        The move was computed ahead. The caller may pause, and the group may change meanwhile. What the
        heartbeat then does not need is free again.
        """
        member = self.members.get(member_id)
        move = None if member is None else member.ahead
        if member is None or move is None or member.reserved is not None or not move.has_given_up:
            return
        if len(move.missing) <= limits.TOPICS_AT_ONCE:
            return
        reserved = member.reserved = Reserved(move)
        for some in in_pieces(move.missing.items(), limits.TOPICS_AT_ONCE):
            wanted = dict(some)
            taken = self._owned.take(wanted)
            reserved.taken.update(taken)
            reserved.lacks = reserved.lacks or size(taken) < size(wanted)
            yield
            if member.reserved is not reserved:  # whoever has it now has what was taken
                return
        reserved.is_whole = True

    def _reserved(self, member: Member, move: Move | None = None) -> Reserved | None:
        """What was reserved for this move, if all of it was; anything else is free again."""
        reserved, member.reserved = member.reserved, None
        if reserved is None:
            return None
        if reserved.is_whole and reserved.move is move:
            return reserved
        self._owned.release(reserved.taken)
        return None

    @property
    def _has_more(self) -> bool:
        return super()._has_more or self._owned.is_releasing or bool(self._let_go)

    def _end_some(self) -> None:
        super()._end_some()
        self._owned.release_some()
        if self._let_go:
            del self._let_go[-1][-limits.TOPICS_AT_ONCE :]
            if not self._let_go[-1]:
                self._let_go.pop()
