"""Why connections were closed, in the log: the first ones of a minute for each cause, then how many more."""

from __future__ import annotations

import logging
from collections import Counter

import gevent

from dafka.broker.server import limits

log = logging.getLogger(__name__)


class Reasons:
    """Writes and counts the reasons of one listener. Hub side."""

    def __init__(self) -> None:
        self.counted: Counter[str] = Counter()  # since the start, by cause
        self._told: Counter[str] = Counter()  # in this minute
        self._minute: gevent.Greenlet | None = None

    def tell(self, cause: str, detail: str, *, ours: bool = False) -> None:
        """Count a connection that is closed, and say why. ``ours``: it is our fault, and has a traceback."""
        self.counted[cause] += 1
        if self._minute is None:
            self._minute = gevent.spawn_later(limits.REASON_SECONDS, self._sum_up)
        self._told[cause] += 1
        if self._told[cause] <= limits.REASON_LINES:
            log.log(logging.ERROR if ours else logging.WARNING, "%s", detail, exc_info=ours)

    def close(self) -> None:
        """Say what has not been said; the listener closes."""
        if self._minute is not None:
            self._minute.kill(block=False)
            self._sum_up()

    def _sum_up(self) -> None:
        self._minute = None
        for cause, count in self._told.items():
            if count > limits.REASON_LINES:
                more = count - limits.REASON_LINES
                log.warning("%d more connections closed for the same kind of reason (%s)", more, cause)
        self._told.clear()
