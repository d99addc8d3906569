"""What a broker forgets in time, and when it looks for it: one green thread, one search after the other.

Each search deletes in small rounds of the writer and lets other green threads have their turn, so nobody
waits for it. One that fails is logged, and is due again after its interval.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

import gevent

from dafka.broker.limits import CROWD_INTERVAL
from dafka.log import LogClosedError, LogError
from dafka.mesh.hub import Hub

log = logging.getLogger(__name__)


class Search(NamedTuple):
    """``forget(pause)`` deletes what has expired, says how much that was, and calls ``pause`` now and then.

    It is called each ``interval`` seconds, at the start if ``at_start``, and early when ``crowded()`` says
    that there is more than is kept.
    """

    what: str
    forget: Callable[[Callable[[], object]], int]
    interval: float
    crowded: Callable[[], bool] = lambda: False
    at_start: bool = False


class Expiry:
    """Carries out the searches of one broker. Hub side; runs until :meth:`close`."""

    def __init__(
        self, hub: Hub, searches: Sequence[Search], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._clock = clock
        now = clock()
        self._due = [(now if search.at_start else now + search.interval, search) for search in searches]
        self._green = hub.spawn(self._run)

    def close(self) -> None:
        """No more of it."""
        self._green.kill(block=False)

    def _run(self) -> None:
        while True:
            try:
                self.look()
            except LogClosedError:
                return
            gevent.sleep(max(min(CROWD_INTERVAL, min(at for at, _ in self._due) - self._clock()), 0.001))

    def look(self) -> None:
        """Carry out the searches that are due."""
        for position, (at, search) in enumerate(self._due):
            if self._clock() < at and not search.crowded():
                continue
            try:
                forgotten = search.forget(_pause)
            except LogClosedError:
                raise
            except LogError as error:
                log.warning("forgetting %s: %s", search.what, error)
            except Exception:  # or the other searches would not be carried out any more
                log.exception("forgetting %s failed", search.what)
            else:
                if forgotten:
                    log.info("forgot %d %s", forgotten, search.what)
            self._due[position] = (self._clock() + search.interval, search)


def _pause() -> None:
    gevent.sleep(0)
