"""Acquired records of a share group, and which acknowledgements they have."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import namedtuple
from collections.abc import Mapping
from typing import Any

from kafka.consumer.fetcher import ConsumerRecord
from kafka.structs import TopicPartition

from compat.kafka.consumer._records import rows_of
from dafka.broker.interface.share import Acknowledged, AcknowledgeType, SharedRecords
from dafka.protocol.batch import BatchError, read_header
from dafka.protocol.batch_reader import decode_batch

_FIELDS = [*ConsumerRecord._fields, "delivery_count"]
ShareRecord: Any = namedtuple("ShareRecord", _FIELDS)  # type: ignore[misc]
ShareRecord.__doc__ = (
    """The fields of a ConsumerRecord, and how often it was delivered, this time included."""
)


_record: Any = ShareRecord._make


class Taken:
    """The result of a fetch from one partition: ``records``, and at once acknowledged ``others``.

    Those are offsets without a record (GAP), records that no deserializer can read (RELEASE), and damaged
    ones (REJECT); ``error`` is about the first of the latter two.
    """

    def __init__(self) -> None:
        self.records: list[Any] = []
        self.others: dict[int, int] = {}
        self.error: Exception | None = None


def take(partition: TopicPartition, fetched: SharedRecords, deserialize: Any) -> Taken:
    """The acquired records of a partition; ``deserialize(topic, headers, key, value)``: key and value."""
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
            columns = decode_batch(content)
        except BatchError as error:
            taken.error = taken.error or error
            for offset in offsets[low:high]:
                missing.pop(offset, None)
                taken.others[offset] = AcknowledgeType.REJECT
            continue
        for row in rows_of(partition, header, columns):
            if row.offset not in missing:
                continue
            deliveries = missing.pop(row.offset)
            try:
                key, value = deserialize(partition.topic, row.headers, row.key, row.value)
            except Exception as error:
                taken.error = taken.error or error
                taken.others[row.offset] = AcknowledgeType.RELEASE
                continue
            taken.records.append(_record((*row._replace(key=key, value=value), deliveries)))
    taken.others.update(dict.fromkeys(missing, AcknowledgeType.GAP))
    return taken


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
