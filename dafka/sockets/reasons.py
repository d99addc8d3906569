"""The log of closed connections: for each cause the first ones of a minute, then the number of the others."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable

import gevent

from dafka.sockets import limits

log = logging.getLogger(__name__)


class Reasons:
    """Logs and counts the closed connections of one listener by cause. Hub side.

    ``told(cause)`` is called for each, where several listeners are counted together.
    """

    def __init__(self, told: Callable[[str], object] | None = None) -> None:
        self._told = told
        self.counted: Counter[str] = Counter()  # since the start, by cause
        self._logged: Counter[str] = Counter()  # in this minute
        self._minute: gevent.Greenlet | None = None

    def report(self, cause: str, detail: str, *, ours: bool = False) -> None:
        """Count and log a closed connection. ``ours``: a fault of our own, logged with its traceback."""
        self.counted[cause] += 1
        if self._told is not None:
            self._told(cause)
        if self._minute is None:
            self._minute = gevent.spawn_later(limits.REASON_SECONDS, self._sum_up)
        self._logged[cause] += 1
        if self._logged[cause] <= limits.REASON_LINES:
            log.log(logging.ERROR if ours else logging.WARNING, "%s", detail, exc_info=ours)

    def close(self) -> None:
        """Log the numbers of this minute before the listener closes."""
        if self._minute is not None:
            self._minute.kill(block=False)
            self._sum_up()

    def _sum_up(self) -> None:
        self._minute = None
        for cause, count in self._logged.items():
            if count > limits.REASON_LINES:
                more = count - limits.REASON_LINES
                log.warning("%d more connections closed for the same cause (%s)", more, cause)
        self._logged.clear()
