"""Writing Arrow batches to topics, in a task of Spark.

Rows go to partitions as Kafka's clients send them: where the column ``partition`` says, else by key, else to
the partitions in turn. The rows of one partition keep their order. While the broker commits what one Arrow
batch brought, the next one is encoded.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from kafka.errors import IncompatibleBrokerVersion

from dafka.broker.interface.broker import Produced
from dafka.broker.interface.transactions import NO_EPOCH, NO_PRODUCER_ID, ProducerIdentity
from dafka.protocol.batch import SEQUENCES, with_producer
from dafka.protocol.batch_writer import RECORD_OVERHEAD, Headers, encode_columns
from dafka.spark.cluster import Cluster, reason
from dafka.spark.errors import ColumnError, UnknownTopicError, WriteError
from dafka.spark.option_values import TopicPartition
from dafka.spark.options import WriteOptions
from dafka.spark.partitioning import by_key, in_turn

Numbers = npt.NDArray[np.int64]

RECORDS = 16_384  # in one record batch, at most
_ANONYMOUS = ProducerIdentity(None, NO_PRODUCER_ID, NO_EPOCH)


class RecordWriter:
    """Writes the rows of one task. ``with`` it; :meth:`write` as often as wanted; :meth:`flush` at the end.

    ``identity`` and ``transactional_id`` are those of a transaction that the caller begins and ends; without
    them the writer asks for a producer id, so that the broker recognises batches that it is sent twice.
    """

    def __init__(
        self,
        cluster: Cluster,
        options: WriteOptions,
        identity: ProducerIdentity | None = None,
        transactional_id: str | None = None,
    ) -> None:
        self._cluster = cluster
        self._options = options
        self._identity = identity
        self._transactional_id = transactional_id
        self._numbers: dict[str, list[int]] = {}
        self._sequences: dict[TopicPartition, int] = {}
        self._written: set[TopicPartition] = set()
        self._turn = in_turn(random.randrange(1 << 16))
        self._pool = ThreadPoolExecutor(1, "dafka-produce")
        self._sending: Future[dict[TopicPartition, Produced]] | None = None
        self.records = 0

    def __enter__(self) -> RecordWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown(cancel_futures=True)

    @property
    def places(self) -> set[TopicPartition]:
        """The partitions written to."""
        return self._written

    def write(self, rows: pa.RecordBatch) -> None:
        """Write rows. Errors of earlier rows may be raised here, too.

        Raises ColumnError (a null in a column that does not allow it, no such partition), UnknownTopicError,
        UnreachableError, WriteError.
        """
        if not rows.num_rows:
            return
        batches: dict[TopicPartition, list[bytes]] = {}
        for topic, part in self._by_topic(rows):
            self._encode(topic, part, batches)
        self._begin(batches)
        self._settle()
        options = self._options
        self._sending = self._pool.submit(
            self._cluster.produce, batches, options.acks, self._transactional_id
        )
        self.records += rows.num_rows

    def flush(self) -> None:
        """Return when everything is committed. Raises as :meth:`write`."""
        self._settle()

    # -- rows -----------------------------------------------------------------------------------

    def _by_topic(self, rows: pa.RecordBatch) -> Iterable[tuple[str, pa.RecordBatch]]:
        if self._options.topic is not None:
            return [(self._options.topic, rows)]
        topics = rows.column("topic")
        if topics.null_count:
            raise ColumnError("column topic is null in a row, and no option topic says where it goes")
        names = pc.unique(topics).to_pylist()
        if len(names) == 1:
            return [(names[0], rows)]
        return [(name, rows.filter(pc.equal(topics, name))) for name in names]

    def _encode(self, topic: str, rows: pa.RecordBatch, batches: dict[TopicPartition, list[bytes]]) -> None:
        keys, values = _binary(rows, "key"), _binary(rows, "value")
        stamps = self._timestamps(rows)
        headers = _headers(rows)
        sizes = _lengths(keys) + _lengths(values) + RECORD_OVERHEAD
        if headers is not None:
            sizes += np.array(
                [sum(len(name) + len(value or b"") + 10 for name, value in some) for some in headers]
            )
        places = self._places(topic, keys, rows)
        order = np.argsort(places, kind="stable")
        cuts = np.flatnonzero(np.diff(places[order])) + 1
        for indices in np.split(order, cuts):
            place = (topic, int(places[indices[0]]))
            whole = len(indices) == len(places)
            mine = pa.array(indices)
            part_keys = (keys if whole else keys.take(mine)).to_pylist()
            part_values = (values if whole else values.take(mine)).to_pylist()
            part_stamps = stamps[indices].tolist()
            part_headers: list[Headers] = (
                [()] * len(indices) if headers is None else [headers[at] for at in indices]
            )
            for begin, end in self._cut(sizes[indices]):
                cut = slice(begin, end)
                batches.setdefault(place, []).append(
                    self._batch(place, part_stamps[cut], part_keys[cut], part_values[cut], part_headers[cut])
                )

    def _batch(
        self,
        place: TopicPartition,
        stamps: list[int],
        keys: list[bytes | None],
        values: list[bytes | None],
        headers: Sequence[Headers],
    ) -> bytes:
        identity = self._known_identity()
        sequence = -1
        if identity.producer_id != NO_PRODUCER_ID:
            sequence = self._sequences.get(place, 0)
            self._sequences[place] = (sequence + len(stamps)) % SEQUENCES
        batch = encode_columns(stamps, keys, values, headers, compression=self._options.compression)
        transactional = self._transactional_id is not None
        return with_producer(
            batch, identity.producer_id, identity.epoch, sequence, transactional=transactional
        )

    def _cut(self, sizes: Numbers) -> list[tuple[int, int]]:
        """Where record batches begin and end."""
        reached = np.cumsum(sizes)
        cuts, begin, before = [], 0, 0
        while begin < len(sizes):
            end = int(np.searchsorted(reached, before + self._options.batch_bytes, side="right"))
            end = min(max(end, begin + 1), begin + RECORDS, len(sizes))
            cuts.append((begin, end))
            begin, before = end, int(reached[end - 1])
        return cuts

    def _places(self, topic: str, keys: pa.BinaryArray, rows: pa.RecordBatch) -> Numbers:
        """The number of each row's partition."""
        numbers = self._writable(topic)
        places = np.full(rows.num_rows, -1, np.int64)
        if "partition" in rows.schema.names:
            column = rows.column("partition")
            places = np.asarray(column.fill_null(-1)).astype(np.int64)
            given = places[~column.is_null().to_numpy(zero_copy_only=False)]
            if unknown := set(np.unique(given).tolist()).difference(numbers):
                raise ColumnError(
                    f"column partition is {min(unknown)} in a row, and topic {topic!r} has the partitions "
                    f"{numbers[0]} to {numbers[-1]}"
                )
        free = places < 0
        if free.any() and keys.null_count < len(keys):
            chosen = by_key(keys, len(numbers))
            places[free] = np.where(chosen[free] < 0, -1, np.array(numbers)[chosen[free]])
            free = places < 0
        places[free] = numbers[next(self._turn) % len(numbers)]
        return places

    def _writable(self, topic: str) -> list[int]:
        numbers = self._numbers.get(topic)
        if numbers is None:
            found = self._cluster.metadata([topic], create=True).topics[topic]
            if found.error is not None:
                raise UnknownTopicError(
                    f"topic {topic!r} at {self._cluster.access.servers}: {reason(found.error)}"
                )
            numbers = [partition.number for partition in found.partitions if partition.writable]
            self._numbers[topic] = numbers
        if not numbers:
            raise UnknownTopicError(f"topic {topic!r} has no partition that can be written to")
        return numbers

    def _timestamps(self, rows: pa.RecordBatch) -> Numbers:
        now = int(time.time() * 1000)
        if not self._options.include_timestamp:
            return np.full(rows.num_rows, now, np.int64)
        stamps = rows.column("timestamp").cast(pa.timestamp("ms", tz="UTC"), safe=False).cast(pa.int64())
        return np.asarray(stamps.fill_null(now)).astype(np.int64)

    # -- the broker -----------------------------------------------------------------------------

    def _known_identity(self) -> ProducerIdentity:
        if self._identity is None:
            self._identity = _ANONYMOUS
            if self._options.acks == -1:
                try:
                    given: ProducerIdentity = self._cluster.settled(
                        "init_producer_id", None, 60.0, errors=lambda answer: [answer.error]
                    )
                except IncompatibleBrokerVersion:
                    return self._identity
                if given.error is not None:
                    raise WriteError(f"the broker gives no producer id: {reason(given.error)}")
                self._identity = given
        return self._identity

    def _begin(self, batches: Iterable[TopicPartition]) -> None:
        """Tell the transaction about partitions that it has not written to before."""
        added = set(batches) - self._written
        self._written |= added
        if self._transactional_id is None or not added:
            return
        identity = self._known_identity()
        answer: dict[TopicPartition, Any] = self._cluster.settled(
            "add_partitions_to_transaction",
            self._transactional_id,
            identity.producer_id,
            identity.epoch,
            sorted(added),
            errors=lambda answer: answer.values(),
        )
        for place, error in answer.items():
            if error is not None:
                raise WriteError(f"transaction {self._transactional_id}: {_where(place)}: {reason(error)}")

    def _settle(self) -> None:
        if self._sending is None:
            return
        outcome, self._sending = self._sending.result(), None
        for place, produced in outcome.items():
            if produced.error is not None:
                detail = f" ({produced.detail})" if produced.detail else ""
                raise WriteError(f"{_where(place)} took no records: {reason(produced.error)}{detail}")


def _where(place: TopicPartition) -> str:
    return f"partition {place[1]} of topic {place[0]!r}"


def _binary(rows: pa.RecordBatch, name: str) -> pa.BinaryArray:
    if name not in rows.schema.names:
        return pa.nulls(rows.num_rows, pa.binary())
    return rows.column(name).cast(pa.binary())


def _lengths(column: pa.BinaryArray) -> Numbers:
    return np.asarray(pc.binary_length(column).fill_null(0)).astype(np.int64)


def _headers(rows: pa.RecordBatch) -> list[Headers] | None:
    """The headers of each row; None if no row has any."""
    if "headers" not in rows.schema.names:
        return None
    column = rows.column("headers")
    if column.null_count == len(column):
        return None
    found: list[Headers] = []
    for headers in column.to_pylist():
        some = [] if headers is None else [_header(header) for header in headers]
        found.append(some)
    return found


def _header(header: dict[str, Any] | None) -> tuple[str, bytes | None]:
    if header is None or header["key"] is None:
        raise ColumnError("column headers holds a header whose key is null")
    return header["key"], header["value"]
