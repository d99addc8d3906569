"""Expiry: one green thread looks for outdated rows, one search after the other.

Each search deletes in small rounds of the writer and lets other green threads have their turn, so no call
waits for it. One that fails is logged, and is due again after its interval. A broker that never runs for that
long carries out its searches when it stops, in :data:`LAST_SECONDS` at most.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import NamedTuple

import gevent
from gevent.lock import BoundedSemaphore

from dafka.broker.limits import CROWD_INTERVAL
from dafka.hub.hub import Hub
from dafka.hub.turns import Pace
from dafka.log import LogClosedError, LogError
from dafka.log.repeating import bounded_logger

log = bounded_logger(__name__)

LAST_SECONDS = 0.5
"""The time of the searches when a broker stops; the rest is left to the next time."""


class Search(NamedTuple):
    """``forget(pause)`` deletes expired rows, returns their number, and calls ``pause`` after every few of
    them: it lets others have their turn if it is time.

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
        self._never = list(searches)  # not carried out yet
        self._looking = BoundedSemaphore(1)
        self._green = hub.keep(self._run)

    def close(self) -> None:
        """Carry out the searches that have not run yet, as a green thread. The writer must still run."""
        self._green.kill()
        ends = self._clock() + LAST_SECONDS
        pace = Pace()

        def pause() -> None:
            pace.rest()
            if self._clock() >= ends:
                raise _EnoughError

        with suppress(_EnoughError, LogClosedError):
            for search in list(self._never):
                self._carry_out(search, pause)

    def _run(self) -> None:
        while True:
            try:
                self.look()
            except LogClosedError:
                return
            gevent.sleep(max(min(CROWD_INTERVAL, min(at for at, _ in self._due) - self._clock()), 0.001))

    def look(self) -> None:
        """Carry out the searches that are due; waits for those of another green thread."""
        with self._looking:
            self._look()

    def _look(self) -> None:
        for position, (at, search) in enumerate(self._due):
            if self._clock() < at and not search.crowded():
                continue
            self._carry_out(search, Pace().rest)
            self._due[position] = (self._clock() + search.interval, search)

    def _carry_out(self, search: Search, pause: Callable[[], object]) -> None:
        try:
            forgotten = search.forget(pause)
        except (LogClosedError, _EnoughError):
            raise
        except LogError as error:
            log.warning("forgetting %s: %s", search.what, error)
        except Exception:  # or the other searches would not be carried out any more
            log.exception("forgetting %s failed", search.what)
        else:
            if forgotten:
                log.info("forgot %d %s", forgotten, search.what)
            if search in self._never:
                self._never.remove(search)


class _EnoughError(Exception):
    """There is no time for more."""
