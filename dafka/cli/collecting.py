"""The garbage collector of a daemon: later collections pass over what has outlived one of everything.

A full collection goes through all objects of the process, and everything stops for it: for a tenth of a
microsecond an object, a broker of a hundred thousand partitions has half a million. Nearly all of them are
in use until the daemon ends. Those among them that have become garbage since, and refer to each other, are
found by a collection of everything once in a while. An embedded broker leaves all of this to its program.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

EVERYTHING_SECONDS = 3600.0
"""So long, at least, from one collection of everything to the next."""


@contextmanager
def passing_over_what_lasts(clock: Callable[[], float] = time.monotonic) -> Iterator[None]:
    """While the block runs; what there is at its beginning counts as lasting."""
    ends = clock() + EVERYTHING_SECONDS

    def look(phase: str, info: dict[str, int]) -> None:
        nonlocal ends
        if info["generation"] < 2:
            return
        if phase == "stop":
            gc.freeze()
        elif clock() >= ends:
            ends = clock() + EVERYTHING_SECONDS
            gc.unfreeze()

    gc.freeze()
    gc.callbacks.append(look)
    try:
        yield
    finally:
        gc.callbacks.remove(look)
