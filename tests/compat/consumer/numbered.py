"""Records whose values are numbers: sent, and read back as numbers."""

from __future__ import annotations

from collections.abc import Iterable

from compat.kafka import KafkaConsumer, KafkaProducer
from compat.kafka.consumer.fetcher import ConsumerRecord


def fill(producer: KafkaProducer, topic: str, values: Iterable[int], **where: int) -> None:
    for value in values:
        producer.send(topic, b"%d" % value, **where)
    producer.flush(100)


def numbers(records: Iterable[ConsumerRecord]) -> list[int]:
    return [int(record.value) for record in records]


def polled(consumer: KafkaConsumer, **arguments: int) -> list[int]:
    return numbers(record for records in consumer.poll(**arguments).values() for record in records)


def take(consumer: KafkaConsumer, count: int) -> list[int]:
    return numbers(next(consumer) for _ in range(count))
