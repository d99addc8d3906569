"""A member of a consumer group, and what it has of the group's partitions.

A partition of a member is *assigned*, or *revoking*: the member has been told to give it up, and has not said
yet that it has. Both are the member's own; nobody else gets them.
"""

from __future__ import annotations

from math import inf

from dafka.broker.groups.modern.assignment import NOTHING, Assignment
from dafka.broker.groups.modern.group import ModernMember
from dafka.broker.interface.groups import JoinRequest


class Member(ModernMember):
    """A member. ``names`` and ``regex`` are what it subscribes to; ``topics``, what these come to."""

    def __init__(self, member_id: str) -> None:
        super().__init__(member_id)
        self.names: frozenset[str] = frozenset()
        self.regex: str | None = None
        self.assignor: str | None = None
        self.rebalance_timeout = inf
        self.assigned: Assignment = NOTHING
        self.revoking: Assignment = NOTHING
        self.lacks = False  # whether some of its target is another one's still
        self.revoke_by = inf  # it is removed if it still has what it is to give up
        self.classic: JoinRequest | None = None  # what it joined with, if it speaks the classic protocol
        self.answer_by = inf  # until when a classic member has to join or to sync

    @property
    def deadline(self) -> float:
        return min(self.expires, self.revoke_by, self.answer_by)
