"""The use of an allowance per second, and how long its user has to wait.

A leaky bucket: what is used flows in, and flows out as fast as is allowed. Up to BURST_SECONDS of the
allowance may be in it; a user that brought in more waits until the excess has flowed out. A user that waits
as told uses in T seconds at most ``limit * (T + BURST_SECONDS)``, and the excess of the last use.

Kafka counts in eleven samples of a second and allows the same burst, ``quota.window.num - 1`` windows of
``quota.window.size.seconds``. It forgets a sample after eleven seconds, waited for or not; this does not.
"""

from __future__ import annotations

BURST_SECONDS = 10.0


class Allowance:
    """Of those who share a quota. Times are seconds of any clock that does not go back."""

    __slots__ = ("_at", "_used")

    def __init__(self) -> None:
        self._used = 0.0  # and not yet flowed out at ``_at``
        self._at = 0.0

    def use(self, amount: float, limit: float, now: float) -> float:
        """Use so much of ``limit`` per second, whatever is left; returns the seconds to wait."""
        self._used = self._left_over(limit, now) + amount
        self._at = now
        return max(self._used / limit - BURST_SECONDS, 0.0)

    def owed(self, limit: float, now: float) -> float:
        """The seconds to wait before anything may be used."""
        return max(self._left_over(limit, now) / limit - BURST_SECONDS, 0.0)

    def room(self, limit: float, now: float) -> float:
        """How much may be used at once without waiting."""
        return max(limit * BURST_SECONDS - self._left_over(limit, now), 0.0)

    def is_empty(self, limit: float, now: float) -> bool:
        """Whether it is like one that nothing has been used of."""
        return not self._left_over(limit, now)

    def forgive(self, limit: float, seconds: float) -> None:
        """Let nobody wait for longer than so many seconds from the last use on."""
        self._used = min(self._used, limit * (BURST_SECONDS + seconds))

    def _left_over(self, limit: float, now: float) -> float:
        return max(self._used - (now - self._at) * limit, 0.0)
