"""A producer for whatever records there are, from a file or from another topic.

kafka-python's producer, and so that of compat.kafka, refuses records that are legal in Kafka and that clients
in other languages write: with null as a header's value, or with neither key nor value. Its serializers may
make both of what it takes.
"""

from __future__ import annotations

from typing import Any

from kafka.serializer import Serializer

from compat.kafka import KafkaProducer
from dafka.broker.looking.rows import NewRecord


class _Null(bytes):
    """Stands for null until it is serialized."""


_NULL = _Null()


class _Nulls(Serializer):  # type: ignore[misc, unused-ignore]
    """Puts null where it is meant, in headers as well."""

    def serialize(self, topic: str, headers: list[tuple[str, bytes | None]], data: Any) -> bytes | None:
        if headers and any(value is _NULL for _, value in headers):
            headers[:] = [(name, None if value is _NULL else value) for name, value in headers]
        return None if data is _NULL else data


def producer(**configs: Any) -> KafkaProducer:
    """A producer for :func:`send`."""
    nulls = _Nulls()
    return KafkaProducer(**configs, key_serializer=nulls, value_serializer=nulls)


def send(producer: KafkaProducer, topic: str, record: NewRecord) -> Any:
    """The future of the record's acknowledgement; raises what ``KafkaProducer.send`` raises."""
    return producer.send(
        topic,
        _NULL if record.value is None else record.value,
        key=record.key,
        headers=[(name, _NULL if value is None else value) for name, value in record.headers],
        partition=record.partition,
        timestamp_ms=record.timestamp,
    )
