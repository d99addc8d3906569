"""A member of a group of the newer protocols, and its epochs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from math import inf
from typing import Any

from kafka.errors import StaleMemberEpochError

from dafka.broker.groups.kept_rows import Saved
from dafka.broker.interface.groups import Error

JOIN_EPOCH, LEAVE_EPOCH, LEAVE_STATIC_EPOCH = 0, -1, -2
"""The member epochs that have a meaning of their own."""


class ModernMember(ABC):
    """A member. ``topics`` are the names that it subscribes to, whether they exist or not."""

    def __init__(self, member_id: str) -> None:
        self.member_id = member_id
        self.instance_id: str | None = None
        self.rack: str | None = None
        self.client_id = ""
        self.client_host = ""
        self.epoch = JOIN_EPOCH
        self.previous_epoch = JOIN_EPOCH
        self._earlier: tuple[int, int] | None = None  # both, before it joined again and had a new one
        self.topics: frozenset[str] = frozenset()
        self.expires = inf

    @property
    def deadline(self) -> float:
        """When it is to be removed, unless something comes from it before."""
        return self.expires

    @property
    def stale(self) -> Error:
        """The error of what comes with another epoch than its own."""
        return StaleMemberEpochError

    def advance(self, epoch: int) -> None:
        """Give it a new epoch."""
        if epoch != self.epoch:
            last, before = self._earlier or (self.epoch, JOIN_EPOCH)
            self.previous_epoch = before if last == epoch else last
            self.epoch, self._earlier = epoch, None

    def join_again(self) -> None:
        """It has been told to, or did not get the answer to its join: its epoch is to come."""
        self._earlier = self.epoch, self.previous_epoch
        self.epoch = self.previous_epoch = JOIN_EPOCH

    @abstractmethod
    def saved(self, target: Any) -> Saved:
        """The state of the member to keep over a restart; ``target`` is the group's for it, None without."""
