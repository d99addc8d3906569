"""When keys expire: a heap of deadlines, in which a key that lives longer and longer is once."""

from __future__ import annotations

import heapq

from dafka.overlay.stores.content import Content, Entry

_SLACK = 10_000  # deadlines that mean nothing any more, before they are removed


class Expiries:
    """The deadlines of a content's entries. The heap holds them all, or an earlier one of the same key."""

    def __init__(self, content: Content) -> None:
        self._content = content
        self._heap: list[tuple[float, bytes]] = []
        self._queued: dict[bytes, float] = {}
        self._fill()

    def note(self, octets: bytes, deadline: float) -> None:
        """The entry with this key has a deadline."""
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
        self._queued = {
            octets: entry.deadline for octets, entry in self._content.entries() if entry.deadline is not None
        }
        self._heap = [(deadline, octets) for octets, deadline in self._queued.items()]
        heapq.heapify(self._heap)
