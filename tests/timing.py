"""Waiting for what becomes true, and what has to be quick, on machines that are busy with something else."""

from __future__ import annotations

import functools
import gc
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from dafka.hub.hub import get_hub

T = TypeVar("T")
Test = Callable[..., None]

SECONDS = 120.0  # it only ends what never comes: a busy machine may stop a process for many seconds


def until(condition: Callable[[], T], what: object = "", seconds: float = SECONDS) -> T:
    """What ``condition()`` returns once it is true; a failure that says ``what`` if it does not become so."""
    deadline = time.monotonic() + seconds
    while True:
        outcome = condition()
        if outcome:
            return outcome
        assert time.monotonic() < deadline, f"not within {seconds:g} s: {what or condition}"
        time.sleep(0.005)


def takes_less(seconds: float, action: Callable[[], object], attempts: int = 8) -> bool:
    """Whether one of some attempts takes less than this.

    Code that waits for a time that it should not wait for does so each time; a busy machine holds up a few.
    """
    for _ in range(attempts):
        began = time.monotonic()
        action()
        if time.monotonic() - began < seconds:
            return True
    return False


class LongTurnError(AssertionError):
    """A turn of the hub took longer than it may."""


_slack = 1.0


def no_long_turn(seconds: float, limit: float) -> None:
    """Check the processor time of the longest turn."""
    if seconds > _slack * limit:
        raise LongTurnError(f"a turn took {1000 * seconds:.1f} ms of processor time")


@contextmanager
def short_turns() -> Iterator[None]:
    """Check the turns of what is done in between."""
    hub = get_hub()
    gc.collect()
    gc.disable()  # collections take long in a process of tests
    try:
        hub.run(hub.turns.reset)
        yield
        hub.run(lambda: None)
        longest = hub.turns.longest_cpu
    finally:
        gc.enable()
    no_long_turn(longest, 0.02)


def each_time(test: Test) -> Test:
    """A test of the hub's turns that fails if a turn is long in each of four attempts.

    Code that does much in one turn does so each time, and takes hundreds of milliseconds. Programs beside
    this one slow the processor down, to a third in the worst case: the last attempts allow for that.
    """

    @functools.wraps(test)
    def attempted(*args: Any, **kwargs: Any) -> None:
        global _slack
        try:
            for _slack in (1.0, 1.0, 2.0):
                try:
                    return test(*args, **kwargs)
                except LongTurnError:
                    continue
            _slack = 3.0
            return test(*args, **kwargs)
        finally:
            _slack = 1.0

    return attempted
