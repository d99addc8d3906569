"""Acquired records of a share group, and which acknowledgements they have."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import namedtuple
from collections.abc import Mapping
from typing import Any, NamedTuple

from kafka.consumer.fetcher import ConsumerRecord
from kafka.errors import CorruptRecordError, UnsupportedCodecError
from kafka.structs import TopicPartition

from compat.kafka.consumer._records import rows_of
from dafka.broker.interface.share import Acknowledged, AcknowledgeType, SharedRecords
from dafka.protocol.batch import BatchError, BatchHeader, read_header
from dafka.protocol.batch_reader import Columns, decode_batch

KEPT = 64 * 1024 * 1024  # octets of decoded batches that are kept, besides one of any size
RECORD, HEADER = 250, 150  # octets that a record and a header take in memory, about, without their contents

_FIELDS = [*ConsumerRecord._fields, "delivery_count"]
ShareRecord: Any = namedtuple("ShareRecord", _FIELDS)  # type: ignore[misc]
ShareRecord.__doc__ = (
    """The fields of a ConsumerRecord, and how often it was delivered, this time included."""
)


_record: Any = ShareRecord._make


class Taken:
    """The result of a fetch from one partition: ``records``, and at once acknowledged ``others``.

    Those are offsets without a record (GAP), records that this member cannot read (RELEASE), and damaged
    ones (REJECT); ``error`` is about the first of the latter two.
    """

    def __init__(self) -> None:
        self.records: list[Any] = []
        self.others: dict[int, int] = {}
        self.error: Exception | None = None

    @classmethod
    def of_nobody(cls, fetched: SharedRecords) -> Taken:
        """All of it given back: its topic is not subscribed to any more."""
        taken = cls()
        for first, last, _ in fetched.acquired:
            taken.others.update(dict.fromkeys(range(first, last + 1), AcknowledgeType.RELEASE))
        return taken


class _Decoded(NamedTuple):
    content: bytes
    columns: Columns
    size: int  # octets, about


class Reader:
    """Reads fetched batches; one of which a member acquires a part at a time is decoded once."""

    def __init__(self, deserialize: Any) -> None:
        """With a function ``(topic, headers, key, value)`` that gives key and value."""
        self._deserialize = deserialize
        self._kept: dict[TopicPartition, _Decoded] = {}  # by partition, what was kept first in front

    def take(self, partition: TopicPartition, fetched: SharedRecords) -> Taken:
        """The acquired records of a partition."""
        taken = Taken()
        missing: dict[int, int] = {}  # the acquired offsets, and how often each was delivered
        for first, last, deliveries in fetched.acquired:
            missing.update(dict.fromkeys(range(first, last + 1), deliveries))
        offsets = list(missing)
        for content in fetched.batches:
            header = read_header(content)
            low = bisect_left(offsets, header.base_offset)
            high = bisect_right(offsets, header.next_offset - 1)
            if header.is_control or low == high:
                continue
            try:
                columns = self._decode(partition, content, offsets[high - 1] < header.next_offset - 1)
            except BatchError as error:
                is_damaged = error.cause != "codec"  # otherwise another member may be able to read it
                taken.error = taken.error or _error_of(partition, header, error)
                for offset in offsets[low:high]:
                    missing.pop(offset, None)
                    taken.others[offset] = AcknowledgeType.REJECT if is_damaged else AcknowledgeType.RELEASE
                continue
            part = columns.part(
                bisect_left(columns.offsets, offsets[low]), bisect_right(columns.offsets, offsets[high - 1])
            )
            for row in rows_of(partition, header, part):
                if row.offset not in missing:
                    continue
                deliveries = missing.pop(row.offset)
                try:
                    key, value = self._deserialize(partition.topic, row.headers, row.key, row.value)
                except Exception as error:
                    taken.error = taken.error or error
                    taken.others[row.offset] = AcknowledgeType.RELEASE
                    continue
                # With headers of its own: from a batch that is kept it may come again.
                whole = row._replace(key=key, value=value, headers=list(row.headers))
                taken.records.append(_record((*whole, deliveries)))
        taken.others.update(dict.fromkeys(missing, AcknowledgeType.GAP))
        return taken

    def _decode(self, partition: TopicPartition, content: bytes, is_part: bool) -> Columns:
        """The records of a batch, which are kept if only a part of them ``is_part`` of the fetch."""
        content = bytes(content)
        kept = self._kept.pop(partition, None)
        if kept is None or kept.content != content:
            columns = decode_batch(content)
            kept = _Decoded(content, columns, len(content) + _size_of(columns) if is_part else 0)
        if is_part:
            self._kept[partition] = kept
            size = sum(one.size for one in self._kept.values())
            while size > KEPT and len(self._kept) > 1:
                size -= self._kept.pop(next(iter(self._kept))).size
        return kept.columns


def _size_of(columns: Columns) -> int:
    octets = sum([len(one or b"") for column in (columns.keys, columns.values) for one in column])
    headers = sum(
        [len(name) + len(value or b"") + HEADER for some in columns.headers for name, value in some]
    )
    return octets + headers + RECORD * len(columns.offsets)


def _error_of(partition: TopicPartition, header: BatchHeader, error: BatchError) -> Exception:
    what = f"Record batch for partition {partition} at offset {header.base_offset}"
    if error.cause == "codec":
        return UnsupportedCodecError(f"{what} cannot be read: {error}")
    return CorruptRecordError(f"{what} failed: {error}")


def deserializer_of(for_key: Any, for_value: Any) -> Any:
    """A function ``(topic, headers, key, value)`` that gives key and value as these deserializers read them:
    functions, kafka-python's objects, or None for octets."""

    def read(deserializer: Any, topic: str, headers: Any, octets: Any) -> Any:
        if deserializer is None:
            return octets
        if hasattr(deserializer, "deserialize"):
            return deserializer.deserialize(topic, headers, octets)
        return deserializer(octets)

    def deserialize(topic: str, headers: Any, key: Any, value: Any) -> tuple[Any, Any]:
        return read(for_key, topic, headers, key), read(for_value, topic, headers, value)

    return deserialize


def batches_of(types: Mapping[int, int]) -> list[Acknowledged]:
    """Acknowledgements by offset as a request has them."""
    batches: list[Acknowledged] = []
    run: list[int] = []
    begin = 0
    for offset in sorted(types):
        if run and begin + len(run) == offset:
            run.append(types[offset])
            continue
        if run:
            batches.append(_batch(begin, run))
        begin, run = offset, [types[offset]]
    return [*batches, _batch(begin, run)] if run else batches


def _batch(begin: int, types: list[int]) -> Acknowledged:
    last = begin + len(types) - 1
    return Acknowledged(begin, last, types[:1] if len(set(types)) == 1 else types)
