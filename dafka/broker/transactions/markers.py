"""Markers that somebody asks for by hand (WriteTxnMarkers): they end what a producer has open in a partition.

``kafka-transactions abort`` writes them, to end a transaction that its coordinator no longer knows.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

import gevent.event
from kafka.errors import (
    InvalidProducerEpochError,
    KafkaStorageError,
    PolicyViolationError,
    UnknownError,
    UnknownTopicOrPartitionError,
)

from dafka.broker.interface.groups import Error, TopicPartition
from dafka.broker.interface.transactions import NO_EPOCH, NO_PRODUCER_ID
from dafka.broker.limits import WIDE_PRODUCE
from dafka.broker.records.leader import Leaders
from dafka.broker.records.producer_row import NO_TRANSACTION
from dafka.broker.records.producer_state import ProducerStates, RefusedBatchError
from dafka.broker.topics.table import Partition, TopicTable
from dafka.broker.transactions.epoch_ends import RAISING
from dafka.hub.turns import Pace, in_pieces

NO_VERSION = -1
LAST_EPOCH = 2**15 - 1


class Markers:
    """Writes markers for one broker. Hub side; waits as a green thread."""

    def __init__(self, topics: TopicTable, producers: ProducerStates, leaders: Leaders) -> None:
        self._topics = topics
        self._producers = producers
        self._leaders = leaders

    def write(
        self,
        producer_id: int,
        epoch: int,
        commit: bool,
        partitions: Iterable[TopicPartition],
        version: int,
    ) -> dict[TopicPartition, Error | None]:
        """See :meth:`TransactionInterface.write_markers`."""
        answers: dict[TopicPartition, Error | None] = {}
        pace = Pace()
        for some in in_pieces(dict.fromkeys(partitions), WIDE_PRODUCE):
            waiting = []
            for key in pace.over(some, every=8):
                found = self._topics.partition(*key)
                if found is None or not found.writable:
                    answers[key] = UnknownTopicOrPartitionError
                elif producer_id == NO_PRODUCER_ID or epoch == NO_EPOCH or version == NO_VERSION:
                    answers[key] = UnknownError
                else:
                    outcome = gevent.event.AsyncResult()
                    waiting.append((key, outcome))
                    check = partial(self._check, found, producer_id, epoch, version)
                    self._leaders.end_transaction(found, producer_id, epoch, commit, outcome.set, check)
            for key, outcome in waiting:
                error = outcome.get()
                refused = isinstance(error, RefusedBatchError)
                answers[key] = None if error is None else error.error if refused else KafkaStorageError
        return answers

    def _check(self, partition: Partition, producer_id: int, epoch: int, version: int) -> None:
        state = self._producers.get(partition, producer_id)
        known = state.epoch
        late = epoch < max(known, 0)
        if version >= RAISING and epoch == known:  # nothing is open if the marker comes again
            late = state.transaction_start != NO_TRANSACTION and epoch < LAST_EPOCH
        if late:
            raise RefusedBatchError(InvalidProducerEpochError, f"the epoch of {producer_id} is {known}")
        if known == NO_EPOCH and self._producers.full:
            raise RefusedBatchError(PolicyViolationError, f"producer {producer_id} is not known")
