"""Which batches a transaction allows: KIP-98's rules for what a transactional producer writes."""

from __future__ import annotations

from kafka.errors import (
    InvalidProducerEpochError,
    InvalidProducerIdMappingError,
    InvalidTxnStateError,
    TransactionAbortableError,
)

from dafka.broker.interface.groups import Error
from dafka.broker.interface.transactions import Writes
from dafka.broker.records.append import Request
from dafka.broker.records.producer_state import ProducerStates, RefusedBatchError, row_name
from dafka.broker.topics.table import Partition
from dafka.broker.transactions.table import TransactionTable
from dafka.broker.transactions.transaction import State
from dafka.protocol.batch import BatchHeader


class WriteCheck:
    """Checks batches of idempotent producers against the transactions that are open. Hub side."""

    def __init__(self, table: TransactionTable, producers: ProducerStates) -> None:
        self._table = table
        self._producers = producers

    def __call__(self, partition: Partition, header: BatchHeader, request: Request) -> None:
        """Raise RefusedBatchError unless the batch may be appended.

        Called while its round is put together, so that an earlier end of the transaction counts.
        """
        transaction = self._table.of_producer(header.producer_id)
        if transaction is None and not header.is_transactional:
            return
        if transaction is None and request.transactional_id is not None:
            self._table.get(request.transactional_id)  # since the broker's start nobody has asked for it
            transaction = self._table.of_producer(header.producer_id)
        producer_id, epoch = header.producer_id, header.producer_epoch
        who = f"producer {producer_id} with epoch {epoch}"
        known = (
            self._producers.get(partition, producer_id).epoch if transaction is None else transaction.epoch
        )
        if epoch < known:
            raise RefusedBatchError(InvalidProducerEpochError, f"{who} is fenced by epoch {known}")
        own = None if transaction is None else transaction.transactional_id
        if header.is_transactional and request.transactional_id not in (None, own):
            detail = f"{who} does not belong to {request.transactional_id!r}"
            raise RefusedBatchError(InvalidProducerIdMappingError, detail)
        not_in: Error = InvalidTxnStateError
        if request.writes is Writes.ABORTABLE:
            not_in = TransactionAbortableError
        if transaction is None or transaction.state is not State.ONGOING or epoch != transaction.epoch:
            if header.is_transactional:
                if transaction is not None and epoch > known:
                    not_in = InvalidProducerEpochError
                raise RefusedBatchError(not_in, f"{who} has no open transaction")
            return
        if not header.is_transactional:
            raise RefusedBatchError(
                InvalidTxnStateError, f"{who} has an open transaction, and the batch is not part of it"
            )
        if row_name(partition) not in transaction.partitions:
            name = f"partition {partition.number} of {partition.topic.name!r}"
            raise RefusedBatchError(not_in, f"{who}: {name} was not added to its transaction")
