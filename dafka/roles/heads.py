"""When a producer sends HEADs: often while something is new, and more and more rarely while nothing is."""

from __future__ import annotations

from math import inf


class HeadPace:
    """The time of the next HEAD, once there is one. Seconds, on any clock.

    The first HEAD behind anything new follows after ``interval``. Each one after that takes twice as long, up
    to ``longest``.
    """

    def __init__(self, interval: float, longest: float) -> None:
        self.next = inf
        """When the next HEAD is due."""
        self._interval = interval
        self._longest = max(interval, longest)
        self._pause = interval

    def something_new(self, now: float) -> None:
        """A HEAD is due within the interval."""
        self._pause = self._interval
        self.next = min(self.next, now + self._interval)

    def at_once(self, now: float) -> None:
        """Somebody has begun to listen: a HEAD is due now."""
        self._pause = self._interval
        self.next = min(self.next, now)

    def sent(self, now: float, *, quiet: bool) -> None:
        """One was sent; ``quiet``: nobody waits for what it tells."""
        self.next = now + self._pause
        if quiet:
            self._pause = min(2 * self._pause, self._longest)
