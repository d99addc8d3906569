"""One partition as a store has it: which of its records are received, and which of these are in the log."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from dafka.roles.follower import Few, Follower
from dafka.roles.limits import Limits
from dafka.roles.outputs import Append, Begin, Output


class Pending(NamedTuple):
    """An append under way, up to ``end``. ``fails``: it will, because one in front of it has failed."""

    end: int
    records: int
    size: int
    fails: bool = False


class StoredPartition(Follower):
    """Records below ``next`` are received, those below ``committed`` are in the log; those between are
    ``pending``."""

    __slots__ = ("ack_due", "ack_interval", "committed", "first", "led", "log_end", "pending")

    def __init__(self, topic: bytes, address: bytes, first: int, following: int, limits: Limits) -> None:
        super().__init__(topic, address, following, limits.first_window, limits.guessed_record_bytes)
        self.first = first
        self.led = False  # by this process itself
        self.untried = not following
        self.committed = following
        self.pending: Few[Pending] = ()  # in the order in which they were handed to the log
        self.log_end = following  # below `committed` while a Begin is not confirmed by a commit yet
        self.ack_due = float("-inf")
        self.ack_interval = limits.ack_interval

    def take_pending(self, end: int) -> list[Pending]:
        """The first appends, up to ``end``, which are over."""
        over = []
        while self.pending and self.pending[0].end <= end:
            over.append(self.pending.popleft())
        if not self.pending:
            self.pending = ()
        return over

    def take_failed(self, end: int) -> Pending | None:
        """The append up to ``end``, which has failed; those under way behind it will fail as well."""
        pending = list(self.pending)
        place = next((place for place, one in enumerate(pending) if one.end == end), None)
        if place is None:
            return None
        failed, behind = pending[place], pending[place + 1 :]
        if not failed.fails:
            behind = [one._replace(fails=True) for one in behind]
        self.pending = deque([*pending[:place], *behind]) or ()
        return failed

    def lacks(self, sequence: int) -> bool:
        """Whether it is looking for the record itself, and has been told that it is trimmed."""
        return self.next <= sequence < self.trimmed and not (self.ahead and self.ahead_first <= sequence)


def append(stored: StoredPartition, first: int, contents: list[bytes], size: int) -> Output:
    """Hand the records to the log."""
    pending = stored.pending = stored.pending or deque()
    pending.append(Pending(first + len(contents), len(contents), size))
    return Append(stored.topic, stored.address, first, contents)


def begin(stored: StoredPartition, first: int, following: int) -> Output:
    """Leave out the records ``first`` to ``following - 1``."""
    if stored.first == stored.committed:
        stored.first = following  # there was nothing before
    stored.committed = following
    return Begin(stored.topic, stored.address, following)
