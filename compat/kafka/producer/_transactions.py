"""Transactions of a producer: kafka-python's states, transitions and errors over the broker's calls.

The program's thread begins and ends transactions; the sender adds partitions to them before it sends the
first batch there. An *abortable* error ends the transaction and leaves the producer usable once it has called
``abort_transaction``; a *fatal* one, such as being fenced by another instance, leaves only ``close``.

The feature transaction.version of the cluster says how transactions are written (KIP-890): from level 2 on
the first batch for a partition adds it, and each end raises the producer's epoch, so that nothing which
arrives late can belong to a later transaction. It is looked up when the producer takes over its transactional
id; brokers accept either way at every level.

Two things differ from kafka-python 3.0: a batch that expires makes its transaction abortable, where
kafka-python would commit without it; and nothing waits for ever for a broker that has gone, but at most
``max_block_ms``.
"""

from __future__ import annotations

import logging
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from time import monotonic
from typing import Any

import gevent
from kafka.errors import (
    ClusterAuthorizationFailedError,
    CommitFailedError,
    FencedInstanceIdError,
    GroupAuthorizationFailedError,
    IllegalGenerationError,
    IllegalStateError,
    IncompatibleBrokerVersion,
    InvalidProducerEpochError,
    InvalidProducerIdMappingError,
    InvalidTxnStateError,
    KafkaError,
    KafkaTimeoutError,
    ProducerFencedError,
    RetriableError,
    TopicAuthorizationFailedError,
    TransactionAbortableError,
    TransactionAbortedError,
    TransactionalIdAuthorizationFailedError,
    UnknownMemberIdError,
    UnknownProducerIdError,
)
from kafka.producer.transaction_manager import TransactionState
from kafka.structs import ConsumerGroupMetadata, OffsetAndMetadata, TopicPartition

from compat.kafka._client import Client
from compat.kafka.producer._batches import Batch, PartitionQueue, allocate_lock
from compat.kafka.producer._identity import LATER, SEQUENCE_ERRORS, Identity
from dafka.broker.interface.broker import CommittedOffset
from dafka.broker.interface.transactions import Writes

log = logging.getLogger(__name__)

FATAL_ERRORS = (
    ClusterAuthorizationFailedError,
    TransactionalIdAuthorizationFailedError,
    ProducerFencedError,
    InvalidTxnStateError,
)
FENCED = (ProducerFencedError, InvalidProducerEpochError)
FEATURE, SECOND_PROTOCOL = "transaction.version", 2


class Transactions(Identity):
    """The identity of a producer with a transactional id, and the state of its transaction."""

    def __init__(
        self, client: Client, transactional_id: str, timeout_ms: float, backoff_ms: float, max_block_ms: float
    ) -> None:
        super().__init__(client, timeout_ms)
        self.transactional_id: str = transactional_id
        self.state = TransactionState.UNINITIALIZED
        self.error: BaseException | None = None
        self._backoff = backoff_ms / 1000
        self._max_block = max_block_ms / 1000
        self._identity = (-1, -1)
        self._partitions: set[tuple[str, int]] = set()
        self._started = False  # whether the broker knows of the transaction
        self._lock = allocate_lock()

    # -- the program's thread -------------------------------------------------------------------

    def initialize(self) -> None:
        """Take over the transactional id; does nothing the second time.

        Raises:
            KafkaTimeoutError: the broker did not answer with an identity in time.
            ProducerFencedError, KafkaError: the reason of the refusal.
        """
        if self._identity[0] < 0:
            if self.state is not TransactionState.INITIALIZING:
                self._move(TransactionState.INITIALIZING)
            self._call(self._initialize)

    def begin(self) -> None:
        """Begin a transaction.

        Raises:
            KafkaError: another one is open, the id was not taken over yet, or an error has to be dealt with.
        """
        self._check_error()
        self._move(TransactionState.IN_TRANSACTION)

    def check_send(self) -> None:
        """Whether a record may be sent now.

        Raises:
            KafkaError: an error has to be dealt with first.
            IllegalStateError: no transaction is open.
        """
        if self.state is TransactionState.IN_TRANSACTION:
            return
        if self.error is not None:
            raise KafkaError(
                "Cannot perform send because at least one previous transactional or"
                " idempotent request has failed with errors.",
                self.error,
            )
        if self._identity[0] < 0:
            raise IllegalStateError(
                "Cannot perform a 'send' before completing a call to init_transactions"
                " when transactions are enabled."
            )
        raise IllegalStateError(f"Cannot call send in state {self.state.name}")

    def send_offsets(self, offsets: Any, group: Any) -> None:
        """Have offsets of a consumer group committed with the transaction.

        Raises:
            TypeError, ValueError: ``group`` is neither a group's name nor the metadata of a member, or
                ``offsets`` are not ``{TopicPartition: OffsetAndMetadata}``.
            KafkaError: no transaction is open, or an error has to be dealt with.
            CommitFailedError: the consumer is no longer a member of the group.
        """
        if isinstance(group, str):
            group = ConsumerGroupMetadata(group_id=group)
        elif not isinstance(group, ConsumerGroupMetadata):
            raise TypeError(
                "send_offsets_to_transaction expects group_metadata to be a "
                f"ConsumerGroupMetadata or a group_id str, got {type(group)!r}"
            )
        if group.generation_id > 0 and not group.member_id:
            raise ValueError(
                f"Invalid ConsumerGroupMetadata: generation_id={group.generation_id} implies a"
                " joined group but member_id is empty"
            )
        _check_offsets(offsets)
        self._check_error()
        if self.state is not TransactionState.IN_TRANSACTION:
            raise KafkaError(
                "Cannot send offsets to transaction because the producer is not in an active transaction"
            )
        if not offsets:
            return
        self._call(self._send_offsets, dict(offsets), group)

    def begin_end(self, commit: bool) -> None:
        """Begin to commit or abort; the caller then flushes and calls :meth:`finish`."""
        if commit or self.state is not TransactionState.ABORTABLE_ERROR:
            self._check_error()
        target = TransactionState.COMMITTING_TRANSACTION if commit else TransactionState.ABORTING_TRANSACTION
        if self.state is not target:  # or it is tried again
            self._move(target)

    def finish(self, commit: bool) -> None:
        """Commit or abort, now that everything sent has its outcome.

        Raises:
            KafkaError: an earlier failure, or one of now. ProducerFencedError if another instance has
                taken over, KafkaTimeoutError if the broker is not there.
        """
        if self.error is not None:
            raise self.error
        if self.state is TransactionState.READY:  # it was aborted for a newer epoch
            if commit:
                raise TransactionAbortedError("The transaction was aborted after an error in its sequences")
            return
        if self._started:
            self._call(self._end, commit)
        self._complete()

    def _complete(self) -> None:
        self._move(TransactionState.READY)
        self._started = False
        self._partitions.clear()

    def _check_error(self) -> None:
        if self.error is not None:
            raise KafkaError(
                f"Cannot execute transactional method because we are in an error state: {self.error}"
            )

    def _move(self, target: TransactionState, error: BaseException | None = None) -> None:
        with self._lock:
            if not TransactionState.is_transition_valid(self.state, target):
                raise KafkaError(
                    f"TransactionalId {self.transactional_id}: Invalid transition attempted from state "
                    f"{self.state.name} to state {target.name}"
                )
            self.state, self.error = target, error

    def _call(self, fn: Callable[..., Exception | None], *args: Any) -> None:
        """Carry out ``fn`` in the hub until it gives something else than an error to try again after."""
        failure = self._client.call(self._persist, fn, *args)
        if failure is not None:
            raise failure

    # -- in the hub -----------------------------------------------------------------------------

    def _persist(self, fn: Callable[..., Exception | None], *args: Any) -> Exception | None:
        deadline = monotonic() + self._max_block
        while True:
            try:
                failure = fn(*args)
            except (KafkaError, OSError) as error:
                failure = error
            if not isinstance(failure, LATER):
                return failure
            if monotonic() + self._backoff > deadline:
                return KafkaTimeoutError(
                    f"Timeout expired after {self._max_block:g} s, the last answer was {failure!r}"
                )
            gevent.sleep(self._backoff)

    def _initialize(self) -> Exception | None:
        self.writes = self._writes_of_cluster()
        given = self._client.broker.init_producer_id(self.transactional_id, self._timeout)
        if given.error is not None:
            return self._judge(given.error, "InitProducerIdResponse")
        self._identity = given.producer_id, given.epoch
        self._move(TransactionState.READY)
        return None

    def _writes_of_cluster(self) -> Writes:
        try:
            features = self._client.broker.features()
        except IncompatibleBrokerVersion:  # older than features
            return Writes.ANNOUNCED
        if features.levels.get(FEATURE, 0) >= SECOND_PROTOCOL:
            return Writes.ADDING
        return Writes.ABORTABLE if FEATURE in features.supported else Writes.ANNOUNCED

    def prepare(self, queues: Iterable[PartitionQueue]) -> Exception | None:
        queues = list(queues)
        for queue in queues:
            if queue.identity != self._identity:
                queue.identity, queue.next_sequence = self._identity, 0
        new = {tuple(queue.partition) for queue in queues} - self._partitions
        if not new:
            return None
        if self.writes is Writes.ADDING:
            self._started = True  # even if the batches that add the partitions should fail
            self._partitions |= new
            return None
        answers = self._client.broker.add_partitions_to_transaction(
            self.transactional_id, *self._identity, [(topic, number) for topic, number in new]
        )
        errors = {key: error for key, error in answers.items() if error is not None}
        if not errors:
            self._started = True
            self._partitions |= new
            return None
        for error in errors.values():
            if issubclass(
                error,
                (
                    RetriableError,
                    *FENCED,
                    *FATAL_ERRORS,
                    InvalidProducerIdMappingError,
                    TransactionAbortableError,
                ),
            ):
                return self._judge(error, "AddPartitionsToTxnResponse")
        unauthorized = {key[0] for key, error in errors.items() if error is TopicAuthorizationFailedError}
        failure: KafkaError
        if unauthorized:
            failure = TopicAuthorizationFailedError(unauthorized)
        else:
            failure = KafkaError(f"Could not add partitions to transaction due to errors: {errors}")
        self._abortable(failure)
        return failure

    def _send_offsets(self, offsets: dict[Any, Any], group: Any) -> Exception | None:
        broker = self._client.broker
        if self.writes is not Writes.ADDING:
            error = broker.add_offsets_to_transaction(self.transactional_id, *self._identity, group.group_id)
            if error is not None:
                if error in (UnknownProducerIdError, InvalidProducerIdMappingError):
                    return self._abortable(error())
                if error is GroupAuthorizationFailedError:
                    return self._abortable(error(group.group_id))
                return self._judge(error, "AddOffsetsToTxnResponse")
        self._started = True
        answers = broker.commit_transaction_offsets(
            self.transactional_id,
            *self._identity,
            group.group_id,
            {
                tuple(partition): CommittedOffset(offset.offset, offset.metadata, offset.leader_epoch)
                for partition, offset in offsets.items()
            },
            generation=group.generation_id,
            member_id=group.member_id,
            instance_id=group.group_instance_id,
            writes=self.writes,
        )
        errors = [error for error in answers.values() if error is not None]
        for error in sorted(errors, key=lambda error: issubclass(error, RetriableError)):
            if error is GroupAuthorizationFailedError:
                return self._abortable(error(group.group_id))
            if error is FencedInstanceIdError:
                return self._abortable(error())
            if error in (IllegalGenerationError, UnknownMemberIdError):
                return self._abortable(
                    CommitFailedError(
                        "Transaction offset commit failed due to consumer group"
                        f" metadata mismatch: {error.__name__}"
                    )
                )
            return self._judge(error, "TxnOffsetCommitResponse")
        return None

    def _end(self, commit: bool) -> Exception | None:
        broker, identity = self._client.broker, self._identity
        if self.writes is not Writes.ADDING:
            error = broker.end_transaction(self.transactional_id, *identity, commit)
        else:
            given = broker.end_transaction_with_epoch(self.transactional_id, *identity, commit)
            error = given.error
            if error is None:
                self._identity = given.producer_id, given.epoch
        return None if error is None else self._judge(error, "EndTxnResponse")

    def _judge(self, error: Any, where: str) -> Exception:
        """The exception for a coordinator's error: one to try again after, or a fatal one."""
        if issubclass(error, RetriableError):
            return error()  # type: ignore[no-any-return]
        if issubclass(error, FENCED):
            return self._fatal(ProducerFencedError())
        if issubclass(error, FATAL_ERRORS):
            return self._fatal(error())
        if issubclass(error, TransactionAbortableError):
            return self._abortable(error())
        return self._fatal(KafkaError(f"Unexpected error in {where}: {error()}"))

    def _fatal(self, error: Exception) -> Exception:
        log.error("transactional id %r: %s", self.transactional_id, error)
        self._move(TransactionState.FATAL_ERROR, error)
        return error

    def _abortable(self, error: Exception) -> Exception:
        if self.state in (
            TransactionState.IN_TRANSACTION,
            TransactionState.COMMITTING_TRANSACTION,
            TransactionState.ABORTABLE_ERROR,
        ):
            self._move(TransactionState.ABORTABLE_ERROR, error)
        return error

    def rejection(self, batch: Batch) -> Exception | None:
        if self.state is TransactionState.FATAL_ERROR:
            return self.error  # type: ignore[return-value]
        if batch.identity is None:
            if self.state is TransactionState.ABORTABLE_ERROR:
                return self.error  # type: ignore[return-value]
            if self.state is TransactionState.ABORTING_TRANSACTION:
                return TransactionAbortedError()
        if batch.identity is not None and batch.identity != self._identity:
            return TransactionAbortedError()
        return None

    def replace(self, queue: PartitionQueue, batches: Sequence[Batch]) -> bool:
        return False  # it would leave the transaction

    def failed(self, batch: Batch, error: Exception) -> None:
        if isinstance(error, SEQUENCE_ERRORS) and self.writes is not Writes.ADDING:
            self._bump(error)
        elif isinstance(error, FATAL_ERRORS):
            self._fatal(error)
        else:
            self._abortable(error)

    def _bump(self, error: Exception) -> None:
        """Take a newer epoch after an error in the sequence, which aborts the transaction (KIP-360)."""
        if self.state is TransactionState.FATAL_ERROR:
            return
        log.warning("transactional id %r takes a newer epoch after %r", self.transactional_id, error)
        failure: Exception | None
        try:
            given = self._client.broker.init_producer_id(
                self.transactional_id, self._timeout, *self._identity
            )
            failure = None if given.error is None else given.error()
        except (KafkaError, OSError) as failed:
            failure = failed
        if isinstance(failure, LATER):
            self._abortable(error)
        elif failure is not None:
            self._fatal(ProducerFencedError() if isinstance(failure, FENCED) else failure)
        else:
            self._identity = given.producer_id, given.epoch
            self._move(TransactionState.BUMPING_PRODUCER_EPOCH)
            self._complete()


def _check_offsets(offsets: Any) -> None:
    """Raise TypeError or ValueError for what no request has room for."""
    if not isinstance(offsets, Mapping):
        raise TypeError(
            f"offsets must be dict[TopicPartition, OffsetAndMetadata], not {type(offsets).__name__}"
        )
    for partition, committed in offsets.items():
        if not isinstance(partition, TopicPartition) or not isinstance(committed, OffsetAndMetadata):
            raise TypeError(
                "offsets must be dict[TopicPartition, OffsetAndMetadata], not "
                f"{{{partition!r:.100}: {committed!r:.100}}}"
            )
        if not isinstance(committed.metadata, (str, type(None))):
            raise TypeError(f"metadata of {partition} is a str, not {committed.metadata!r:.100}")
        try:
            struct.pack(">qi", committed.offset, committed.leader_epoch)
        except struct.error as error:
            raise ValueError(f"{committed!r:.200} cannot be committed for {partition}: {error}") from None
