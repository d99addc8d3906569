"""When keys expire: a heap of deadlines, in which a key that lives longer and longer is once."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Any
from zlib import crc32

from dafka.overlay.stores.content import Content, Entry
from dafka.protocol.parted import PartedDict

_SLACK = 10_000  # deadlines that mean nothing any more, before they are removed
_LET_GO = 1000  # of these, with each deadline that is noted and each look at what is due


class Expiries:
    """The deadlines of a content's entries. The heap holds them all, or an earlier one of the same key."""

    def __init__(self, content: Content) -> None:
        self._content = content
        self._heap: list[tuple[float, bytes]] = []
        self._queued = _none()
        self._gone: list[list[Any] | dict[Any, Any]] = []  # what was thrown away, and ends little by little
        self._fill()

    def note(self, octets: bytes, deadline: float) -> None:
        """The entry with this key has a deadline."""
        self._let_go()
        queued = self._queued.get(octets)
        if queued is not None and queued <= deadline:
            return
        self._queued[octets] = deadline
        heapq.heappush(self._heap, (deadline, octets))
        if len(self._heap) > 2 * len(self._content) + _SLACK:
            self._fill()

    @property
    def next(self) -> float | None:
        """When :meth:`due` has something to look at; None: never, as things are."""
        return self._heap[0][0] if self._heap else None

    def due(self, now: float, most: int) -> list[Entry]:
        """Up to ``most`` entries whose time has come. They are to be erased."""
        self._let_go()
        found: list[Entry] = []
        while self._heap and self._heap[0][0] <= now and len(found) < most:
            deadline, octets = heapq.heappop(self._heap)
            if self._queued.get(octets) != deadline:
                continue
            del self._queued[octets]
            entry = self._content.entry(octets)
            if entry is None or entry.deadline is None:
                continue
            if entry.deadline <= now:
                found.append(entry)
            else:
                self.note(octets, entry.deadline)
        return found

    def _fill(self) -> None:
        self._gone += [self._heap, *self._queued.parts]
        self._queued = _none()
        for octets, entry in self._content.entries():
            if entry.deadline is not None:
                self._queued[octets] = entry.deadline
        self._heap = [(deadline, octets) for octets, deadline in self._queued.items()]
        heapq.heapify(self._heap)

    def _let_go(self) -> None:
        """A million deadlines of a content that was cleared would take long to end at once."""
        if self._gone:
            last = self._gone[-1]
            take: Callable[[], Any] = last.popitem if isinstance(last, dict) else last.pop
            for _ in range(min(len(last), _LET_GO)):
                take()
            if not last:
                self._gone.pop()


def _none() -> PartedDict[bytes, float]:
    return PartedDict(crc32)  # for one order in each process
