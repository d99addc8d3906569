"""Ends of transactions that raise their producer's epoch: KIP-890, second part (EndTxn 5 and above).

Batches that the producer has sent before an end have an earlier epoch than those that it sends afterwards. A
batch that arrives late is refused, and cannot begin a transaction that nobody ends (a "hanging" one).

The answer to an end may be lost, and the producer then asks again with the epoch that it had. So the last
identity is kept with the new one: with that a retry of the same end is answered as the first was. An abort
without a transaction raises the epoch as well, because a producer that aborts may not know whether anything
of its transaction has arrived.
"""

from __future__ import annotations

from collections.abc import Callable

from kafka.errors import (
    ConcurrentTransactionsError,
    InvalidProducerIdMappingError,
    InvalidRequestError,
    InvalidTxnStateError,
    ProducerFencedError,
    UnsupportedVersionError,
)

from dafka.broker.interface.groups import Error
from dafka.broker.interface.transactions import NO_PRODUCER_ID, ProducerIdentity
from dafka.broker.transactions.ending import Ending, storage_error
from dafka.broker.transactions.producer_ids import ProducerIds
from dafka.broker.transactions.table import TransactionTable
from dafka.broker.transactions.transaction import LAST_EPOCH, Decision, State, Transaction
from dafka.log import LogError

RAISING = 2
"""The level of the feature transaction.version from which on ends raise epochs."""

RAISING_KEPT = 1
"""The level from which on transactions are taken whose ends raise epochs. Apache Kafka cannot store them
below, so it refuses what belongs to them; there their ids are stuck then."""


class EpochEnds:
    """Ends transactions and raises epochs. Hub side; methods wait as green threads for their commits."""

    def __init__(
        self,
        ids: ProducerIds,
        table: TransactionTable,
        ending: Ending,
        version: Callable[[], int],
        clock: Callable[[], float],
    ) -> None:
        """``version()`` is the level of the feature transaction.version."""
        self._ids = ids
        self._table = table
        self._ending = ending
        self._version = version
        self._clock = clock

    def end(self, transactional_id: str, producer_id: int, epoch: int, commit: bool) -> ProducerIdentity:
        """See :meth:`TransactionInterface.end_transaction_with_epoch`."""
        if not transactional_id:
            return ProducerIdentity(InvalidRequestError)
        transaction = self._table.get(transactional_id)
        if transaction is None:
            return ProducerIdentity(InvalidProducerIdMappingError)
        again = transaction.was(producer_id, epoch)
        if producer_id != transaction.producer_id and not again:
            return ProducerIdentity(InvalidProducerIdMappingError)
        if epoch != transaction.epoch and not again:
            return ProducerIdentity(ProducerFencedError)
        if transaction.busy:
            return ProducerIdentity(ConcurrentTransactionsError)
        if again:
            ended = State.COMPLETE_COMMIT if commit else State.COMPLETE_ABORT
            if transaction.state is not ended:
                return ProducerIdentity(InvalidTxnStateError)
            return ProducerIdentity(None, transaction.producer_id, transaction.epoch)
        error: Error | None
        if commit and transaction.state is not State.ONGOING:
            error = InvalidTxnStateError
        elif self._version() < RAISING_KEPT:
            error = UnsupportedVersionError
        elif transaction.state is State.ONGOING:
            transaction.busy = True
            error = self._end(transaction, commit)
        else:
            error = self._abort_nothing(transaction)
        if error is not None:
            return ProducerIdentity(error)
        return ProducerIdentity(None, transaction.producer_id, transaction.epoch)

    def abort(self, transaction: Transaction) -> Error | None:
        """Abort a transaction that the caller has marked as busy, as if its producer had asked for it."""
        return self._end(transaction, False)

    def _end(self, transaction: Transaction, commit: bool) -> Error | None:
        try:
            decision = self._raised(transaction)
        except LogError as error:
            transaction.busy = False
            return storage_error("allotting producer ids", error)
        return self._ending.end(transaction, commit, decision)

    def _abort_nothing(self, transaction: Transaction) -> Error | None:
        """Raise the epoch; with nothing to end it takes one row."""
        transaction.busy = True
        try:
            decision = self._raised(transaction)
        except LogError as failure:
            return storage_error("allotting producer ids", failure)
        finally:
            transaction.busy = False
        fields = {
            "producer_id": transaction.producer_id,
            "epoch": decision.epoch,
            "last_producer_id": transaction.producer_id,
            "last_epoch": decision.last_epoch,
            "raised": True,
            "state": State.COMPLETE_ABORT,
            "updated": self._clock(),
        }
        if decision.next_producer_id != NO_PRODUCER_ID:
            fields.update(producer_id=decision.next_producer_id, epoch=0)
        error = self._table.write(transaction, transaction.row(**fields))
        if error is None:
            self._table.become(transaction, fields)
        return error

    def _raised(self, transaction: Transaction) -> Decision:
        """The decision that raises the epoch. Waits as a green thread; raises LogError."""
        epoch = transaction.epoch
        next_producer_id = self._ids.next() if epoch >= LAST_EPOCH else NO_PRODUCER_ID
        return Decision(epoch + 1, epoch, True, next_producer_id)
