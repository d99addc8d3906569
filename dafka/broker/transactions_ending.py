"""Ending a transaction: decision, markers, offsets and completion, in one commit if the writer has room.

They are handed over in this order and without a pause, and the writer keeps the order, so the decision is
never durable later than a marker. If only some of it could be written, the rest is tried again until it is,
or until the broker stops and starts again.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

import gevent
import gevent.event
from kafka.errors import KafkaStorageError

from dafka.broker.groups_interface import Error
from dafka.broker.leader import Leaders
from dafka.broker.offsets import GroupOffsets
from dafka.broker.topics import Partition
from dafka.broker.transactions import State, Transaction
from dafka.broker.transactions_interface import NO_EPOCH
from dafka.log import LogClosedError
from dafka.mesh.writer import Writer

log = logging.getLogger(__name__)

RETRY_PAUSE = 0.2  # seconds until what could not be written is tried again


class Ending:
    """Ends the transactions of one broker. Hub side."""

    def __init__(
        self,
        writer: Writer,
        leaders: Leaders,
        offsets: GroupOffsets,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._writer = writer
        self._leaders = leaders
        self._offsets = offsets
        self._clock = clock

    def end(self, transaction: Transaction, commit: bool, epoch: int) -> Error | None:
        """End a transaction that its caller has made busy; its markers have ``epoch``."""
        before = transaction.state, transaction.epoch, transaction.last_epoch
        transaction.state = State.PREPARE_COMMIT if commit else State.PREPARE_ABORT
        if epoch != transaction.epoch:
            transaction.epoch, transaction.last_epoch = epoch, NO_EPOCH
        decided = before[0] is not State.ONGOING
        pending = dict(transaction.partitions)
        while True:
            failed, error = self._write(transaction, commit, pending)
            if error is None and not failed:
                transaction.busy = False
                return None
            closed = isinstance(error, LogClosedError)
            if not decided and error is not None and len(failed) == len(pending):
                # Not even the decision is on disk: nothing has happened.
                transaction.state, transaction.epoch, transaction.last_epoch = before
                transaction.busy = False
            if closed or not transaction.busy:
                return storage_error("ending a transaction", error)
            log.error("ending transaction %r: %s; trying again", transaction.transactional_id, error)
            decided, pending = True, failed
            gevent.sleep(RETRY_PAUSE)

    def _write(
        self, transaction: Transaction, commit: bool, pending: dict[str, Partition]
    ) -> tuple[dict[str, Partition], Exception | None]:
        """Write decision, markers and end; the partitions that got no marker, and what went wrong."""
        outcomes: dict[str | None, Exception | None] = {}
        ready = gevent.event.Event()

        def told(name: str | None) -> Callable[[Exception | None], None]:
            def done(error: Exception | None) -> None:
                outcomes[name] = error
                if len(outcomes) == len(pending) + 1:
                    ready.set()

            return done

        decision = transaction.row(updated=self._clock())
        for name in pending:
            decision.update(transaction.partition_row(name))
        self._writer.put(decision, lambda error: None)
        for name, partition in pending.items():
            self._leaders.end_transaction(
                partition, transaction.producer_id, transaction.epoch, commit, told(name)
            )
        ended = State.COMPLETE_COMMIT if commit else State.COMPLETE_ABORT
        now = self._clock()
        rows = transaction.rows_without()
        if commit:
            rows.update(transaction.offset_rows())
        rows.update(transaction.row(state=ended, updated=now, started=-1.0))
        self._writer.put(rows, told(None))
        ready.wait()
        failed = {name: pending[name] for name, error in outcomes.items() if name is not None and error}
        error = outcomes[None]
        if error is None and not failed:
            transaction.state, transaction.updated, transaction.started = ended, now, -1.0
            self._offsets.release(transaction.offsets)
            transaction.forget_touched()
        return failed, error or next((error for error in outcomes.values() if error), None)


def storage_error(doing: str, error: Exception | None) -> Error:
    """What clients are told when the log could not be written."""
    log.error("%s failed: %s", doing, error)
    return KafkaStorageError
