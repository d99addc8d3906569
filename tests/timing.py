"""Waiting for what becomes true, and what has to be quick, on machines that are busy with something else."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

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

    What waits for a time that it should not wait for does so each time; a busy machine holds up a few.
    """
    for _ in range(attempts):
        began = time.monotonic()
        action()
        if time.monotonic() - began < seconds:
            return True
    return False
