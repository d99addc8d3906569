"""The clock of transactions: aborts those that last too long.

One green thread sleeps until the first transaction is due, by a heap of deadlines. One that has ended before
its deadline is found out when the deadline comes, and so is the next one of the same id: it is not pushed
while an earlier time is there. One that is just being ended is looked at again, for an end that cannot be
written leaves it open.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from math import inf

import gevent
import gevent.event

from dafka.broker.transactions.transaction import Transaction
from dafka.hub.hub import Hub
from dafka.log import LogClosedError
from dafka.log.repeating import bounded_logger

log = bounded_logger(__name__)

PAUSE = 0.05  # seconds until a transaction that is due and busy is looked at again
FAILED_PAUSE = 5.0  # seconds until one that could not be aborted is: the disk may be full for long


class Timeouts:
    """The deadlines of one broker's transactions. Hub side.

    ``abort(transaction)`` ends one and says whether it could; it may wait as a green thread.
    """

    def __init__(self, hub: Hub, abort: Callable[[Transaction], bool], clock: Callable[[], float]) -> None:
        self._hub = hub
        self._abort = abort
        self._clock = clock
        self._due: list[tuple[float, int, Transaction]] = []
        self._due_at: dict[Transaction, float] = {}  # the first time that counts for each
        self._pushed = 0
        self._wake = gevent.event.Event()
        self._green = hub.keep(self._run)

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
        while True:
            self._wake.clear()
            now = self._clock()
            while self._due and self._due[0][0] <= now:
                at, _, transaction = heapq.heappop(self._due)
                if self._due_at.get(transaction) != at:
                    continue
                del self._due_at[transaction]
                if not transaction.state.is_open:
                    continue
                if transaction.deadline <= now:
                    self._overdue(transaction, now)
                else:
                    self._push(transaction.deadline, transaction)
            self._wake.wait(max(self._due[0][0] - self._clock(), 0.001) if self._due else None)

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
        self._hub.spawn(self._abort_overdue, transaction)

    def _abort_overdue(self, transaction: Transaction) -> None:
        try:
            if not self._abort(transaction):
                self._push(self._clock() + FAILED_PAUSE, transaction)
        except LogClosedError:
            pass
        except Exception:
            log.exception("aborting transaction %r failed", transaction.transactional_id)
            self._push(self._clock() + FAILED_PAUSE, transaction)
