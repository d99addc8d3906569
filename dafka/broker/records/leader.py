"""Leaders: the Dafka producers inside the broker, each of which writes one Kafka partition.

Dafka gives each producer a partition of its own, and Kafka promises numbered partitions that all producers
share. A leader joins the two: it takes whole record batches, gives them their offsets, has them
appended, and only after the commit are they published to the mesh and their clients answered: append,
commit, publish. Nothing is seen outside that a crash can take back.

Numbers are given when the writer puts a round together, so all that has come for a partition until then
shares a round, and a round that could not be written needs no undoing: the log still ends where it ended,
and the next round begins there.

The sequences of idempotent producers and the transactions of transactional ones are checked at the same
moment (:mod:`dafka.broker.records.producer_state`), and what becomes of them is written in the same
transaction.

Unlike a mesh producer a leader has no state of its own and retains nothing. Its address is in the table of
topics, its position is the end of its partition in the log, and the broker's store answers every FETCH and
GET-HEADS for it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import gevent.event
from kafka.errors import (
    CorruptRecordError,
    InvalidRecordError,
    KafkaStorageError,
    MessageSizeTooLargeError,
    UnknownTopicOrPartitionError,
)

from dafka.broker.interface.broker import Produced
from dafka.broker.limits import BATCH_MAX_BYTES
from dafka.broker.records.leader_epochs import LeaderEpochs
from dafka.broker.records.pending import PendingAppends
from dafka.broker.records.presence import Presence
from dafka.broker.records.producer_state import ProducerStates, RefusedBatchError
from dafka.broker.topics.epoch_history import EpochHistory
from dafka.broker.topics.table import Partition
from dafka.commit.rows import Rows
from dafka.commit.writer import Numbered, Writer
from dafka.log.repeating import bounded_logger
from dafka.protocol.batch import BatchError, BatchHeader, check_batch, with_offset
from dafka.protocol.batch_control import encode_marker
from dafka.protocol.batch_walk import check_count
from dafka.protocol.errors import DafkaError

log = bounded_logger(__name__)

MARKER_BYTES = 80

_DAMAGED = frozenset(("short", "length", "crc"))


class TopicDeletedError(DafkaError):
    """A topic was deleted while batches for it waited for their round."""


class Share:
    """What one produce call has for one partition: checked batches, and how many offsets each takes.

    ``headers`` are there if an idempotent producer takes part.
    """

    __slots__ = ("batches", "headers", "request", "size", "spans", "timestamp")

    def __init__(self, batches: Sequence[bytes], spans: list[int], size: int, request: Request) -> None:
        self.batches = batches
        self.spans = spans
        self.size = size
        self.request = request
        self.headers: list[BatchHeader] | None = None
        self.timestamp = -1  # what the broker gave all records (LogAppendTime)


class Request:
    """One produce call: its answers, and a green thread that may wait for them."""

    __slots__ = ("answers", "left", "ready", "transactional_id")

    def __init__(self, transactional_id: str | None = None) -> None:
        self.transactional_id = transactional_id
        self.answers: dict[tuple[str, int], Produced] = {}
        self.left = 0
        self.ready = gevent.event.Event()

    def answer(self, key: tuple[str, int], produced: Produced) -> None:
        """Answer for a partition that :attr:`left` counts."""
        self.answers[key] = produced
        self.left -= 1
        if not self.left:
            self.ready.set()


def check_batches(batches: Sequence[bytes], request: Request) -> Share | Produced:
    """The share that ``batches`` make, or what is wrong with them."""
    spans = []
    headers = []
    idempotent = False
    size = 0
    for content in batches:
        if len(content) > BATCH_MAX_BYTES:
            return Produced(
                MessageSizeTooLargeError,
                detail=f"a record batch of {len(content)} bytes, at most {BATCH_MAX_BYTES} are taken",
            )
        try:
            header = check_batch(content)
            check_count(header)
        except BatchError as error:
            damaged = error.cause in _DAMAGED
            return Produced(CorruptRecordError if damaged else InvalidRecordError, detail=str(error))
        span = header.last_offset_delta + 1
        if header.count != span or header.is_control:
            what = "a control batch" if header.is_control else f"{header.count} records on {span} offsets"
            return Produced(InvalidRecordError, detail=f"{what}: clients do not write that")
        if header.producer_id >= 0:
            idempotent = True
        elif header.is_transactional:
            return Produced(InvalidRecordError, detail="a transactional batch without a producer id")
        spans.append(span)
        headers.append(header)
        size += len(content)
    if not spans:
        return Produced(InvalidRecordError, detail="no record batch")
    share = Share(batches, spans, size, request)
    if idempotent:
        share.headers = headers
    return share


class Leaders:
    """All leaders of a broker: appends what is produced and publishes what is committed.

    ``pending`` counts each share until its commit. ``check_write(partition, header, transactional id)``
    raises RefusedBatchError for what no open transaction allows.
    """

    def __init__(
        self,
        writer: Writer,
        presence: Presence,
        producers: ProducerStates,
        epochs: LeaderEpochs,
        check_write: Callable[[Partition, BatchHeader, str | None], None],
        pending: PendingAppends,
    ) -> None:
        self._writer = writer
        self._presence = presence
        self._producers = producers
        self._epochs = epochs
        self._check_write = check_write
        self._pending = pending

    def append(self, partition: Partition, share: Share) -> None:
        """Take a share; its request is answered after the commit."""
        self._pending.add(share.size)
        if share.headers is not None:
            self._append_once(partition, share, share.headers)
            return
        numbered: list[bytes] = []
        key = (partition.topic.name, partition.number)
        first = base = 0
        rows: Rows = {}
        history: EpochHistory | None = None
        epoch = self._epochs.current

        def number(sequence: int, offset: int) -> Numbered:
            nonlocal first, base, history
            if partition.topic.deleted:
                raise TopicDeletedError(f"topic {key[0]!r} was deleted")
            partition.begun = True
            history = self._epochs.begin(partition, rows)
            first, base = sequence, offset
            for content, span in zip(share.batches, share.spans, strict=True):
                numbered.append(with_offset(content, offset, epoch))
                offset += span
            return Numbered(sequence, numbered, offset)

        def done(error: Exception | None) -> None:
            if error is None:
                partition.epochs = history or partition.epochs
                self._publish(partition, first, numbered, sum(share.spans))
                produced = Produced(None, base, share.timestamp, partition.log_start)
            else:
                produced = _refused(key, error)
            share.request.answer(key, produced)
            self._pending.settle(share.size)

        self._writer.append_numbered(partition.stored, number, share.size, done, rows)

    def _append_once(self, partition: Partition, share: Share, headers: list[BatchHeader]) -> None:
        """:meth:`append` for batches of idempotent producers: what is there already is not appended again."""
        numbered: list[bytes] = []
        bases: list[int] = []
        rows: Rows = {}
        key = (partition.topic.name, partition.number)
        first = records = 0
        history: EpochHistory | None = None
        epoch = self._epochs.current
        staging = self._producers.expect(
            partition, {header.producer_id for header in headers if header.producer_id >= 0}
        )

        def number(sequence: int, offset: int) -> Numbered:
            nonlocal first, records, history
            if partition.topic.deleted:
                raise TopicDeletedError(f"topic {key[0]!r} was deleted")
            partition.begun = True
            first = sequence
            for content, header in zip(share.batches, headers, strict=True):
                known = None
                if header.producer_id >= 0:
                    self._check_write(partition, header, share.request.transactional_id)
                    known = staging.take(header, offset)
                bases.append(offset if known is None else known)
                if known is None:
                    numbered.append(with_offset(content, offset, epoch))
                    offset += header.count
                    records += header.count
            rows.update(staging.keep())
            history = self._epochs.begin(partition, rows)
            return Numbered(sequence, numbered, offset)

        def done(error: Exception | None) -> None:
            staging.settle(error is None)
            if error is None:
                partition.epochs = history or partition.epochs
                if numbered:
                    self._publish(partition, first, numbered, records)
                ends = [base + header.count for base, header in zip(bases, headers, strict=True)]
                apart = () if bases[1:] == ends[:-1] else tuple(bases)
                produced = Produced(None, bases[0], share.timestamp, partition.log_start, base_offsets=apart)
            else:
                produced = _refused(key, error)
            share.request.answer(key, produced)
            self._pending.settle(share.size)

        self._writer.append_numbered(partition.stored, number, share.size, done, rows)

    def end_transaction(
        self,
        partition: Partition,
        producer_id: int,
        epoch: int,
        commit: bool,
        done: Callable[[Exception | None], None],
        check: Callable[[], None],
    ) -> None:
        """Append the marker that ends a producer's transaction; ``done`` follows the commit of the round.

        ``check()`` is called when the round is put together; if it raises, no marker is written. A topic that
        was deleted has no transactions: that is a success.
        """
        numbered: list[bytes] = []
        rows: Rows = {}
        first = 0
        history: EpochHistory | None = None
        staging = self._producers.expect(partition, {producer_id})

        def number(sequence: int, offset: int) -> Numbered:
            nonlocal first, history
            if partition.topic.deleted:
                raise TopicDeletedError(f"topic {partition.topic.name!r} was deleted")
            check()
            partition.begun = True
            first = sequence
            marker = encode_marker(int(time.time() * 1000), producer_id, epoch, commit=commit)
            numbered.append(with_offset(marker, offset, self._epochs.current))
            staging.end_transaction(producer_id, epoch, offset, commit)
            rows.update(staging.keep())
            history = self._epochs.begin(partition, rows)
            return Numbered(sequence, numbered, offset + 1)

        def written(error: Exception | None) -> None:
            staging.settle(error is None)
            if error is None:
                partition.epochs = history or partition.epochs
                self._publish(partition, first, numbered, 0)
            done(None if partition.topic.deleted else error)

        self._writer.append_numbered(partition.stored, number, MARKER_BYTES, written, rows)

    def _publish(self, partition: Partition, first: int, contents: list[bytes], records: int) -> None:
        try:
            self._presence.publish_committed(partition, first, contents, records)
        except Exception:  # the client's records are safe, whatever happened to the mesh
            log.exception("publishing %d batches of %r failed", len(contents), partition.topic.name)


def _refused(key: tuple[str, int], error: Exception) -> Produced:
    if isinstance(error, RefusedBatchError):
        return Produced(error.error, detail=str(error))
    if isinstance(error, TopicDeletedError):
        return Produced(UnknownTopicOrPartitionError, detail=str(error))
    log.error("record batches for %s were not stored: %s", key, error)
    return Produced(KafkaStorageError, detail=str(error))
