"""Transaction timeouts: transactions that stay open for too long are aborted.

A transactional id has at most one deadline (:mod:`dafka.hub.deadlines`): when it comes, the state of the
transaction shows whether it has ended, and the deadline of a newer transaction of the same id is set then. A
transaction that is being ended at its deadline is checked again shortly after, because an end that cannot be
written leaves it open.
"""

from __future__ import annotations

from collections.abc import Callable

import gevent

from dafka.broker.transactions.transaction import Transaction
from dafka.hub.deadlines import Deadlines
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
        self._deadlines = Deadlines(hub, self._due, clock)
        self._aborting: set[gevent.Greenlet] = set()

    def settle(self) -> None:
        """Abort what is overdue now, and wait for it, as a green thread."""
        self._deadlines.settle()
        gevent.joinall(list(self._aborting))

    def close(self) -> None:
        """Stop watching."""
        self._deadlines.close()

    def watch(self, transaction: Transaction) -> None:
        """Watch a transaction that has begun."""
        self._deadlines.set(transaction, transaction.deadline)

    def _due(self, transaction: Transaction) -> None:
        if not transaction.state.is_open:
            return
        now = self._clock()
        if transaction.deadline <= now:
            self._overdue(transaction, now)
        else:
            self.watch(transaction)

    def _overdue(self, transaction: Transaction, now: float) -> None:
        if transaction.busy:
            self._deadlines.set(transaction, now + PAUSE)
            return
        log.info(
            "transaction %r has been open for more than its timeout of %g s and is aborted",
            transaction.transactional_id,
            transaction.timeout,
        )
        transaction.busy = True
        aborting = self._hub.spawn(self._abort_overdue, transaction)
        self._aborting.add(aborting)
        aborting.link(self._aborting.discard)

    def _abort_overdue(self, transaction: Transaction) -> None:
        try:
            if not self._abort(transaction):
                self._deadlines.set(transaction, self._clock() + FAILED_PAUSE)
        except LogClosedError:
            pass
        except Exception:
            log.exception("aborting transaction %r failed", transaction.transactional_id)
            self._deadlines.set(transaction, self._clock() + FAILED_PAUSE)
