"""One partition as a consumer or a store follows it: how far it has come, and what it knows lies ahead.

Records are taken in order only: ``next`` is the one wanted. ``end`` is how far the partition is known to
reach, from heads and from records. Between the two lies what was missed. Records that arrive behind a gap
are kept (``ahead``) if they follow one another, so that when the gap has been filled they need not be
fetched as well, and catching up with a producer that never pauses comes to an end.

:mod:`dafka.roles.catchup` decides which records are fetched, and when, and also writes the fields here.
"""

from __future__ import annotations

from collections import deque
from enum import Enum
from typing import TypeAlias, TypeVar

T = TypeVar("T")

NEVER = float("inf")

Few: TypeAlias = deque[T] | tuple[()]
"""Nothing most of the time, of very many partitions. Each empty deque would take 760 bytes, each empty
frozenset 216, and both the garbage collector's time."""

NOBODY: frozenset[bytes] = frozenset()


class State(Enum):
    """Where a partition stands with its fetches."""

    IDLE = "idle"  # not behind
    WAITING = "waiting"  # behind, in the queue for credit
    ASKED = "asked"  # a FETCH is under way; `due` is when it counts as lost
    PAUSED = "paused"  # several FETCHes went unanswered; `due` is when to try again
    GONE = "gone"  # not followed any more


class Follower:
    """The state of one partition. All sequences; ``asked``, ``end`` and ``ahead_next`` are exclusive ends."""

    __slots__ = (
        "address",
        "ahead",
        "ahead_bytes",
        "ahead_first",
        "ahead_next",
        "alarm",
        "asked",
        "asked_from",
        "claimant",
        "deniers",
        "doubted",
        "due",
        "end",
        "failures",
        "hurried",
        "next",
        "record_bytes",
        "reserved_bytes",
        "reserved_records",
        "state",
        "topic",
        "trimmed",
        "untried",
        "window",
    )

    def __init__(self, topic: bytes, address: bytes, start: int, window: int, record_bytes: int) -> None:
        self.topic = topic
        self.address = address
        self.next = start
        self.end = start
        # Consecutive records ahead_first .. ahead_next - 1, as they arrived.
        self.ahead: Few[list[bytes]] = ()
        self.ahead_first = self.ahead_next = 0
        self.ahead_bytes = 0
        # The fetch under way, and the room that is set aside for its answer.
        self.state = State.IDLE
        self.asked_from = self.asked = 0
        self.reserved_records = self.reserved_bytes = 0
        self.due = 0.0
        self.alarm = NEVER  # the earliest time at which the clock looks at this follower
        # Learned from past fetches.
        self.window = window  # records to ask for
        self.record_bytes = record_bytes  # size of a record, roughly
        self.untried = True  # nobody has sent anything of it yet, or said that it is trimmed
        self.failures = 0  # fetches in a row that brought nothing
        self.hurried = False  # a fetch was repeated early and has brought nothing yet
        self.claimant = b""  # the last producer that claimed the partition
        self.trimmed = 0  # where others say that the partition begins; 0: nobody has
        self.doubted = 0.0  # when the first of them said so
        self.deniers = NOBODY  # the stores among them

    @property
    def behind(self) -> bool:
        """Whether something is known of that has not been taken."""
        return self.next < self.end

    @property
    def gap_end(self) -> int:
        """Where the gap in front of ``next`` ends: at the records kept ahead, or at the end."""
        return self.ahead_first if self.ahead else self.end
