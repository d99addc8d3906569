"""Leaders: the Dafka producers inside the broker, each of which writes one Kafka partition.

Dafka gives each producer a partition of its own, and Kafka promises numbered partitions that all producers
share. A leader joins the two: it takes whole record batches, gives them their offsets, has them
appended, and only after the commit are they published to the mesh and their clients answered: append,
commit, publish. No reader sees a record that a crash can take back.

Offsets are given when the writer puts a round together, so all batches that have come for a partition until
then share a round. A round that could not be written needs no undoing: the end of the log has not moved, and
the next round begins there.

The sequences of idempotent producers and the transactions of transactional ones are checked at the same
moment (:mod:`dafka.broker.records.producer_state`), and their new state is written in the same transaction.

Unlike a mesh producer a leader has no state of its own and retains nothing. Its address is in the table of
topics, its position is the end of its partition in the log, and the broker's store answers every FETCH and
GET-HEADS for it.
"""

from __future__ import annotations

from collections.abc import Callable

from kafka.errors import KafkaStorageError, UnknownTopicOrPartitionError

from dafka.broker.interface.records import NO_OFFSET, Produced
from dafka.broker.interface.transactions import Writes
from dafka.broker.records.append import PartitionAppend, Request
from dafka.broker.records.leader_epochs import LeaderEpochs
from dafka.broker.records.pending import PendingAppends
from dafka.broker.records.presence import Presence
from dafka.broker.records.producer_state import ProducerStates, RefusedBatchError, Staging
from dafka.broker.topics.epoch_history import EpochHistory
from dafka.broker.topics.table import Partition
from dafka.commit.rows import Rows
from dafka.commit.writer import Numbered, Writer
from dafka.log.repeating import bounded_logger
from dafka.protocol.batch import BatchHeader, number_batch, with_offset
from dafka.protocol.batch_control import encode_marker
from dafka.protocol.errors import DafkaError

log = bounded_logger(__name__)

MARKER_BYTES = 80


class TopicDeletedError(DafkaError):
    """A topic was deleted while batches for it waited for their round."""


class Leaders:
    """All leaders of a broker: appends batches, and publishes them after the commit.

    ``pending`` counts each append until its commit. ``check_write(partition, header, request)``
    raises RefusedBatchError for what no open transaction allows.
    """

    def __init__(
        self,
        writer: Writer,
        presence: Presence,
        producers: ProducerStates,
        epochs: LeaderEpochs,
        check_write: Callable[[Partition, BatchHeader, Request], None],
        pending: PendingAppends,
        clock: Callable[[], float],
    ) -> None:
        self._writer = writer
        self._presence = presence
        self._producers = producers
        self._epochs = epochs
        self._check_write = check_write
        self._pending = pending
        self._clock = clock

    def append(self, partition: Partition, append: PartitionAppend) -> None:
        """Append the batches; their request is answered after the commit.

        A batch of an idempotent producer that was appended before is not appended again.
        """
        self._pending.add(append.size)
        key = (partition.topic.name, partition.number)
        epoch = self._epochs.current
        base_offsets: list[int] = []
        producer_ids = {header.producer_id for header in append.headers if header.producer_id >= 0}
        staging = self._producers.expect(partition, producer_ids) if producer_ids else None

        timestamp, log_start = append.timestamp, NO_OFFSET

        def fill(numbered: list[bytes], offset: int) -> int:
            nonlocal timestamp, log_start
            for position, (content, span) in enumerate(zip(append.batches, append.spans, strict=True)):
                known = None
                if staging is not None and append.headers[position].producer_id >= 0:
                    header = append.headers[position]
                    adding = append.request.writes is Writes.ADDING
                    last = max(header.base_timestamp, header.max_timestamp)
                    last = append.timestamp if append.timestamp >= 0 else last
                    try:
                        self._check_write(partition, header, append.request)
                        log_start = partition.log_start  # as in Kafka, which looks at the partition only now
                        known = staging.take(header, offset, last, adding)
                    except RefusedBatchError:
                        self._producers.refused(partition, header, adding)
                        raise
                    if known is not None:
                        self._producers.refused(partition, header, adding)
                    if known is not None and len(append.batches) == 1 and not append.request.trusted:
                        timestamp = last  # as in Kafka, whoever gives the times
                base_offsets.append(offset if known is None else known)
                if known is None:
                    numbered.append(number_batch(content, offset, epoch))
                    offset += span
            return offset

        def done(error: Exception | None) -> None:
            if error is None:
                produced = Produced(None, tuple(base_offsets), timestamp, partition.log_start)
            else:
                produced = _refused(key, error, log_start)
            append.request.answer(key, produced)
            self._pending.settle(append.size)

        self._append(partition, append.size, staging, fill, done)

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
        staging = self._producers.expect(partition, {producer_id})

        def fill(numbered: list[bytes], offset: int) -> int:
            check()
            now = int(self._clock() * 1000)
            marker = encode_marker(now, producer_id, epoch, commit=commit)
            numbered.append(with_offset(marker, offset, self._epochs.current))
            staging.end_transaction(producer_id, epoch, offset, now, commit)
            return offset + 1

        def written(error: Exception | None) -> None:
            done(None if partition.topic.deleted else error)

        self._append(partition, MARKER_BYTES, staging, fill, written, is_marker=True)

    def _append(
        self,
        partition: Partition,
        size: int,
        staging: Staging | None,
        fill: Callable[[list[bytes], int], int],
        done: Callable[[Exception | None], None],
        is_marker: bool = False,
    ) -> None:
        """Append what ``fill`` numbers, publish it after the commit of the round, and call ``done``.

        ``fill(numbered, offset)`` is called when the round is put together. It adds the batches, numbered
        from ``offset`` on, and returns the offset behind them; nothing is appended if it raises. ``staging``
        has the producers whose state changes in the same transaction.
        """
        numbered: list[bytes] = []
        rows: Rows = {}
        first = records = 0
        history: EpochHistory | None = None

        def number(sequence: int, offset: int) -> Numbered:
            nonlocal first, records, history
            if partition.topic.deleted:
                raise TopicDeletedError(f"topic {partition.topic.name!r} was deleted")
            end = fill(numbered, offset)
            partition.begun = True
            first = sequence
            records = 0 if is_marker else end - offset
            if staging is not None:
                rows.update(staging.keep())
            history = self._epochs.begin(partition, rows)
            return Numbered(sequence, numbered, end)

        def written(error: Exception | None) -> None:
            if staging is not None:
                staging.settle(error is None)
            if error is None:
                partition.epochs = history or partition.epochs
                if numbered:
                    self._publish(partition, first, numbered, records)
            done(error)

        self._writer.append_numbered(partition.stored, number, size, written, rows)

    def _publish(self, partition: Partition, first: int, contents: list[bytes], records: int) -> None:
        try:
            self._presence.publish_committed(partition, first, contents, records)
        except Exception:  # the client's records are safe, whatever happened to the mesh
            log.exception("publishing %d batches of %r failed", len(contents), partition.topic.name)


def _refused(key: tuple[str, int], error: Exception, log_start: int) -> Produced:
    if isinstance(error, RefusedBatchError):
        return Produced(error.error, log_start_offset=log_start, detail=str(error))
    if isinstance(error, TopicDeletedError):
        return Produced(UnknownTopicOrPartitionError, detail=str(error))
    log.error("record batches for %s were not stored: %s", key, error)
    return Produced(KafkaStorageError, detail=str(error))
