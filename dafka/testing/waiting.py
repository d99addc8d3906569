"""Waiting for a condition with a deadline: what tests do instead of sleeping for luck."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

TIMEOUT = 5.0  # seconds; a test that waits longer than this for a broker in its own process has failed
FIRST_PAUSE, LONGEST_PAUSE = 0.001, 0.02  # seconds between two looks


class NotInTimeError(AssertionError):
    """What was waited for did not come. An AssertionError, so a test that waits in vain has failed."""


def wait_until(condition: Callable[[], T], timeout: float = TIMEOUT, what: str | Callable[[], str] = "") -> T:
    """Wait until ``condition()`` is true, at most ``timeout`` seconds; what it returned then.

    ``what`` says what is waited for, and is part of the error's message; a function is called for it when
    the time is over. Raises :class:`NotInTimeError`; what the condition raises comes through.
    """
    deadline = time.monotonic() + timeout
    pause = FIRST_PAUSE
    while True:
        outcome = condition()
        if outcome:
            return outcome
        left = deadline - time.monotonic()
        if left <= 0:
            words = what() if callable(what) else what
            raise NotInTimeError(f"not within {timeout:g} s: {words or condition}")
        time.sleep(min(pause, left))
        pause = min(pause * 2, LONGEST_PAUSE)
