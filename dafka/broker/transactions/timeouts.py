"""Transaction timeouts: transactions that stay open for too long are aborted.

One green thread sleeps until the next deadline; the deadlines are in a heap. A transactional id has at most
one deadline there: when it comes, the state of the transaction shows whether it has ended, and the deadline
of a newer transaction of the same id is added then. A transaction that is being ended at its deadline is
checked again shortly after, because an end that cannot be written leaves it open.
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

PAUSE = 0.05  # seconds until an overdue transaction that is busy is checked again
FAILED_PAUSE = 5.0  # seconds between failed attempts to abort; a disk may stay full for long


class Timeouts:
    """Watches the transactions of one broker. Hub side.

    ``abort(transaction)`` aborts one and returns whether it succeeded; it may wait as a green thread.
    """

    def __init__(self, hub: Hub, abort: Callable[[Transaction], bool], clock: Callable[[], float]) -> None:
        self._hub = hub
        self._abort = abort
        self._clock = clock
        self._due: list[tuple[float, int, Transaction]] = []
        self._due_at: dict[Transaction, float] = {}  # the valid heap entry of each
        self._pushed = 0
        self._wake = gevent.event.Event()
        self._green = hub.keep(self._run)

    def close(self) -> None:
        """Stop watching."""
        self._green.kill(block=False)

    def watch(self, transaction: Transaction) -> None:
        """Watch a transaction that has begun."""
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
            "transaction %r has been open for more than its timeout of %g s and is aborted",
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
