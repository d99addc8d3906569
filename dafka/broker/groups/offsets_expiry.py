"""The expiry of committed offsets, by the rules of Kafka's ``offsets.retention.minutes`` (KIP-211).

An offset expires when its group has had no members for that long and the offset was not committed for that
long; if the consumers of a group only commit and never join, the time since the commit alone counts. While a
group has members its offsets stay, except for topics that no member reads any more: these expire that long
after their commit. Offsets that an open transaction commits do not expire.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from math import inf

from dafka.broker.groups.coordinator import Coordinator
from dafka.broker.groups.offsets import GroupOffsets, StoredOffset
from dafka.broker.groups.times import GroupTimes
from dafka.commit.rows import Rows

_ROWS = 50  # examined between two looks at the clock, and deleted in one round


class OffsetExpiry:
    """Deletes expired offsets. ``retention`` is in seconds, infinite if offsets never expire. Hub side."""

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
        """Delete expired offsets, and forget groups that have none left; returns the number of offsets.

        Calls ``pause`` between batches of rows, waits as a green thread for its commits, and raises the
        exceptions of the log.
        """
        self._offsets.forget_bare()
        deleted = 0
        kept: set[str] = set()
        some: list[StoredOffset] = []
        for stored in self._offsets.all():
            some.append(stored)
            if len(some) == _ROWS:
                deleted += self._expire(some, kept)
                some = []
                pause()
        deleted += self._expire(some, kept)
        gone: list[str] = []
        for count, group in enumerate(self._times, 1):
            if group not in kept and not self._is_known(group):
                gone.append(group)
            if not count % _ROWS:
                pause()
        for begin in range(0, len(gone), _ROWS):
            self._times.forget([one for one in gone[begin : begin + _ROWS] if not self._is_known(one)])
            pause()
        return deleted

    def _is_known(self, group: str) -> bool:
        return self._groups.knows(group) or self._offsets.has_group(group)

    def _expire(self, some: list[StoredOffset], kept: set[str]) -> int:
        """Delete the expired ones of ``some`` and add the groups of the others to ``kept``.

        No other green thread runs between the decision and the hand-over to the writer.
        """
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
        """A function from an offset of the group to the time at which its retention begins, in ms."""
        if self._times.is_occupied(group):
            topics = self._groups.subscribed(group)
            if topics is None:
                return lambda stored: inf
            return lambda stored: inf if stored.topic in topics else stored.committed_at or 0
        emptied = self._times.emptied(group) or 0
        return lambda stored: max(emptied, stored.committed_at or 0)
