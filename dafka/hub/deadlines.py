"""Deadlines of many objects, such as groups and transactions: one heap of times, one green thread.

An object has at most one valid deadline. An earlier one replaces it. A later one is ignored, because most
deadlines are postponed again and again (with each heartbeat, with each new transaction): when a deadline has
come, its owner checks whether it still holds, and sets the next one.
"""

from __future__ import annotations

import heapq
import logging
from collections.abc import Callable, Hashable
from math import inf
from typing import Generic, TypeVar

import gevent
import gevent.event

from dafka.hub.hub import Hub
from dafka.hub.turns import Pace

log = logging.getLogger(__name__)

SHORTEST_WAIT = 0.001  # seconds; clocks and timers do not agree to the microsecond

K = TypeVar("K", bound=Hashable)


class Deadlines(Generic[K]):
    """Calls ``due(key)`` when the deadline of a key has come by ``clock``. Hub side.

    ``due`` must not wait. It may set the next deadline of its key.
    """

    def __init__(self, hub: Hub, due: Callable[[K], object], clock: Callable[[], float]) -> None:
        self._hub = hub
        self._due = due
        self._clock = clock
        self._heap: list[tuple[float, int, K]] = []
        self._valid: dict[K, float] = {}  # the valid entry of each key in the heap
        self._pushed = 0  # distinguishes entries of the same time, because keys have no order
        self._changed = gevent.event.Event()
        self._green: gevent.Greenlet | None = None
        self._closed = False

    def set(self, key: K, at: float) -> None:
        """Set the deadline of a key, unless it has an earlier one. Raises ValueError for NaN."""
        if at >= self._valid.get(key, inf) or self._closed:
            return
        if at != at:  # would take the order out of the heap
            raise ValueError(f"the deadline of {key!r:.100} is a time, not nan")
        self._valid[key] = at
        self._pushed += 1
        heapq.heappush(self._heap, (at, self._pushed, key))
        if self._green is None:
            self._green = self._hub.keep(self._run)
        elif self._heap[0][1] == self._pushed:
            self._changed.set()

    def check(self) -> None:
        """Read the clock again, after a test has set it forward."""
        self._changed.set()

    def settle(self) -> None:
        """The same; waits as a green thread until what is due has been called."""
        self.check()
        while self._heap and self._heap[0][0] <= self._clock() and not self._closed:
            gevent.sleep(0)

    def close(self) -> None:
        """Forget all deadlines, and ignore further ones."""
        self._closed = True
        if self._green is not None:
            self._green.kill(block=False)

    def _run(self) -> None:
        pace = Pace()  # as many may be due at once, or each become due while the one before is called
        while True:
            self._changed.clear()
            left = self._heap[0][0] - self._clock() if self._heap else inf
            if left > 0:
                self._changed.wait(max(left, SHORTEST_WAIT) if self._heap else None)
                self._hub.turns.share()  # what is due may take some milliseconds, as others before it
                continue
            at, _, key = heapq.heappop(self._heap)
            if self._valid.get(key) == at:
                del self._valid[key]
                try:
                    self._due(key)
                except Exception:  # otherwise the deadlines of all keys would stop
                    log.exception("the deadline of %r failed unexpectedly", key)
            pace.rest()
