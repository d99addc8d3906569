"""The state of idempotent producers in partitions: epoch, sequences, and the open transaction.

A producer numbers the records it sends to a partition: 0, 1, 2, ... up to 2^31 - 1, and then from 0. The
partition takes a batch only if it continues the last one, so a gap is noticed, and it knows its last appends,
so that a batch that comes again is answered with the offsets it has and not appended (Kafka protocol guide,
KIP-98; of an unknown producer any sequence is taken, as in Kafka, for its state may have expired).

For each producer of each partition there is one row in the log's table ``producers``, written in the same
transaction as the batch (:class:`Staging`): the two agree after a crash, and opening reads the
keys of rows and no records. Nothing is kept in memory besides the table but what a round under way would make
of it, because batches are checked when their round is put together (:mod:`dafka.broker.records.leader`). So a
duplicate of a batch that is still under way either meets it in its round and shares its outcome, or finds
its outcome.

A row is forgotten by age, as with Kafka's ``producer.id.expiration.ms``. However many rows there are, none
is deleted that a batch under way might still need: the batch of a producer that is forgotten too early could
be stored a second time.

One append here is all batches of one call for a partition, which for a client on the wire is one batch.
Callers in this process send many at once and may have to send all of them again.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator

from kafka.errors import (
    InvalidProducerEpochError,
    InvalidRecordError,
    OutOfOrderSequenceNumberError,
    PolicyViolationError,
)

from dafka.broker.interface.broker import Error
from dafka.broker.interface.transactions import NO_EPOCH, ActiveProducer
from dafka.broker.limits import (
    KNOWN_APPENDS,
    PRODUCER_ID_EXPIRATION,
    PRODUCER_RETRIES,
    PRODUCERS_KEPT,
    PRODUCERS_MAX,
)
from dafka.broker.records.first_sequences import FirstSequences
from dafka.broker.records.producer_row import (
    NO_TRANSACTION,
    PRODUCER_ROWS,
    PRODUCERS,
    UNKNOWN,
    Append,
    ProducerState,
    unpack,
)
from dafka.broker.records.transaction_index import (
    ABORTED,
    ABORTED_ROWS,
    AbortedIndex,
    AbortedTransaction,
)
from dafka.broker.topics.table import Partition, Topic
from dafka.commit.rows import Rows
from dafka.commit.writer import Writer
from dafka.hub.limits import PACE_ITEMS
from dafka.hub.turns import Pace
from dafka.log import Log
from dafka.protocol.batch import SEQUENCES, BatchHeader
from dafka.protocol.errors import DafkaError

_MINUTE = 60_000  # ms
_ROWS = 250  # deleted in one round


class RefusedBatchError(DafkaError):
    """A batch that its producer must not send now; ``error`` is for the client."""

    def __init__(self, error: Error, detail: str) -> None:
        self.error = error
        super().__init__(detail)


class ProducerStates:
    """The producers of all partitions of one log. Hub side."""

    def __init__(self, log: Log, writer: Writer, clock: Callable[[], float] = time.time) -> None:
        self._log = log
        self._writer = writer
        self._clock = clock
        self._began = self.now()  # no producer could send a batch again before
        self._table = log.table(PRODUCERS, PRODUCER_ROWS)
        log.table(ABORTED, ABORTED_ROWS)
        self._staged: dict[str, ProducerState] = {}  # rows as the round under way changes them
        self._first = FirstSequences()
        self._waiting: Counter[str] = Counter()  # appends on their way to a round, by row
        self._open: dict[Partition, dict[int, int]] = {}  # where open transactions begin, by producer id
        self._aborted: dict[Partition, AbortedIndex] = {}

    def now(self) -> int:
        """Milliseconds since 1970."""
        return int(self._clock() * 1000)

    def get(self, partition: Partition, producer_id: int) -> ProducerState:
        """The state of a producer in a partition."""
        return self._state(_key(partition, producer_id))

    def _state(self, key: str) -> ProducerState:
        staged = self._staged.get(key)
        if staged is None:
            stored = self._table.get(key)
            staged = UNKNOWN if stored is None else unpack(stored)
        return staged

    def of_partition(self, partition: Partition) -> Iterator[ActiveProducer]:
        """All producers that the partition knows, of which there may be very many, in no order."""
        for key, stored in self._table.items(_prefix(partition)):
            state = unpack(stored)
            yield ActiveProducer(
                int(key.rpartition("/")[2]),
                state.epoch,
                state.last_sequence,
                state.last_timestamp,
                transaction_start=state.transaction_start,
            )

    # -- transactions ---------------------------------------------------------------------------

    def reopen(self, partition: Partition, producer_id: int) -> bool:
        """Note at the broker's start that a transaction was open; whether it has written there."""
        start = self.get(partition, producer_id).transaction_start
        if start != NO_TRANSACTION:
            self._open.setdefault(partition, {})[producer_id] = start
        return start != NO_TRANSACTION

    def last_stable_offset(self, partition: Partition) -> int:
        """The first offset of an open transaction, or the high watermark.

        A transaction that begins in the round under way may have other records of that round before it.
        """
        starts = self._open.get(partition)
        if not starts:
            return partition.high_watermark
        return max(min(*starts.values(), partition.high_watermark), partition.log_start)

    def aborted(self, partition: Partition, start: int, end: int) -> list[AbortedTransaction]:
        """The aborted transactions with records from ``start`` up to ``end``."""
        return self._index(partition).between(start, end)

    def _index(self, partition: Partition) -> AbortedIndex:
        index = self._aborted.get(partition)
        if index is None:
            index = AbortedIndex(self._log, row_name(partition))
            if not partition.topic.deleted:
                self._aborted[partition] = index
        return index

    def refused(self, partition: Partition, header: BatchHeader, adding: bool) -> None:
        """A batch was not taken; ``adding``: it would have added its partition. If it was to begin a
        transaction there, none of a later sequence does so before it.
        """
        if not header.is_transactional or header.producer_id < 0:
            return
        state = self.get(partition, header.producer_id)
        open_now = state.transaction_start != NO_TRANSACTION and state.epoch == header.producer_epoch
        if header.producer_epoch >= state.epoch and not open_now:
            self._first.note(_key(partition, header.producer_id), header, adding, self.now())

    # -- rounds ---------------------------------------------------------------------------------

    def expect(self, partition: Partition, producer_ids: set[int]) -> Staging:
        """Begin an append by these producers; the staging is settled when its outcome is known."""
        staging = Staging(self, partition, producer_ids)
        self._waiting.update(staging.keys)
        return staging

    # -- bounds ---------------------------------------------------------------------------------

    @property
    def crowded(self) -> bool:
        """Whether there are more rows than are kept."""
        return len(self._table) > PRODUCERS_KEPT

    @property
    def full(self) -> bool:
        """Whether there is no room for further ones."""
        return len(self._table) >= PRODUCERS_MAX

    def forget_old(self, pause: Callable[[], object]) -> int:
        """Delete the state of producers that have not written for PRODUCER_ID_EXPIRATION, and beyond
        PRODUCERS_KEPT of the longest silent ones, if that is PRODUCER_RETRIES; none with an open transaction.
        How many.

        Calls ``pause`` now and then, and waits as a green thread for its commits.
        """
        due = self._due(pause)
        for begin in range(0, len(due), _ROWS):
            # Rows that were written meanwhile, or that a batch under way will write again, stay.
            rows: Rows = {
                (PRODUCERS, key): None
                for at, key in due[begin : begin + _ROWS]
                if not self._waiting[key] and self._state(key).time == at
            }
            self._writer.put_and_wait(rows)
            pause()
        self._forget_aborted()
        return len(due)

    def _due(self, pause: Callable[[], object]) -> list[tuple[int, str]]:
        """Time and key of the rows that are to go."""
        now = self.now()
        oldest = now - int(PRODUCER_ID_EXPIRATION * 1000)
        silent = now - int(PRODUCER_RETRIES * 1000)
        # A tenth more than needed, so that the next producer does not bring the next search.
        surplus = len(self._table) - PRODUCERS_KEPT * 9 // 10 if self.crowded else 0
        due: list[tuple[int, str]] = []
        others: dict[int, list[tuple[int, str]]] = {}  # those that may go, by minutes: nothing is sorted
        for count, key in enumerate(self._table.unordered()):
            if not count % PACE_ITEMS:
                pause()
            state = self._state(key)
            if state.transaction_start != NO_TRANSACTION or state.epoch == NO_EPOCH:
                continue
            if state.time < oldest:
                due.append((state.time, key))
            elif surplus > 0 and max(state.time, self._began) < silent:
                others.setdefault(state.time // _MINUTE, []).append((state.time, key))
        for minute in sorted(others):
            due += others[minute][: max(surplus - len(due), 0)]
        return due

    def _forget_aborted(self) -> None:
        """Delete the rows of aborted transactions whose records are gone."""
        for partition, index in list(self._aborted.items()):
            below = index.rows_below(partition.log_start)
            if below:
                self._writer.put_and_wait(below)
                index.drop(len(below))

    def places_of(self, topic: Topic) -> Iterator[tuple[str, str]]:
        """The rows about the producers of a deleted topic's partitions; there may be very many."""
        prefix = f"{topic.topic_id.hex}/"
        # First those of batches that have their numbers and are being stored: later ones are refused.
        for key in [key for key in self._waiting if key.startswith(prefix)]:
            yield PRODUCERS, key
        for key in self._table.keys(prefix):
            yield PRODUCERS, key
        yield from AbortedIndex.places_of(self._log, prefix)

    def forget(self, topic: Topic) -> None:
        """A topic was deleted."""
        for partition in Pace().over(topic.partitions):
            self._open.pop(partition, None)
            self._aborted.pop(partition, None)


class Staging:
    """The new state of the producers of one append. It is taken back if the round fails."""

    def __init__(self, states: ProducerStates, partition: Partition, producer_ids: set[int]) -> None:
        self._states = states
        self._partition = partition
        self._key_of = {producer_id: _key(partition, producer_id) for producer_id in producer_ids}
        self.keys = frozenset(self._key_of.values())
        self._changed: dict[str, ProducerState] = {}
        self._begun: set[str] = set()  # rows whose last append is this one
        self._kept = False
        self._opened: dict[int, int] = {}
        self._closed: list[int] = []
        self._noted: AbortedTransaction | None = None

    def take(self, header: BatchHeader, offset: int, timestamp: int, adding: bool = False) -> int | None:
        """Count a batch that would get ``offset``; the offset it has already if it is a duplicate.

        ``timestamp`` is the largest of its records. ``adding``: the batch adds its partition, so a
        transactional producer that the partition does not know begins with sequence 0.
        Raises :class:`RefusedBatchError`.
        """
        producer_id, epoch = header.producer_id, header.producer_epoch
        key = self._key_of[producer_id]
        state = self._changed.get(key) or self._states._state(key)
        if epoch < state.epoch and header.base_sequence >= 0:
            raise _refused(header, InvalidProducerEpochError, f": its epoch is {state.epoch} by now")
        if epoch < 0 or header.base_sequence < 0:
            raise _refused(
                header, InvalidRecordError, f", base sequence {header.base_sequence}: neither is below 0"
            )
        expected = (state.last_sequence + 1) % SEQUENCES if epoch == state.epoch else 0
        now = self._states.now()
        first = self._states._first.get(key, now)
        if header.base_sequence != expected:  # what continues is no duplicate
            known = state.duplicate(header) if epoch == state.epoch else None
            if known is not None:
                return known
            from_0 = adding and header.is_transactional if first is None else first.adding
            if state.epoch != NO_EPOCH or from_0:
                detail = f": the next sequence is {expected}, not {header.base_sequence}"
                raise _refused(header, OutOfOrderSequenceNumberError, detail)
        if first is not None and epoch <= first.epoch and header.base_sequence > first.sequence:
            detail = f": sequence {first.sequence} has been refused and comes before {header.base_sequence}"
            raise _refused(header, OutOfOrderSequenceNumberError, detail)
        if state is UNKNOWN and self._states.full:
            detail = f" is not known, and {PRODUCERS_MAX} are: use a producer for more than a few records"
            raise _refused(header, PolicyViolationError, detail)
        start = state.transaction_start
        if header.is_transactional and start == NO_TRANSACTION:
            start = offset
            self._opened[producer_id] = offset
        if first is not None and header.is_transactional:
            self._states._first.forget(key)
        appends = state.appends if epoch == state.epoch else ()
        appends = self._appends(key, appends, header, offset)
        self._changed[key] = ProducerState(epoch, now, start, appends, timestamp)
        return None

    def _appends(
        self, key: str, appends: tuple[Append, ...], header: BatchHeader, offset: int
    ) -> tuple[Append, ...]:
        if key in self._begun and appends:
            last = appends[-1]
            if last.base_offset + last.records == offset:
                records = last.records + header.count
                return (*appends[:-1], Append(last.first, records, last.base_offset))
        self._begun.add(key)
        return (*appends, Append(header.base_sequence, header.count, offset))[-KNOWN_APPENDS:]

    def end_transaction(
        self, producer_id: int, epoch: int, offset: int, timestamp: int, commit: bool
    ) -> None:
        """Count the marker that ends the producer's transaction and gets ``offset`` and ``timestamp``."""
        key = self._key_of[producer_id]
        state = self._states._state(key)
        now = self._states.now()
        appends = state.appends if epoch == state.epoch else ()
        last = max(epoch, state.epoch)
        self._changed[key] = ProducerState(last, now, NO_TRANSACTION, appends, timestamp)
        first = self._states._first.get(key, now)
        if first is not None and not (first.adding and first.epoch == epoch):  # that of the next transaction
            self._states._first.forget(key)
        if state.transaction_start == NO_TRANSACTION:
            return
        self._closed.append(producer_id)
        if not commit:
            others = self._states._open.get(self._partition, {})
            stable = min(
                (start for other, start in others.items() if other != producer_id), default=offset + 1
            )
            self._noted = AbortedTransaction(producer_id, state.transaction_start, offset, stable)

    def keep(self) -> Rows:
        """All is counted: the rows that the round is to write besides the batches."""
        states = self._states
        self._kept = True
        states._staged.update(self._changed)
        if self._opened:
            states._open.setdefault(self._partition, {}).update(self._opened)
        rows: Rows = {(PRODUCERS, key): state.pack() for key, state in self._changed.items()}
        if self._noted is not None:
            rows.update(states._index(self._partition).add(self._noted))
        return rows

    def settle(self, committed: bool) -> None:
        """The round is over, or the append was refused."""
        states = self._states
        if self._kept:  # so have all others of the round; an append refused before it must leave it alone
            for key in self.keys:
                states._staged.pop(key, None)
        states._waiting.subtract(self.keys)
        for key in self.keys:
            if not states._waiting[key]:
                del states._waiting[key]
        closed = self._closed if committed else [*self._opened] if self._kept else ()
        if closed:
            starts = states._open.get(self._partition, {})
            for producer_id in closed:
                starts.pop(producer_id, None)
            if not starts:
                states._open.pop(self._partition, None)
        if self._kept and not committed and self._noted is not None:
            states._index(self._partition).take_back(self._noted)


def _refused(header: BatchHeader, error: Error, detail: str) -> RefusedBatchError:
    who = f"producer {header.producer_id} with epoch {header.producer_epoch}"
    return RefusedBatchError(error, who + detail)


def row_name(partition: Partition) -> str:
    """How rows name a partition; a topic that is created again is another one."""
    return f"{partition.topic.topic_id.hex}/{partition.number}"


def _prefix(partition: Partition) -> str:
    return row_name(partition) + "/"


def _key(partition: Partition, producer_id: int) -> str:
    return f"{partition.topic.topic_id.hex}/{partition.number}/{producer_id}"
