"""Committed offsets that expire, by the rules of Kafka's ``offsets.retention.minutes`` (KIP-211).

A group's offsets expire when it has been without members, and an offset without a new commit, for that long;
a group of consumers that only commit and never join has just the commits. While a group has members its
offsets stay, but for those of topics that none of them reads any more: these expire so long after their
commit. What an open transaction commits stays.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from math import inf

from dafka.broker.groups.coordinator import Coordinator
from dafka.broker.groups.offsets import GroupOffsets, StoredOffset
from dafka.broker.groups.times import GroupTimes
from dafka.commit.rows import Rows

_ROWS = 200  # looked at before other green threads have their turn, and deleted in one round


class OffsetExpiry:
    """The retention of committed offsets, in seconds: infinite if they stay. Hub side."""

    def __init__(
        self,
        offsets: GroupOffsets,
        groups: Coordinator,
        times: GroupTimes,
        retention: float,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._offsets = offsets
        self._groups = groups
        self._times = times
        self._retention = retention
        self._clock = clock

    def forget_old(self, pause: Callable[[], object]) -> int:
        """Delete the offsets that have expired, and what is known of groups without any; how many offsets.

        Calls ``pause`` now and then, waits as a green thread for its commits, and raises what the log raises.
        """
        deleted = 0
        kept: set[str] = set()
        some: list[StoredOffset] = []
        for stored in self._offsets.all():
            some.append(stored)
            if len(some) == _ROWS:
                deleted += self._look_at(some, kept)
                some = []
                pause()
        deleted += self._look_at(some, kept)
        gone = [group for group in self._times if group not in kept and not self._is_known(group)]
        for begin in range(0, len(gone), _ROWS):
            self._times.forget([one for one in gone[begin : begin + _ROWS] if not self._is_known(one)])
            pause()
        return deleted

    def _is_known(self, group: str) -> bool:
        return self._groups.knows(group) or self._offsets.has_group(group)

    def _look_at(self, some: list[StoredOffset], kept: set[str]) -> int:
        """No other green thread runs between looking and the handing over of what is to go."""
        now = int(self._clock() * 1000)
        oldest = now - self._retention * 1000
        beginnings: dict[str, Callable[[StoredOffset], float]] = {}
        rows: Rows = {}
        dated: Rows = {}
        for stored in some:
            group = stored.group
            if stored.committed_at is None:
                dated.update(stored.dated(now))
                kept.add(group)
                continue
            begins = beginnings.get(group)
            if begins is None:
                begins = beginnings[group] = self._beginning(group)
            if begins(stored) < oldest:
                rows.update(stored.deleted())
            else:
                kept.add(group)
        return self._offsets.rewrite({**dated, **rows})

    def _beginning(self, group: str) -> Callable[[StoredOffset], float]:
        """Says from when on the time of a group's offset counts, in ms."""
        if self._times.is_occupied(group):
            topics = self._groups.subscribed(group)
            if topics is None:
                return lambda stored: inf
            return lambda stored: inf if stored.topic in topics else stored.committed_at or 0
        emptied = self._times.emptied(group) or 0
        return lambda stored: max(emptied, stored.committed_at or 0)
