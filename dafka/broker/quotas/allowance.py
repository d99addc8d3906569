"""The use of a quota, and how long its user has to wait: Kafka's two ways to count.

Octets, processor time and connections are counted as a rate over windows (``quota.window.num`` of
``quota.window.size.seconds``), changes of topics in a bucket of tokens. Times are seconds of any clock that
does not go back.
"""

from __future__ import annotations

from math import inf
from typing import NamedTuple


class Windows(NamedTuple):
    """How many windows are looked at, the one under way among them, and the length of each."""

    number: int = 11
    seconds: float = 1.0

    @property
    def before(self) -> float:
        """The seconds of all windows but the one under way. A rate is over so many at least."""
        return (self.number - 1) * self.seconds


class Use(NamedTuple):
    """Whether something was used, and the seconds to wait in either case."""

    used: bool
    seconds: float


class Rate:
    """Usage in the last windows.

    A window begins with the first use that finds the one before over, and its use is forgotten when nothing
    was added for as long as all windows last. A use that is too large for a rate is so until its window is
    forgotten: the wait that is told is what would bring the rate down if it fell evenly, as in Kafka.
    """

    __slots__ = ("_current", "_windows")

    def __init__(self) -> None:
        self._current = 0
        self._windows: list[list[float]] = []  # begin, last use, sum

    def use(self, amount: float, limit: float, windows: Windows, now: float) -> float:
        """Use so much, whatever is left; returns the seconds to wait."""
        self._add(amount, windows, now)
        return self.owed(limit, windows, now)

    def use_if_within(self, amount: float, limit: float, windows: Windows, now: float) -> Use:
        """Use so much if nobody has to wait for it, or if nothing else has been used."""
        first = self.is_empty(limit, windows, now)
        seconds = self.use(amount, limit, windows, now)
        if seconds and not first:
            self._windows[self._current][2] -= amount
        return Use(first or not seconds, seconds)

    def owed(self, limit: float, windows: Windows, now: float) -> float:
        """The seconds to wait because of what has been used."""
        used = self._used(windows, now)
        if used <= 0:
            return 0.0
        over = self._seconds(windows, now)
        return max(used / limit - over, 0.0)

    def is_empty(self, limit: float, windows: Windows, now: float) -> bool:
        """Whether it is like one that nothing has been used of."""
        return self._used(windows, now) <= 0

    def _add(self, amount: float, windows: Windows, now: float) -> None:
        every = self._windows
        if not every:
            every.append([now, now, 0.0])
        elif now - every[self._current][0] >= windows.seconds:
            # One more than are looked at: the oldest may have begun before them.
            self._current = (self._current + 1) % (windows.number + 1)
            if self._current >= len(every):
                every.append([now, now, 0.0])
            else:
                every[self._current][:] = now, now, 0.0
        window = every[self._current]
        window[1] = now
        window[2] += amount

    def _used(self, windows: Windows, now: float) -> float:
        """The sum; forgets what is old."""
        old = now - windows.number * windows.seconds
        used = 0.0
        for window in self._windows:
            if window[1] <= old:
                window[:] = now, now, 0.0
            used += window[2]
        return used

    def _seconds(self, windows: Windows, now: float) -> float:
        """Over how long the rate is: since the oldest window, with the missing ones added."""
        passed = now - min((window[0] for window in self._windows), default=now)
        missing = windows.number - 1 - int(passed / windows.seconds)
        return passed + max(missing, 0) * windows.seconds


class Tokens:
    """A bucket of what may still be used, which fills with the rate of the quota, up to as much as all
    windows allow. It may be overdrawn by one use."""

    __slots__ = ("_at", "_left")

    def __init__(self) -> None:
        self._left = 0.0
        self._at = -inf  # it is full at first

    def use(self, amount: float, limit: float, windows: Windows, now: float) -> float:
        """Use so much, whatever is left; returns the seconds to wait."""
        self._fill(limit, windows, now)
        self._left -= amount
        return max(-self._left / limit, 0.0)

    def use_if_within(self, amount: float, limit: float, windows: Windows, now: float) -> Use:
        """Use so much unless the bucket is overdrawn."""
        self._fill(limit, windows, now)
        if self._left < 0:
            return Use(False, -self._left / limit)
        self._left -= amount
        return Use(True, 0.0)

    def owed(self, limit: float, windows: Windows, now: float) -> float:
        """The seconds to wait because of what has been used."""
        self._fill(limit, windows, now)
        return max(-self._left / limit, 0.0)

    def is_empty(self, limit: float, windows: Windows, now: float) -> bool:
        """Whether it is like one that nothing has been used of."""
        self._fill(limit, windows, now)
        return self._left >= limit * windows.number * windows.seconds

    def _fill(self, limit: float, windows: Windows, now: float) -> None:
        most = limit * windows.number * windows.seconds
        self._left = min(most, self._left + limit * (now - self._at))
        self._at = now
