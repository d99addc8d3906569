"""Reading a range of offsets as Arrow batches, in a task of Spark.

Batches are fetched ahead in a thread of their own while the ones before are decoded. A range ends at its
end offset; offsets in it that have no record (compaction, transaction markers) are passed over. Records that
are gone are reported as ``failOnDataLoss`` says, and never left out in silence.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
from kafka.errors import KafkaError, OffsetOutOfRangeError, UnknownTopicOrPartitionError

from dafka.broker.interface.broker import Fetched
from dafka.protocol.aborted import AbortedTransactions
from dafka.protocol.batch import read_header
from dafka.spark.cluster import Cluster, reason
from dafka.spark.columns import RecordColumns, read_columns
from dafka.spark.errors import ReadError
from dafka.spark.planning import report_loss
from dafka.spark.ranges import OffsetRange

ROWS = 64 * 1024  # in one Arrow batch, about
OCTETS = 32 * 1024 * 1024  # of keys and values in one, about
_EMPTY_FETCHES = 3  # empty answers below the end before the range is given up

_HEADER = pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())])
ARROW_FIELDS = {
    "key": pa.binary(),
    "value": pa.binary(),
    "topic": pa.string(),
    "partition": pa.int32(),
    "offset": pa.int64(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "timestampType": pa.int32(),
    "headers": pa.list_(pa.field("element", _HEADER)),
}


class RangeReader:
    """Reads ranges of offsets.

    Args:
        columns: names of ARROW_FIELDS, in the order wanted.
        min_timestamp: whole batches whose records are all older (ms) are passed over unread.
    """

    def __init__(
        self,
        cluster: Cluster,
        columns: Sequence[str],
        *,
        fail_on_data_loss: bool = True,
        read_committed: bool = False,
        fetch_bytes: int = 8 * 1024 * 1024,
        min_timestamp: int | None = None,
    ) -> None:
        self._cluster = cluster
        self._schema = pa.schema([(name, ARROW_FIELDS[name]) for name in columns])
        self._fail = fail_on_data_loss
        self._read_committed = read_committed
        self._fetch_bytes = fetch_bytes
        self._min_timestamp = min_timestamp

    def read(self, offsets: OffsetRange) -> Iterator[pa.RecordBatch]:
        """The records of the range, in order.

        Raises DataLossError, ReadError, UnreachableError, BatchError.
        """
        rows = _Rows(offsets, self._schema)
        with ThreadPoolExecutor(1, "dafka-fetch") as pool:
            for batch, first in self._batches(pool, offsets):
                columns = read_columns(batch, first, offsets.end, rows.with_headers)
                if columns is not None:
                    rows.add(columns)
                    if rows.count >= ROWS or rows.octets >= OCTETS:
                        yield rows.take()
        if rows.count:
            yield rows.take()

    def _batches(self, pool: ThreadPoolExecutor, offsets: OffsetRange) -> Iterator[tuple[bytes, int]]:
        """The batches with records of the range that are to be read, and the first offset wanted of each."""
        place = (offsets.topic, offsets.partition)
        position, end = offsets.start, offsets.end
        size, committed = self._fetch_bytes, self._read_committed
        ahead = self._cluster.fetch_ahead(pool, place, position, size, committed) if position < end else None
        empty = 0
        aborted = AbortedTransactions()
        while ahead is not None:
            fetched = ahead.result()
            ahead, first = None, position
            if fetched.error is not None:
                position = self._after_error(offsets, position, fetched)
            elif fetched.batches:
                empty = 0
                position = read_header(fetched.batches[-1]).next_offset
            else:
                empty += 1
                if empty >= _EMPTY_FETCHES:
                    why = f"the broker has nothing there (its high watermark is {fetched.high_watermark})"
                    report_loss(place, position, end, why, self._fail)
                    return
            if position < end:
                ahead = self._cluster.fetch_ahead(pool, place, position, size, committed)
            yield from ((batch, first) for batch in self._to_read(fetched, offsets, aborted))

    def _to_read(
        self, fetched: Fetched, offsets: OffsetRange, aborted: AbortedTransactions
    ) -> Iterator[bytes]:
        if self._read_committed:
            aborted.learn(fetched.aborted)
        for batch in fetched.batches:
            header = read_header(batch)
            if header.base_offset >= offsets.end:
                return
            if (header.is_control or header.is_transactional) and aborted.skips(header, batch):
                continue
            if self._min_timestamp is not None and header.max_timestamp < self._min_timestamp:
                continue
            yield batch

    def _after_error(self, offsets: OffsetRange, position: int, fetched: Fetched) -> int:
        """Where to go on after an error that lasts; raises unless records may be missing."""
        place = (offsets.topic, offsets.partition)
        error: type[KafkaError] | None = fetched.error
        assert error is not None
        if issubclass(error, OffsetOutOfRangeError):
            begin = fetched.log_start_offset
            if begin > position:
                report_loss(
                    place, position, min(begin, offsets.end), "these records were deleted", self._fail
                )
                return begin
            why = f"the partition ends at {fetched.high_watermark}"
        elif issubclass(error, UnknownTopicOrPartitionError):
            why = "the partition does not exist any more"
        else:
            raise ReadError(
                f"partition {offsets.partition} of topic {offsets.topic!r} cannot be read at offset "
                f"{position}: "
                f"{reason(error)}"
            )
        report_loss(place, position, offsets.end, why, self._fail)
        return offsets.end


class _Rows:
    """The columns of the next Arrow batch."""

    def __init__(self, offsets: OffsetRange, schema: pa.Schema) -> None:
        self._topic, self._partition = offsets.topic, offsets.partition
        self._schema = schema
        self._parts: list[RecordColumns] = []
        self.with_headers = "headers" in schema.names
        self.count = 0
        self.octets = 0

    def add(self, columns: RecordColumns) -> None:
        self._parts.append(columns)
        self.count += len(columns.offsets)
        self.octets += columns.keys.nbytes + columns.values.nbytes

    def take(self) -> pa.RecordBatch:
        """Return the added rows as one Arrow batch, and start the next one."""
        arrays = [self._array(name) for name in self._schema.names]
        self._parts, self.count, self.octets = [], 0, 0
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)

    def _array(self, name: str) -> pa.Array:
        parts = self._parts
        if name == "key":
            return pa.concat_arrays([part.keys for part in parts])
        if name == "value":
            return pa.concat_arrays([part.values for part in parts])
        if name == "topic":
            return pa.repeat(pa.scalar(self._topic, pa.string()), self.count)
        if name == "partition":
            return pa.repeat(pa.scalar(self._partition, pa.int32()), self.count)
        if name == "offset":
            return pa.concat_arrays([pa.array(part.offsets) for part in parts])
        if name == "timestamp":
            stamps = pa.concat_arrays([pa.array(part.timestamps * 1000) for part in parts])
            return stamps.cast(ARROW_FIELDS["timestamp"])
        if name == "timestampType":
            kinds = [
                pa.repeat(pa.scalar(part.timestamp_type, pa.int32()), len(part.offsets)) for part in parts
            ]
            return pa.concat_arrays(kinds)
        return pa.concat_arrays([_headers(part) for part in parts])


def _headers(part: RecordColumns) -> pa.Array:
    kind = ARROW_FIELDS["headers"]
    if part.headers is None:
        return pa.nulls(len(part.offsets), kind)
    rows = [
        None if headers is None else [{"key": name, "value": value} for name, value in headers]
        for headers in part.headers
    ]
    return pa.array(rows, kind)
