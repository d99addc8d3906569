"""Records kept ahead: those that have come behind a gap in their partition, until the gap is filled.

They need not be fetched as well then, and catching up with a producer that never pauses comes to an end.
A partition has one such run of records that follow one another. It is bounded for each partition and for all
together; records that do not fit are fetched later.
"""

from __future__ import annotations

from collections import deque

from dafka.roles.follower import Follower
from dafka.roles.limits import Limits


class Ahead:
    """The records that the partitions of one consumer or store have ahead."""

    def __init__(self, limits: Limits) -> None:
        self.records = 0
        self.bytes = 0
        self._limits = limits

    def keep(self, follower: Follower, first: int, contents: list[bytes]) -> None:
        """Keep records that lie behind a gap, if they continue what is kept and there is place."""
        limits = self._limits
        if follower.ahead:
            known = follower.ahead_next - first
            if known < 0:
                return
            contents = contents[known:] if known else contents
            if not contents:
                return
        elif first - follower.next > limits.ahead_distance:
            return
        count = len(contents)
        size = sum(map(len, contents))
        if (
            follower.ahead_next - follower.ahead_first + count > limits.ahead_records
            or follower.ahead_bytes + size > limits.ahead_bytes
            or self.records + count > limits.all_ahead_records
            or self.bytes + size > limits.all_ahead_bytes
        ):
            return
        if not follower.ahead:
            follower.ahead_first = follower.ahead_next = first
        self._change(follower, count, size)
        ahead = follower.ahead = follower.ahead or deque()
        ahead.append(contents)
        follower.ahead_next += count

    def take(self, follower: Follower) -> list[bytes]:
        """Some of the records that begin at ``next``, which are kept no longer; none while there is a gap."""
        while follower.ahead and follower.ahead_first <= follower.next:
            contents = follower.ahead.popleft()
            first = follower.ahead_first
            follower.ahead_first = first + len(contents)
            self._change(follower, -len(contents), -sum(map(len, contents)))
            if follower.ahead_first > follower.next:
                return contents[follower.next - first :]
        if not follower.ahead:
            self._end(follower)
        return []

    def put_back(self, follower: Follower, contents: list[bytes]) -> None:
        """Keep what :meth:`take` has given and nobody has had room for; it begins at ``next``."""
        ahead = follower.ahead = follower.ahead or deque()
        ahead.appendleft(contents)
        follower.ahead_first = follower.next
        self._change(follower, len(contents), sum(map(len, contents)))

    def give_up(self, follower: Follower) -> None:
        """Keep nothing of the partition any more."""
        self._change(follower, follower.ahead_first - follower.ahead_next, -follower.ahead_bytes)
        self._end(follower)

    def _end(self, follower: Follower) -> None:
        follower.ahead = ()
        follower.ahead_first = follower.ahead_next = 0

    def _change(self, follower: Follower, records: int, size: int) -> None:
        follower.ahead_bytes += size
        self.records += records
        self.bytes += size
