"""Traffic of a broker: records and octets read by clients, and durations of their calls, for the console.

It costs two looks at the clock and some additions for each call, whatever the number of its records.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from math import log2

_STEPS = 4  # buckets for each doubling of the time: durations are right within a fifth
_BUCKETS = 128  # the last one is for an hour and more
_WINDOW = 10.0  # seconds


class Times:
    """How long calls took lately: those of the current and of the last window of ten seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._since = clock()
        self._now = [0] * _BUCKETS
        self._before = [0] * _BUCKETS

    def add(self, seconds: float) -> None:
        """A call took so long."""
        self._look()
        self._now[min(int(_STEPS * log2(1 + max(seconds, 0.0) * 1e6)), _BUCKETS - 1)] += 1

    def quantiles(self, *shares: float) -> list[float] | None:
        """The times in seconds that these shares of the calls did not exceed; None if there was no call."""
        self._look()
        counts = [one + other for one, other in zip(self._now, self._before, strict=True)]
        total = sum(counts)
        return [_at(counts, share * total) for share in shares] if total else None

    def _look(self) -> None:
        now = self._clock()
        passed = now - self._since
        if passed >= _WINDOW:
            self._before = self._now if passed < 2 * _WINDOW else [0] * _BUCKETS
            self._now = [0] * _BUCKETS
            self._since = now


class Traffic:
    """The traffic of one broker. ``records`` and ``octets`` were given to fetches since the start;
    ``produces`` are calls that wait for their commit, ``fetches`` those that found enough and had not to
    wait."""

    def __init__(self) -> None:
        self.records = 0
        self.octets = 0
        self.produces = Times()
        self.fetches = Times()


def _at(counts: list[int], wanted: float) -> float:
    seen = 0
    for bucket, count in enumerate(counts):
        seen += count
        if seen and seen >= wanted:
            return float((2 ** ((bucket + 1) / _STEPS) - 1) / 1e6)
    return 0.0
