"""Ending a transaction: decision, markers, offsets and completion, in one commit if the writer has room.

They are handed to the writer in this order, without a pause unless there are more markers than a round takes,
and the writer keeps the order. If they come into several rounds, nothing is written after a failure: no
marker without the decision, and no completion without all markers. If only a part could be written, the rest
is retried until it is written or the broker stops; then the next start completes it.

The contents of a large transaction are released in several rounds, behind the decision and all markers: each
commits some of its offsets and deletes their rows and those of some partitions. The round with the completion
is the last one. Partitions that were released are not ended again after a crash.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from typing import Any

import gevent
import gevent.event
from kafka.errors import KafkaStorageError

from dafka.broker import limits
from dafka.broker.groups.offsets import OFFSETS, GroupOffsets
from dafka.broker.interface.groups import Error
from dafka.broker.records.leader import Leaders
from dafka.broker.topics.table import Partition
from dafka.broker.transactions.transaction import Decision, State, Transaction
from dafka.commit.writer import Writer
from dafka.hub.changes import Changes
from dafka.hub.turns import out_of
from dafka.log import LogClosedError, LogError, LogPartition
from dafka.log.repeating import bounded_logger

_DECISION, _END = "decision", "end"  # beside the names of partitions, which have a slash

log = bounded_logger(__name__)

RETRY_PAUSE = 0.2  # seconds until a failed write is retried


class Ending:
    """Ends the transactions of one broker. Hub side."""

    def __init__(
        self,
        writer: Writer,
        leaders: Leaders,
        offsets: GroupOffsets,
        become: Callable[[Transaction, Mapping[str, Any]], None],
        clock: Callable[[], float] = time.time,
    ) -> None:
        """``become(transaction, fields)`` changes the fields of a transaction that gets a new producer id."""
        self._writer = writer
        self._leaders = leaders
        self._offsets = offsets
        self._become = become
        self._clock = clock

    def end(self, transaction: Transaction, commit: bool, decision: Decision) -> Error | None:
        """End a transaction that the caller has marked as busy."""
        before = transaction.state, transaction.decision, transaction.last_producer_id
        transaction.state = State.PREPARE_COMMIT if commit else State.PREPARE_ABORT
        transaction.decide(decision)
        decided = before[0] is not State.ONGOING
        pending = dict(transaction.partitions)
        tried = False
        while True:
            outcomes = self._write(transaction, commit, pending)
            error = next((error for error in outcomes.values() if error is not None), None)
            if error is None:
                transaction.busy = False
                return None
            decided = decided or outcomes[_DECISION] is None
            if not decided:  # nothing was written
                transaction.decide(before[1])
                transaction.state, _, transaction.last_producer_id = before
                transaction.busy = False
            if not decided or isinstance(error, LogClosedError):
                return storage_error("ending a transaction", error)
            level = logging.DEBUG if tried else logging.ERROR  # the disk may be full for long
            log.log(level, "ending transaction %r: %s; trying again", transaction.transactional_id, error)
            tried = True
            pending = {name: partition for name, partition in pending.items() if outcomes[name] is not None}
            gevent.sleep(RETRY_PAUSE)

    def _write(
        self, transaction: Transaction, commit: bool, pending: dict[str, Partition]
    ) -> dict[str, Exception | None]:
        """Write decision, markers and completion; returns the error of each, None for success."""
        outcomes: dict[str, Exception | None] = {}
        failures: list[Exception] = []
        ready, settled = gevent.event.Event(), Changes()

        def told(name: str) -> Callable[[Exception | None], None]:
            def done(error: Exception | None) -> None:
                outcomes[name] = error
                if error is not None:
                    failures.append(error)
                settled.tell()
                if len(outcomes) == len(pending) + 2:
                    ready.set()

            return done

        def check() -> None:
            if failures:
                raise failures[0]

        self._writer.put(transaction.row(updated=self._clock()), told(_DECISION))
        for handed, (name, partition) in enumerate(pending.items(), 1):
            while handed - len(outcomes) > limits.WIDE_PRODUCE:  # so that others can write in between
                settled.wait()
            self._leaders.end_transaction(
                partition, transaction.producer_id, transaction.epoch, commit, told(name), check
            )
        ended = State.COMPLETE_COMMIT if commit else State.COMPLETE_ABORT
        now = self._clock()
        markers: list[LogPartition] = []
        if transaction.contents > limits.ENDED_AT_ONCE:
            while len(outcomes) <= len(pending):  # of them and the decision
                settled.wait()
            if not failures:
                self._let_go(transaction, commit, failures)
        else:
            markers = [partition.stored for partition in pending.values()]
        rows = transaction.rows_without()
        if commit:
            rows.update(transaction.offset_rows())
        renewed = transaction.renewed()
        rows.update(transaction.row(state=ended, updated=now, **renewed))
        self._writer.put(rows, told(_END), check, behind=markers)
        ready.wait()
        if not failures:
            transaction.state, transaction.updated = ended, now
            self._offsets.release(transaction.offsets)
            transaction.forget_touched()
            if renewed:
                self._become(transaction, renewed)
        return outcomes

    def _let_go(self, transaction: Transaction, commit: bool, failures: list[Exception]) -> None:
        """Commit the offsets of a decided transaction and delete its rows, some at a time."""
        try:
            offsets = transaction.offsets
            for keys in out_of(list(offsets), limits.ENDED_AT_ONCE):
                rows = dict.fromkeys(row for key in keys for row in transaction.offset_row(key, []))
                if commit:
                    rows.update(((OFFSETS, key), offsets[key]) for key in keys if key in offsets)
                self._writer.put_and_wait(rows)
                self._offsets.release([key for key in keys if offsets.pop(key, None) is not None])
            for names in out_of(list(transaction.partitions), limits.ENDED_AT_ONCE):
                self._writer.put_and_wait(
                    dict.fromkeys(row for name in names for row in transaction.partition_row(name))
                )
                for name in names:
                    transaction.partitions.pop(name, None)
        except LogError as error:
            failures.append(error)


def storage_error(doing: str, error: Exception | None) -> Error:
    """Log the error of a failed write, and return the error for clients."""
    log.error("%s failed: %s", doing, error)
    return KafkaStorageError
