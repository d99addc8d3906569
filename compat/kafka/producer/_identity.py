"""The producer ids and sequences with which the broker stores each batch once and in its order.

A batch gets the producer's id and epoch and a sequence when it is first sent, and keeps them however often it
is sent again. One call to the broker is under way at a time, which leaves three cases when batches fail for
good:

- The broker has refused them: they are not stored, and the next batches get their sequences.
- They may be stored or not (an expired batch that was sent before): the partition goes on under another
  producer id, because the broker may expect either sequence, and batches that were sent after the lost ones
  under the old id fail as well.
- The broker does not know the sequence: as before.

Hub side, but for the constructor.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence

from kafka.errors import (
    BrokerResponseError,
    InvalidProducerEpochError,
    KafkaConnectionError,
    KafkaError,
    OutOfOrderSequenceNumberError,
    RetriableError,
    UnknownProducerIdError,
)

from compat.kafka._client import Client
from compat.kafka.producer._batches import Batch, PartitionQueue
from dafka.broker import BrokerStoppedError
from dafka.broker.interface.transactions import Writes
from dafka.protocol.batch import SEQUENCES, with_producer

log = logging.getLogger(__name__)

LATER = (RetriableError, KafkaConnectionError, BrokerStoppedError)
"""Errors after which the same may be tried again."""

SEQUENCE_ERRORS = (OutOfOrderSequenceNumberError, UnknownProducerIdError, InvalidProducerEpochError)


class Identity:
    """The identity of a producer without a transactional id."""

    transactional_id: str | None = None
    writes: Writes = Writes.ANNOUNCED
    """How it writes in transactions."""

    def __init__(self, client: Client, timeout_ms: float) -> None:
        self._client = client
        self._timeout = timeout_ms / 1000
        self._shared: tuple[int, int] | None = None  # the first sequence of all partitions

    def prepare(self, queues: Iterable[PartitionQueue]) -> Exception | None:
        """Get producer ids for the partitions that have none; the error, or None."""
        for queue in queues:
            if queue.identity is None:
                if self._shared is None or queue.replaced:
                    given = self._client.broker.init_producer_id(None, self._timeout)
                    if given.error is not None:
                        return given.error()
                    fresh = given.producer_id, given.epoch
                    self._shared = self._shared or fresh
                    queue.identity = fresh
                else:
                    queue.identity = self._shared
                queue.next_sequence = 0
        return None

    def stamp(self, queue: PartitionQueue, batches: Iterable[Batch]) -> None:
        """Give batches that are sent for the first time their sequences."""
        for batch in batches:
            if batch.identity is None:
                batch.identity = queue.identity
                batch.sequence = queue.next_sequence
                queue.next_sequence = (batch.sequence + batch.count) % SEQUENCES
                content = batch.content
                assert content is not None and batch.identity is not None
                batch.content = with_producer(
                    content, *batch.identity, batch.sequence, transactional=self.transactional_id is not None
                )

    def rejection(self, batch: Batch) -> Exception | None:
        """Why a waiting batch must no longer be sent, or None."""
        if batch.identity is not None and batch.identity != batch.queue.identity:
            return KafkaError(
                f"{batch.count} records for {batch.queue.partition} were sent before, behind others whose "
                "fate is not known; sending them again might store them twice"
            )
        return None

    def take_back(self, batches: Sequence[Batch]) -> None:
        """Take the sequences back of the last batches sent to a partition: they were refused."""
        for batch in reversed(batches):
            if batch.identity is not None:
                batch.queue.next_sequence = batch.sequence
                batch.identity = None

    def replace(self, queue: PartitionQueue, batches: Sequence[Batch]) -> bool:
        """Send batches that were refused for their sequences under another producer id; whether it may."""
        self.take_back(batches)
        queue.identity = None
        queue.replaced = True
        return True

    def failed(self, batch: Batch, error: Exception) -> None:
        """Note that a batch failed for good. Call before its outcome is published."""
        if batch.identity is not None and not is_refusal(error):
            log.warning("%s goes on under another producer id after %r", batch.queue.partition, error)
            batch.queue.identity = None
            batch.queue.replaced = True


def is_refusal(error: BaseException) -> bool:
    """Whether an error says for certain that a batch was not stored, and does not doubt its sequence."""
    return isinstance(error, BrokerResponseError) and not isinstance(
        error, (RetriableError, *SEQUENCE_ERRORS)
    )
