"""Waiting for a condition with a deadline, instead of sleeping for luck.

A test in an event loop awaits the ``async_`` forms, and the program under test goes on meanwhile.
"""

from __future__ import annotations

import inspect
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, TypeVar

from dafka.hub.waits import bounded_wait

T = TypeVar("T")

TIMEOUT = 30.0  # seconds; it only ends what never comes: a busy machine may stop a process for many
FIRST_PAUSE, LONGEST_PAUSE = 0.001, 0.02  # seconds between two looks


class NotInTimeError(AssertionError):
    """The condition did not become true in time. An AssertionError, so that the waiting test fails."""


def wait_until(condition: Callable[[], T], timeout: float = TIMEOUT, what: str | Callable[[], str] = "") -> T:
    """Wait until ``condition()`` is true, at most ``timeout`` seconds, and return its result.

    ``what`` describes the condition in the error's message; a function is called for it when the time is
    over. Raises :class:`NotInTimeError`, and ValueError for a ``timeout`` of NaN; exceptions of the condition
    come through.
    """
    __tracebackhide__ = True  # pytest shows the line of the test that waits
    for pause in _pauses(timeout):
        outcome = condition()
        if outcome:
            return outcome
        time.sleep(pause)
    outcome = condition()
    if outcome:
        return outcome
    raise NotInTimeError(_said(timeout, (what() if callable(what) else what) or condition))


async def async_wait_until(
    condition: Callable[[], T | Awaitable[T]], timeout: float = TIMEOUT, what: str | Callable[[], str] = ""
) -> T:
    """:func:`wait_until` for asyncio: other tasks run between two looks.

    ``condition`` is called in the event loop, and awaited if it is a coroutine function.
    """
    import asyncio  # imported only by tests that need it: loading it takes time

    __tracebackhide__ = True
    for pause in _pauses(timeout):
        outcome = await _looked(condition)
        if outcome:
            return outcome
        await asyncio.sleep(pause)
    outcome = await _looked(condition)
    if outcome:
        return outcome
    raise NotInTimeError(_said(timeout, (what() if callable(what) else what) or condition))


def _pauses(timeout: float) -> Iterator[float]:
    """How long to wait after each look but the last one, which is at the end of the time."""
    deadline = time.monotonic() + bounded_wait(timeout)
    pause = FIRST_PAUSE
    while (left := deadline - time.monotonic()) > 0:
        yield min(pause, left)
        pause = min(pause * 2, LONGEST_PAUSE)


async def _looked(condition: Callable[[], T | Awaitable[T]]) -> T:
    outcome = condition()
    return await outcome if inspect.isawaitable(outcome) else outcome


def _said(timeout: float, what: Any) -> str:
    return f"not within {timeout:g} s: {what}"
