"""The garbage collector of a daemon: later collections pass over what has outlived one of everything.

A full collection goes through all objects of the process, and everything stops for it: for a tenth of a
microsecond an object, a broker of a hundred thousand partitions has half a million. Nearly all of them are
in use until the daemon ends. Those among them that have become garbage since, and refer to each other, are
found by a collection of everything: once an hour, and sooner when there is twice as much in memory. An
embedded broker leaves all of this to its program.
"""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

EVERYTHING_SECONDS = 3600.0
"""From one collection of everything to the next, at most."""
COUNT_SECONDS = 60.0
"""From one count of what is in memory to the next, at least."""
FEW = 500_000
"""So many blocks of memory more than at the last collection of everything are never too many. An object takes
two or three. To count the objects themselves takes 10 ns for each, the blocks 0.1."""


@contextmanager
def passing_over_what_lasts(clock: Callable[[], float] = time.monotonic) -> Iterator[None]:
    """While the block runs; what there is at its beginning counts as lasting."""
    collector = _Collector(clock)
    look = collector.look
    gc.callbacks.append(look)
    try:
        yield
    finally:
        gc.callbacks.remove(look)


class _Collector:
    """What collections pass over, and when they do not."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._everything = False  # the collection under way passes over nothing
        self._ends = self._counts = 0.0
        self._set_aside()

    def look(self, phase: str, info: dict[str, int]) -> None:
        """Called by the interpreter at each collection's start and stop."""
        if info["generation"] < 2:
            return
        if phase == "start" and self._is_due():
            self._everything = True
            gc.unfreeze()
        elif phase == "stop" and self._everything:
            self._everything = False
            self._set_aside()
        elif phase == "stop":
            gc.freeze()

    def _set_aside(self) -> None:
        gc.freeze()
        self._most = 2 * sys.getallocatedblocks() + FEW
        now = self._clock()
        self._ends, self._counts = now + EVERYTHING_SECONDS, now + COUNT_SECONDS

    def _is_due(self) -> bool:
        now = self._clock()
        if now >= self._ends:
            return True
        if now < self._counts:
            return False
        self._counts = now + COUNT_SECONDS
        return sys.getallocatedblocks() > self._most
