"""A member of a consumer group, and what it has of the group's partitions.

A partition of a member is *assigned*, or *revoking*: the member has been told to give it up, and has not said
yet that it has. Both are the member's own; nobody else gets them.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import inf
from uuid import UUID

from kafka.errors import IllegalGenerationError

from dafka.broker.groups.modern.assignment import NOTHING, Assignment
from dafka.broker.groups.modern.group import ModernMember
from dafka.broker.interface.groups import Error, JoinRequest


class Member(ModernMember):
    """A member. ``names`` and ``regex`` are what it subscribes to; ``topics``, what these come to.

    ``since``: the epoch from which on it has had each of its partitions.
    """

    def __init__(self, member_id: str) -> None:
        super().__init__(member_id)
        self.names: frozenset[str] = frozenset()
        self.regex: str | None = None
        self.assignor: str | None = None
        self.rebalance_timeout = inf
        self.assigned: Assignment = NOTHING
        self.revoking: Assignment = NOTHING
        self.since: dict[tuple[UUID, int], int] = {}
        self.lacks = False  # whether some of its target is another one's still
        self.revoke_by = inf  # it is removed if it still has what it is to give up
        self.classic: JoinRequest | None = None  # what it joined with, if it speaks the classic protocol
        self.answer_by = inf  # until when a classic member has to join or to sync

    @property
    def deadline(self) -> float:
        return min(self.expires, self.revoke_by, self.answer_by)

    @property
    def stale(self) -> Error:
        return super().stale if self.classic is None else IllegalGenerationError

    def take(self, fresh: Assignment) -> None:
        """Note since when it has these partitions; its epoch is the new one."""
        self.since.update(dict.fromkeys(_each(fresh), self.epoch))

    def lose(self, given_up: Assignment) -> None:
        """Forget since when it had these partitions."""
        for partition in _each(given_up):
            self.since.pop(partition, None)


def _each(partitions: Assignment) -> Iterator[tuple[UUID, int]]:
    return ((topic, number) for topic, numbers in partitions.items() for number in numbers)
