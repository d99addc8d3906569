"""The clock of transactions: aborts those that last too long, and has what expired forgotten.

One green thread sleeps until the first transaction is due, by a heap of deadlines. One that has ended before
its deadline is found out when the deadline comes, and so is the next one of the same id: it is not pushed
while an earlier time is there.
"""

from __future__ import annotations

import heapq
import logging
import time
from collections.abc import Callable
from math import inf
from typing import Any

import gevent
import gevent.event

from dafka.broker.transactions import State, Transaction
from dafka.log import LogClosedError, LogError
from dafka.mesh.hub import Hub

log = logging.getLogger(__name__)

PAUSE = 0.05  # seconds until a transaction that is due, and busy or could not be aborted, is looked at again
SWEEP_INTERVAL = 3600.0  # seconds between two searches for what has expired
CROWD_INTERVAL = 60.0  # seconds between two looks whether there is too much of it


class Timeouts:
    """The deadlines of one broker's transactions. Hub side.

    ``abort(transaction)`` ends one and says whether it could; ``sweep()`` forgets what has expired, and
    ``crowded()`` says whether that should be done early. ``first()`` is called at the start. All of them may
    wait as green threads.
    """

    def __init__(
        self,
        hub: Hub,
        abort: Callable[[Transaction], bool],
        sweep: Callable[[], object],
        crowded: Callable[[], bool],
        clock: Callable[[], float],
        *,
        first: Callable[[], object],
    ) -> None:
        self._hub = hub
        self._first = first
        self._abort = abort
        self._sweep = sweep
        self._crowded = crowded
        self._clock = clock
        self._due: list[tuple[float, int, Transaction]] = []
        self._due_at: dict[Transaction, float] = {}  # the first time that counts for each
        self._pushed = 0
        self._wake = gevent.event.Event()
        self._green = hub.spawn(self._run)

    def close(self) -> None:
        """No more of it."""
        self._green.kill(block=False)

    def watch(self, transaction: Transaction) -> None:
        """A transaction has begun."""
        self._push(transaction.deadline, transaction)

    def _push(self, at: float, transaction: Transaction) -> None:
        if at >= self._due_at.get(transaction, inf):
            return
        self._due_at[transaction] = at
        self._pushed += 1
        heapq.heappush(self._due, (at, self._pushed, transaction))
        if self._due[0][2] is transaction:
            self._wake.set()

    def _run(self) -> None:
        sweep_at = time.monotonic() + SWEEP_INTERVAL
        self._hub.spawn(self._try, self._first)
        while True:
            self._wake.clear()
            if self._crowded() or time.monotonic() >= sweep_at:
                self._try(self._sweep)
                sweep_at = time.monotonic() + SWEEP_INTERVAL
            now = self._clock()
            while self._due and self._due[0][0] <= now:
                at, _, transaction = heapq.heappop(self._due)
                if self._due_at.get(transaction) != at:
                    continue
                del self._due_at[transaction]
                if transaction.state is not State.ONGOING:
                    continue
                if transaction.deadline <= now:
                    self._overdue(transaction, now)
                else:
                    self._push(transaction.deadline, transaction)
            wait = CROWD_INTERVAL
            if self._due:
                wait = min(wait, self._due[0][0] - self._clock())
            self._wake.wait(max(wait, 0.001))

    def _overdue(self, transaction: Transaction, now: float) -> None:
        if transaction.busy:
            self._push(now + PAUSE, transaction)
            return
        log.info(
            "transaction %r is aborted: it is open for more than %g s",
            transaction.transactional_id,
            transaction.timeout,
        )
        transaction.busy = True
        self._hub.spawn(self._try, self._abort_overdue, transaction)

    def _abort_overdue(self, transaction: Transaction) -> None:
        if not self._abort(transaction):
            self._push(self._clock() + PAUSE, transaction)

    def _try(self, call: Callable[..., object], *args: Any) -> None:
        try:
            call(*args)
        except LogClosedError:
            pass
        except LogError as error:
            log.warning("%s: %s", call.__name__, error)
        except Exception:  # or no transaction would be aborted any more
            log.exception("%s failed", call.__name__)
