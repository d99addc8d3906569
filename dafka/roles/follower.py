"""Following one partition: what consumers and stores have in common.

"A consumer or store SHALL send the FETCH command if it detects it missed a record in a partition." A
follower knows the next sequence it wants and the head it has heard of. When it is behind it has one FETCH
under way: not repeated until that is answered, or until nothing has come for a while. The window doubles
when it was filled and halves when it timed out. Live records that arrive meanwhile are kept, up to a
bound, behind the gap that is being fetched, so that catching up ends even when the producer never pauses.
"""

from __future__ import annotations

from typing import NamedTuple

from dafka.protocol.runs import Run
from dafka.roles.limits import (
    AHEAD_BYTES,
    AHEAD_RECORDS,
    FETCH_TIMEOUT,
    FETCH_TIMEOUT_MAX,
    WINDOW_MAX,
    WINDOW_MIN,
    WINDOW_START,
)


class Taken(NamedTuple):
    """Records in order, ready to be delivered or stored: the first one's sequence and the contents."""

    first: int
    contents: list[bytes]


class Follower:
    """The state of one partition. Sequences: ``next`` is wanted, everything below ``end`` is known of."""

    __slots__ = (
        "_ahead",
        "_ahead_bytes",
        "_ahead_first",
        "_asked_until",
        "_deadline",
        "_timeout",
        "_window",
        "address",
        "end",
        "next",
        "topic",
    )

    def __init__(self, topic: bytes, address: bytes, start: int) -> None:
        self.topic = topic
        self.address = address
        self.next = start
        self.end = start
        self._ahead: list[bytes] = []
        self._ahead_first = 0
        self._ahead_bytes = 0
        self._asked_until = 0
        self._deadline: float | None = None  # of the FETCH under way
        self._timeout = FETCH_TIMEOUT
        self._window = WINDOW_START

    @property
    def behind(self) -> bool:
        """Whether records are known of that have not been taken."""
        return self.next < self.end

    def heard_of(self, end: int) -> None:
        """A head: all sequences below ``end`` exist."""
        if end > self.end:
            self.end = end

    def take(self, now: float, run: Run, room: int) -> list[Taken]:
        """The records that can be used now that ``run`` has arrived; at most ``room`` are wanted."""
        self.heard_of(run.next)
        if run.first > self.next:
            self._keep_ahead(run)
            return []
        fresh = run.contents[self.next - run.first :]
        if not fresh:
            return []
        taken = [Taken(self.next, fresh if len(fresh) <= room else fresh[:room])]
        self.next += len(taken[0].contents)
        if not taken[0].contents:
            return []
        ahead = self._take_ahead(room - len(taken[0].contents))
        if ahead is not None:
            taken.append(ahead)
        if self._deadline is not None:
            self._timeout = FETCH_TIMEOUT
            if self.next >= self._asked_until or not self.behind:
                self._deadline = None
                self._window = min(self._window * 2, WINDOW_MAX)
            else:
                self._deadline = now + self._timeout
        return taken

    def skip_to(self, sequence: int) -> None:
        """The records below ``sequence`` do not exist (any more)."""
        self.next = max(self.next, sequence)
        self.heard_of(sequence)
        self._deadline = None
        if self._ahead and self._ahead_first < self.next:
            self._drop_ahead()

    def ask(self, now: float, room: int) -> tuple[int, int] | None:
        """The (sequence, count) to FETCH now, if there is something to ask for and room for the answer."""
        if not self.behind or room <= 0:
            return None
        if self._deadline is not None:
            if now < self._deadline:
                return None
            self._window = max(self._window // 2, WINDOW_MIN)
            self._timeout = min(self._timeout * 2, FETCH_TIMEOUT_MAX)
        until = self._ahead_first if self._ahead else self.end
        count = min(until - self.next, self._window, room)
        self._asked_until = self.next + count
        self._deadline = now + self._timeout
        return self.next, count

    def wait(self, now: float) -> None:
        """Ask for nothing until a FETCH of now would have timed out."""
        self._asked_until = self.next
        self._deadline = now + self._timeout

    def stop_asking(self) -> None:
        """Forget the FETCH under way: its answer found no room."""
        self._deadline = None

    def _keep_ahead(self, run: Run) -> None:
        size = sum(map(len, run.contents))
        if self._ahead and run.first == self._ahead_first + len(self._ahead):
            if len(self._ahead) + len(run.contents) > AHEAD_RECORDS or self._ahead_bytes + size > AHEAD_BYTES:
                return
            self._ahead += run.contents
            self._ahead_bytes += size
        elif not self._ahead and len(run.contents) <= AHEAD_RECORDS and size <= AHEAD_BYTES:
            self._ahead, self._ahead_first, self._ahead_bytes = list(run.contents), run.first, size

    def _take_ahead(self, room: int) -> Taken | None:
        if not self._ahead or self._ahead_first > self.next:
            return None
        contents = self._ahead[self.next - self._ahead_first :]
        self._drop_ahead()
        if not contents or len(contents) > room:
            return None
        first = self.next
        self.next += len(contents)
        return Taken(first, contents)

    def _drop_ahead(self) -> None:
        self._ahead, self._ahead_bytes = [], 0
