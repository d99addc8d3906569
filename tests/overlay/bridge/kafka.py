"""Records of a broker in this process, for the tests of bridges."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any

from compat.kafka import KafkaConsumer, KafkaProducer

SECONDS = 100.0


def write(broker: str, topic: str, values: Iterable[bytes], **more: Any) -> None:
    producer = KafkaProducer(bootstrap_servers=broker)
    try:
        for value in values:
            producer.send(topic, value, **more)
        producer.flush()
    finally:
        producer.close()


def read(broker: str, topic: str, count: int, seconds: float = SECONDS) -> list[Any]:
    """The first ``count`` records of a topic, which may be still to come."""
    consumer = KafkaConsumer(bootstrap_servers=broker, auto_offset_reset="earliest", group_id=None)
    consumer.subscribe([topic])
    records: list[Any] = []
    ends = time.monotonic() + seconds
    try:
        while len(records) < count and time.monotonic() < ends:
            for some in consumer.poll(200).values():
                records += some
    finally:
        consumer.close()
    assert len(records) >= count, f"{len(records)} of {count} records in {topic}"
    return records


def topics(broker: str) -> set[str]:
    consumer = KafkaConsumer(bootstrap_servers=broker)
    try:
        return set(consumer.topics())
    finally:
        consumer.close()


def until(condition: Callable[[], bool], what: str, seconds: float = SECONDS) -> None:
    ends = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < ends, what
        time.sleep(0.02)
