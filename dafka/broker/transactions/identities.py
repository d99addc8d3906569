"""InitProducerId: a new producer id, or the one of the transactional id with a new epoch."""

from __future__ import annotations

from collections.abc import Callable

from kafka.errors import ConcurrentTransactionsError, ProducerFencedError

from dafka.broker.interface.groups import Error
from dafka.broker.interface.transactions import NO_EPOCH, NO_PRODUCER_ID, ProducerIdentity
from dafka.broker.transactions.ending import Ending, storage_error
from dafka.broker.transactions.epoch_ends import RAISING
from dafka.broker.transactions.producer_ids import ProducerIds
from dafka.broker.transactions.table import TransactionTable
from dafka.broker.transactions.transaction import LAST_EPOCH, Decision, State, Transaction
from dafka.log import LogError


class Identities:
    """Gives producers their ids and epochs. Hub side; methods wait as green threads for their commits."""

    def __init__(
        self,
        ids: ProducerIds,
        table: TransactionTable,
        ending: Ending,
        fence: Callable[[Transaction], Error | None],
        version: Callable[[], int],
        clock: Callable[[], float],
    ) -> None:
        """``fence(transaction)`` aborts an open transaction, marked as busy, and raises its epoch.

        ``version()`` is the level of the feature transaction.version.
        """
        self._ids = ids
        self._table = table
        self._ending = ending
        self._fence = fence
        self._version = version
        self._clock = clock

    def anonymous(self) -> ProducerIdentity:
        """A new producer id, for a producer without a transactional id."""
        try:
            return ProducerIdentity(None, self._ids.next(), 0)
        except LogError as error:
            return ProducerIdentity(storage_error("allotting producer ids", error))

    def give(self, transactional_id: str, timeout: float, producer_id: int, epoch: int) -> ProducerIdentity:
        """Producer id and epoch of a transactional id: :meth:`TransactionInterface.init_producer_id`."""
        transaction = self._table.get(transactional_id)
        if transaction is None:
            return self._first(transactional_id, timeout)
        was = transaction.was(producer_id, epoch)  # perhaps with a producer id before
        if producer_id not in (NO_PRODUCER_ID, transaction.producer_id) and not was:
            return ProducerIdentity(ProducerFencedError)
        if transaction.busy:
            return ProducerIdentity(ConcurrentTransactionsError)
        if was or epoch not in (NO_EPOCH, transaction.epoch):
            if was or (epoch == transaction.last_epoch and not transaction.state.is_open):  # a retry
                return self._again(transaction, timeout)
            return self._refused(transaction)
        if transaction.state.is_open:
            transaction.busy = True
            raising = self._version() >= RAISING
            fence = Decision(transaction.epoch + 1, epoch if raising else NO_EPOCH)
            error = self._ending.end(transaction, False, fence)
            if error is not None:
                return ProducerIdentity(error)
            if epoch != NO_EPOCH and not raising:  # as in Kafka: it is fenced by the end of its own
                return ProducerIdentity(ProducerFencedError)
            if epoch != NO_EPOCH and transaction.epoch <= LAST_EPOCH:
                return self._again(transaction, timeout)
        return self._bump(transaction, timeout, epoch)

    def _first(self, transactional_id: str, timeout: float) -> ProducerIdentity:
        transaction = Transaction(transactional_id)
        transaction.busy = True
        self._table.add(transaction)
        try:
            identity = self._become(transaction, self._ids.next(), 0, NO_EPOCH, timeout)
        except LogError as error:
            identity = ProducerIdentity(storage_error("allotting producer ids", error))
        transaction.busy = False
        if identity.error is not None:
            self._table.discard(transaction)
        return identity

    def _refused(self, transaction: Transaction) -> ProducerIdentity:
        """Refuse a producer with another epoch, and abort what is open, as Apache Kafka does."""
        if transaction.state is State.ONGOING:
            transaction.busy = True
            error = self._fence(transaction)
            if error is not None:
                return ProducerIdentity(error)
        return ProducerIdentity(ProducerFencedError)

    def _again(self, transaction: Transaction, timeout: float) -> ProducerIdentity:
        """The identity that it has, because its epoch was raised already."""
        return self._become(
            transaction, transaction.producer_id, transaction.epoch, transaction.last_epoch, timeout
        )

    def _bump(self, transaction: Transaction, timeout: float, epoch: int) -> ProducerIdentity:
        if transaction.epoch < LAST_EPOCH:
            return self._become(transaction, transaction.producer_id, transaction.epoch + 1, epoch, timeout)
        transaction.busy = True
        try:
            producer_id = self._ids.next()
        except LogError as error:
            return ProducerIdentity(storage_error("allotting producer ids", error))
        finally:
            transaction.busy = False
        return self._become(transaction, producer_id, 0, NO_EPOCH, timeout)

    def _become(
        self, transaction: Transaction, producer_id: int, epoch: int, last_epoch: int, timeout: float
    ) -> ProducerIdentity:
        fields = {
            "producer_id": producer_id,
            "epoch": epoch,
            "last_epoch": last_epoch,
            "last_producer_id": NO_PRODUCER_ID,
            "raised": False,
            "timeout": float(timeout),
            "state": State.EMPTY,
            "started": -1.0,
            "updated": self._clock(),
        }
        error = self._table.write(transaction, transaction.row(**fields))
        if error is not None:
            return ProducerIdentity(error)
        self._table.become(transaction, fields)
        return ProducerIdentity(None, producer_id, epoch)
