"""The transactional part of the broker interface: producer ids, sequences and transactions.

Each method answers one Kafka request (InitProducerId, AddPartitionsToTxn, EndTxn, ...) with the same fields;
times are seconds. A producer is known by its *producer id*; its *epoch* goes up whenever another instance
takes over, and what comes with an older one is refused (fenced). See :mod:`dafka.broker.interface.broker` for
what all methods have in common.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum
from typing import NamedTuple

from dafka.broker.interface.groups import (
    NO_GENERATION,
    NO_MEMBER,
    CommittedOffset,
    Error,
    TopicPartition,
)

NO_PRODUCER_ID = -1
NO_EPOCH = -1


class Writes(IntEnum):
    """How a client writes in transactions (KIP-890).

    ``ANNOUNCED``: it adds partitions and groups first; others get InvalidTxnStateError. ``ABORTABLE``: the
    same, but with TransactionAbortableError. ``ADDING``: the first batch for a partition and the first offset
    of a group add it (transaction.version 2).
    """

    ANNOUNCED = 0
    ABORTABLE = 1
    ADDING = 2


class ProducerIdentity(NamedTuple):
    """The producer id and epoch of a producer from now on."""

    error: Error | None
    producer_id: int = NO_PRODUCER_ID
    epoch: int = NO_EPOCH


class ActiveProducer(NamedTuple):
    """An idempotent producer that a partition knows. ``transaction_start`` is -1 outside a transaction.

    ``last_timestamp`` (ms) is the largest of its last batch, or of the end of its last transaction.
    """

    producer_id: int
    epoch: int
    last_sequence: int
    last_timestamp: int
    coordinator_epoch: int = -1
    transaction_start: int = -1


class ProducersOfPartition(NamedTuple):
    """The idempotent producers that a partition knows."""

    error: Error | None
    producers: Sequence[ActiveProducer] = ()


class TransactionDescription(NamedTuple):
    """A transaction. ``state`` is Kafka's word for it; times in seconds since 1970 and seconds."""

    error: Error | None
    state: str = ""
    producer_id: int = NO_PRODUCER_ID
    epoch: int = NO_EPOCH
    timeout: float = 0.0
    started: float = -1.0
    partitions: Sequence[TopicPartition] = ()


class ListedTransaction(NamedTuple):
    """A transactional id in a list."""

    transactional_id: str
    producer_id: int
    state: str


class TransactionInterface(ABC):
    """Idempotent and transactional producers."""

    @abstractmethod
    def init_producer_id(
        self,
        transactional_id: str | None,
        timeout: float,
        producer_id: int = NO_PRODUCER_ID,
        epoch: int = NO_EPOCH,
    ) -> ProducerIdentity:
        """Give a producer its identity.

        Without a transactional id: a new producer id, epoch 0. With one: the id that belongs to it, its epoch
        one higher, after a transaction that its earlier instance left open has been aborted; ``timeout``
        is how long a transaction may last. A producer that names what it had is refused if that is no longer
        its own; if only the epoch is not, an open transaction is aborted, too. Errors: InvalidRequestError,
        InvalidTransactionTimeoutError, ProducerFencedError, InvalidProducerEpochError,
        ConcurrentTransactionsError (try again), KafkaStorageError.
        """

    @abstractmethod
    def add_partitions_to_transaction(
        self,
        transactional_id: str,
        producer_id: int,
        epoch: int,
        partitions: Iterable[TopicPartition],
        *,
        verify_only: bool = False,
        raising: bool = False,
    ) -> dict[TopicPartition, Error | None]:
        """Begin the transaction if none is open, and note partitions that it writes to.

        All of them or nothing; but very many are noted in several rounds, and if one of these cannot be
        written, the answers say which partitions were noted before it. ``verify_only`` notes nothing:
        partitions that are not part of the transaction get TransactionAbortableError. ``raising``: whoever
        asks knows transactions whose ends raise the epoch; at transaction.version 0 that is refused with
        UnsupportedVersionError, as are the writes and the ends of these.

        Errors: InvalidProducerIdMappingError, ProducerFencedError, ConcurrentTransactionsError,
        InvalidTxnStateError, UnknownTopicOrPartitionError, OperationNotAttemptedError, KafkaStorageError.
        """

    @abstractmethod
    def add_offsets_to_transaction(
        self, transactional_id: str, producer_id: int, epoch: int, group: str
    ) -> Error | None:
        """Note that the transaction commits offsets of a group. Errors as for partitions, and
        PolicyViolationError for too many groups."""

    @abstractmethod
    def commit_transaction_offsets(
        self,
        transactional_id: str,
        producer_id: int,
        epoch: int,
        group: str,
        offsets: Mapping[TopicPartition, CommittedOffset],
        *,
        generation: int = NO_GENERATION,
        member_id: str = NO_MEMBER,
        instance_id: str | None = None,
        writes: Writes = Writes.ANNOUNCED,
    ) -> dict[TopicPartition, Error | None]:
        """Offsets that become the group's when the transaction commits. Each answer is true for its
        partition, as with ``commit_offsets``. Errors as there, and those of the transaction."""

    @abstractmethod
    def end_transaction(
        self, transactional_id: str, producer_id: int, epoch: int, commit: bool
    ) -> Error | None:
        """Commit or abort: decided durably first, then marked in every partition; waits for the marks.

        Errors: InvalidProducerIdMappingError, ProducerFencedError, InvalidTxnStateError,
        ConcurrentTransactionsError, KafkaStorageError.
        """

    @abstractmethod
    def end_transaction_with_epoch(
        self, transactional_id: str, producer_id: int, epoch: int, commit: bool
    ) -> ProducerIdentity:
        """The same, after which the producer goes on with the identity in the answer (transaction.version 2).

        Its epoch is one higher, so that what was sent late in the transaction is refused; behind the last
        epoch there is a new producer id. A retry gets the same answer. An abort without a transaction raises
        the epoch, too; a commit without one is InvalidTxnStateError. Errors as of ``end_transaction``.
        """

    @abstractmethod
    def write_markers(
        self,
        producer_id: int,
        epoch: int,
        commit: bool,
        partitions: Iterable[TopicPartition],
        version: int = 0,
    ) -> dict[TopicPartition, Error | None]:
        """End what a producer has open in partitions, whatever the state of its transaction is.

        ``version``: of transactions, as the feature transaction.version has it. From 2 on a marker's epoch is
        above that of the records, unless it comes again.

        Errors: UnknownTopicOrPartitionError, InvalidProducerEpochError (an earlier epoch), KafkaStorageError,
        PolicyViolationError (an unknown producer, and there are too many); as in Kafka UnknownError for a
        producer id, an epoch or a version of -1.
        """

    @abstractmethod
    def describe_producers(
        self, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, ProducersOfPartition]:
        """The idempotent producers that partitions know. Errors: UnknownTopicOrPartitionError."""

    @abstractmethod
    def describe_transactions(self, transactional_ids: Iterable[str]) -> dict[str, TransactionDescription]:
        """Transactions by their ids. Errors: TransactionalIdNotFoundError."""

    @abstractmethod
    def list_transactions(
        self, states: Iterable[str] = (), producer_ids: Iterable[int] = ()
    ) -> list[ListedTransaction]:
        """All transactional ids, or those in these states and with these producer ids."""
