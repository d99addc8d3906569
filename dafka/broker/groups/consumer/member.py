"""A member of a consumer group, and what it has of the group's partitions.

A partition of a member is *assigned*, or *revoking*: the member has been told to give it up, and has not said
yet that it has. Both are the member's own; nobody else gets them.
"""

from __future__ import annotations

from math import inf
from uuid import UUID

from kafka.errors import IllegalGenerationError

from dafka.broker.groups.consumer.kept import SavedMember
from dafka.broker.groups.consumer.moves import Move
from dafka.broker.groups.modern.assignment import NOTHING, Assignment
from dafka.broker.groups.modern.member import ModernMember
from dafka.broker.groups.since import Since, lost, taken
from dafka.broker.interface.groups import Error, JoinRequest


class Reserved:
    """The partitions of very many topics that were ``taken`` for a move before the heartbeat in which it is
    made; ``lacks``: some of them were not free; ``is_whole``: those that were are all here."""

    __slots__ = ("is_whole", "lacks", "move", "taken")

    def __init__(self, move: Move) -> None:
        self.move = move
        self.taken: dict[UUID, frozenset[int]] = {}
        self.lacks = self.is_whole = False


class Member(ModernMember):
    """A member. ``names`` and ``regex`` are what it subscribes to; ``topics``, what these come to.

    ``since``: the epoch from which on it has had each of its partitions. ``served``: the topics for which its
    target was computed, if that is known, and ``drafted`` those for which the next one is.
    """

    def __init__(self, member_id: str) -> None:
        super().__init__(member_id)
        self.names: frozenset[str] = frozenset()
        self.regex: str | None = None
        self.served: frozenset[str] | None = None
        self.drafted: frozenset[str] | None = None
        self.assignor: str | None = None
        self.rebalance_timeout = inf
        self.assigned: Assignment = NOTHING
        self.revoking: Assignment = NOTHING
        self.since: Since[UUID] = {}
        self.lacks = False  # whether some of its target is another one's still
        self.revoke_by = inf  # it is removed if it still has what it is to give up
        self.ahead: Move | None = None  # that of the next heartbeat, if everything is as it was
        self.reserved: Reserved | None = None  # for that
        self.classic: JoinRequest | None = None  # what it joined with, if it speaks the classic protocol
        self.answer_by = inf  # until when a classic member has to join or to sync

    @classmethod
    def restored(cls, saved: SavedMember) -> Member:
        """A member as it was saved; its group restores its subscription and its partitions."""
        member = cls(saved.member_id)
        member.epoch, member.previous_epoch = saved.epoch, saved.previous_epoch
        member.instance_id, member.rack = saved.instance_id, saved.rack
        member.client_id, member.client_host = saved.client_id, saved.client_host
        member.names, member.regex, member.assignor = saved.names, saved.regex, saved.assignor
        member.rebalance_timeout, member.classic = saved.rebalance_timeout, saved.classic
        return member

    def saved(self, target: Assignment | None) -> SavedMember:
        return SavedMember(
            self.member_id,
            self.epoch,
            self.previous_epoch,
            self.instance_id,
            self.rack,
            self.client_id,
            self.client_host,
            self.names,
            self.regex,
            self.assignor,
            self.rebalance_timeout,
            self.assigned,
            self.revoking,
            self.since,
            self.classic,
            None if target is self.assigned else target,
        )

    @property
    def deadline(self) -> float:
        return min(self.expires, self.revoke_by, self.answer_by)

    @property
    def stale(self) -> Error:
        return super().stale if self.classic is None else IllegalGenerationError

    def take(self, fresh: Assignment) -> None:
        """Note since when it has these partitions; its epoch is the new one."""
        if fresh:
            self.since = taken(self.since, fresh, self.epoch)

    def lose(self, given_up: Assignment) -> None:
        """Forget since when it had these partitions."""
        if given_up:
            self.since = lost(self.since, given_up)
