"""How long a green thread has run, its waits left out.

While somebody asks, each switch of the OS thread between green threads is noted, and the processor time
since the last one counts for the green thread that ran. Otherwise this costs nothing.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from greenlet import getcurrent, gettrace, settrace


class RunningTime:
    """The seconds of processor time that something has run for."""

    __slots__ = ("_began", "seconds")

    def __init__(self) -> None:
        self.seconds = 0.0
        self._began = 0.0

    def go_on(self) -> None:
        """It runs from now on."""
        self._began = time.thread_time()

    def stop(self) -> None:
        """It has run until now."""
        self.seconds += time.thread_time() - self._began


class _Measured(threading.local):
    """The green threads of an OS thread that are measured."""

    def __init__(self) -> None:
        self.times: dict[Any, RunningTime] = {}
        self.other: Any = None  # a tracer that was there before

    def switched(self, event: str, switch: tuple[Any, Any]) -> None:
        left, entered = (self.times.get(one) for one in switch)
        if left is not None:
            left.stop()
        if entered is not None:
            entered.go_on()
        if self.other is not None:
            self.other(event, switch)


_here = _Measured()


@contextmanager
def running_time() -> Iterator[RunningTime]:
    """Measure what the current green thread, or what takes its place in the worker, runs in the block.

    Blocks within each other count for the outer one alone.
    """
    current = getcurrent()
    measured = _here.times
    if current in measured:
        yield RunningTime()
        return
    if not measured:
        _here.other = gettrace()
        settrace(_here.switched)
    spent = measured[current] = RunningTime()
    spent.go_on()
    try:
        yield spent
    finally:
        spent.stop()
        del measured[current]
        if not measured:
            settrace(_here.other)
            _here.other = None


def is_measured() -> RunningTime | None:
    """The time of the current green thread, if it is measured."""
    return _here.times.get(getcurrent())
