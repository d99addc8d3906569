"""The clock of a test broker, which tests set forward: a day goes by in a millisecond."""

from __future__ import annotations

import time
from collections.abc import Callable

from dafka.hub.clock import Clock

LONGEST = 3650 * 86400.0
"""Seconds that a test may set it forward in all."""


class MovableClock:
    """The system's time and more. ``moved()`` is called after each :meth:`advance`, in the same thread."""

    def __init__(self, moved: Callable[[], object] = lambda: None) -> None:
        self._ahead = 0.0
        self._moved = moved

    @property
    def of_broker(self) -> Clock:
        """The clock that the broker uses."""
        return Clock(self.time, self.monotonic)

    def time(self) -> float:
        """Seconds since the epoch, as the broker has it."""
        return time.time() + self._ahead

    def monotonic(self) -> float:
        """Seconds of a clock that never goes back, as the broker has it."""
        return time.monotonic() + self._ahead

    @property
    def ahead(self) -> float:
        """How many seconds it is ahead of the system's time."""
        return self._ahead

    def begin(self, ahead: float) -> None:
        """Begin so many seconds ahead of the system's time. For a broker that is not running."""
        self._ahead = ahead

    def advance(
        self, seconds: float = 0.0, *, minutes: float = 0.0, hours: float = 0.0, days: float = 0.0
    ) -> None:
        """Set it forward, and return when the broker has done what is due by then.

        Raises ValueError for a time that is negative, or no time; or more than ten years in all.
        """
        total = seconds + 60.0 * minutes + 3600.0 * hours + 86400.0 * days
        if not 0 <= total <= LONGEST - self._ahead:  # nor NaN
            raise ValueError(f"a clock is set forward by 0 seconds to ten years in all, not by {total!r} s")
        self._ahead += total
        self._moved()

    def __repr__(self) -> str:
        return f"<clock, {self._ahead:g} s ahead>"
