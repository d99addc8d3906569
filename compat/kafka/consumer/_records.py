"""Fetched record batches -> ``ConsumerRecord``.

A partition's batches are kept as the bytes they arrived in (:class:`PartitionBuffer`) and decoded one at
a time, when a record of theirs is asked for. Everything is driven by the consumer's position: a buffer
hands out the records from a position on, as often as it is asked, and lets go of a batch only when the
position has passed it. So pausing, seeking within what was fetched, or stopping in the middle of a batch
needs no bookkeeping.

Rows are made of columns by ``map`` and ``zip`` alone, without a Python-level call for each record.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Sequence
from itertools import repeat
from typing import Any

from kafka.consumer.fetcher import ConsumerRecord
from kafka.errors import CorruptRecordError, UnsupportedCodecError
from kafka.serializer import DeserializeWrapper
from kafka.structs import TopicPartition

from dafka.protocol.aborted import AbortedTransactions
from dafka.protocol.batch import BatchError, BatchHeader, read_header
from dafka.protocol.batch_reader import Columns, decode_batch

NOTHING = Columns([], [], [], [], [])


class PartitionBuffer:
    """The fetched batches of one partition that are not consumed yet: offsets ``start`` up to ``end``."""

    def __init__(
        self,
        partition: TopicPartition,
        position: int,
        batches: Sequence[bytes],
        aborted: Sequence[tuple[int, int]] = (),
    ) -> None:
        """``batches`` follow each other; the first one holds ``position`` or what comes after it.

        ``aborted`` are (producer id, first offset) of aborted transactions, whose records are left out.
        """
        self.partition = partition
        self.start = position
        self.end = max(read_header(batches[-1]).next_offset, position)
        self._batches = deque(batches)
        self._aborted = AbortedTransactions(aborted)
        self._header: BatchHeader | None = None  # of the first batch, once it is decoded
        self._columns: Columns | None = None

    def take(
        self, position: int, limit: int, key_deserializer: Any, value_deserializer: Any
    ) -> tuple[list[ConsumerRecord], int]:
        """Up to ``limit`` records of one batch from ``position`` on, and the position behind them.

        No records: nothing is left, and the position is behind the buffer (or the position lies
        outside of the buffer and comes back as it was).

        Raises:
            CorruptRecordError: the batch at the position is damaged.
            UnsupportedCodecError: it is compressed with a codec whose library is not installed.
            Exception: raised by a deserializer for the record at the position.
        """
        if not self.start <= position <= self.end:
            self._batches.clear()
            return [], position
        while self._batches:
            columns = self._columns
            if columns is None:
                columns = self._decode()
            first = bisect_left(columns.offsets, position)
            if first < len(columns.offsets):
                last = min(first + limit, len(columns.offsets))
                rows = self._rows(first, last, key_deserializer, value_deserializer)
                return rows, rows[-1].offset + 1
            self.start = position = max(self._header.next_offset, position)  # type: ignore[union-attr]
            self._header = self._columns = None
            self._batches.popleft()
        return [], position

    def _decode(self) -> Columns:
        content = self._batches[0]
        try:
            header = read_header(content)
            special = header.is_control or header.is_transactional
            columns = NOTHING if special and self._aborted.skips(header, content) else decode_batch(content)
        except BatchError as error:
            if error.cause == "codec":
                raise UnsupportedCodecError(str(error)) from error
            raise CorruptRecordError(
                f"Record batch for partition {self.partition} at offset {self.start} failed: {error}"
            ) from error
        self._header, self._columns = header, columns
        return columns

    def _rows(
        self, first: int, last: int, key_deserializer: Any, value_deserializer: Any
    ) -> list[ConsumerRecord]:
        header, columns = self._header, self._columns
        assert header is not None and columns is not None
        if first or last < len(columns.offsets):
            columns = columns.part(first, last)
        if key_deserializer is None and value_deserializer is None:
            return _rows(self.partition, header, columns, columns.keys, columns.values)
        topic = self.partition.topic
        try:
            keys = _deserialize(key_deserializer, topic, columns.headers, columns.keys)
            values = _deserialize(value_deserializer, topic, columns.headers, columns.values)
        except Exception:
            # Records before the one that cannot be read are delivered; that record raises when it
            # is the first one.
            if last - first == 1:
                raise
            return self._rows(first, first + (last - first) // 2, key_deserializer, value_deserializer)
        return _rows(self.partition, header, columns, keys, values)


def _rows(
    partition: TopicPartition, header: BatchHeader, columns: Columns, keys: list[Any], values: list[Any]
) -> list[ConsumerRecord]:
    offsets, timestamps, raw_keys, raw_values, headers = columns
    fields = zip(
        repeat(partition.topic),
        repeat(partition.partition),
        repeat(header.leader_epoch),
        offsets,
        timestamps,
        repeat(header.timestamp_type),
        keys,
        values,
        headers,
        repeat(None),
        _sizes(raw_keys),
        _sizes(raw_values),
        _header_sizes(headers) if any(headers) else repeat(-1),
    )
    return list(map(tuple.__new__, repeat(ConsumerRecord), fields))


def rows_of(partition: TopicPartition, header: BatchHeader, columns: Columns) -> list[ConsumerRecord]:
    """All records of a batch, with keys and values as bytes."""
    return _rows(partition, header, columns, columns.keys, columns.values)


def _sizes(column: list[bytes | None]) -> Any:
    nones = column.count(None)
    if not nones:
        return map(len, column)  # type: ignore[arg-type]
    if nones == len(column):
        return repeat(-1)
    return [-1 if value is None else len(value) for value in column]


def _header_sizes(column: list[list[tuple[str, bytes | None]]]) -> list[int]:
    return [
        sum(len(name.encode()) + len(value or b"") for name, value in headers) if headers else -1
        for headers in column
    ]


def _deserialize(deserializer: Any, topic: str, headers: Any, column: list[bytes | None]) -> list[Any]:
    if deserializer is None:
        return column
    if type(deserializer) is DeserializeWrapper and deserializer.fn is not None:
        return list(map(deserializer.fn, column))
    try:
        return list(map(deserializer.deserialize, repeat(topic), headers, column))
    except TypeError as error:
        try:
            return list(map(deserializer.deserialize, repeat(topic), column))  # one for older versions
        except TypeError:
            raise error from None
