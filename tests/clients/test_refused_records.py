"""A batch that is refused for some of its records: clients are told which ones, and why."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import confluent_kafka
import kafka
import pytest
from clients.adapters.client import SECONDS
from clients.conftest import MakeTopic

import compat.kafka

HOUR = 3_600_000
LINGER = 60_000  # so that all records are in one batch, which is sent when the producer is flushed


def reports(servers: str, topic: str, records: Sequence[tuple[bytes | None, int]]) -> list[str | None]:
    """Send one batch of these keys and timestamps by librdkafka; the name of each record's error."""
    found: dict[int, str | None] = {}
    producer = confluent_kafka.Producer({"bootstrap.servers": servers, "linger.ms": LINGER})
    producer.list_topics(topic, SECONDS)  # or the records wait apart until the partition is known
    for number, (key, timestamp) in enumerate(records):
        producer.produce(
            topic,
            b"value",
            key,
            partition=0,
            timestamp=timestamp,
            on_delivery=lambda error, _, number=number: found.update({number: error and error.name()}),
        )
    assert producer.flush(SECONDS) == 0
    return [found[number] for number in range(len(records))]


def failures(
    module: Any, servers: str, topic: str, records: Sequence[tuple[bytes | None, int]]
) -> list[BaseException | None]:
    """The same by kafka-python or the facade of its shape: the exception of each record."""
    with module.KafkaProducer(bootstrap_servers=servers, linger_ms=LINGER) as producer:
        futures = [producer.send(topic, b"v", key, [], 0, timestamp) for key, timestamp in records]
        producer.flush(SECONDS)
        return [future.exception for future in futures]


def now() -> int:
    return int(time.time() * 1000)


def test_librdkafka_fails_the_records_without_a_key_for_that_and_the_others_with_them(
    servers: str, new_topic: MakeTopic
) -> None:
    topic = new_topic(1, cleanup_policy="compact")
    records = [(key, now()) for key in (b"a", None, b"b", None)]
    innocent, wrong = "_INVALID_DIFFERENT_RECORD", "INVALID_RECORD"
    assert reports(servers, topic, records) == [innocent, wrong, innocent, wrong]


def test_librdkafka_fails_a_record_with_a_timestamp_out_of_range_for_that(
    servers: str, new_topic: MakeTopic
) -> None:
    topic = new_topic(1, message_timestamp_before_max_ms=str(HOUR))
    records = [(b"a", now()), (b"b", now() - 2 * HOUR), (b"c", now()), (b"d", now() + 2 * HOUR)]
    found = reports(servers, topic, records)
    assert [found[0], found[2]] == ["_INVALID_DIFFERENT_RECORD"] * 2
    assert set(found[1::2]) <= {"INVALID_TIMESTAMP", "INVALID_RECORD"}


@pytest.mark.parametrize("module", [kafka, compat.kafka], ids=["kafka-python", "compat.kafka"])
def test_kafka_pythons_producer_raises_for_each_record_what_is_its_own(
    servers: str, new_topic: MakeTopic, module: Any
) -> None:
    topic = new_topic(1, cleanup_policy="compact", message_timestamp_before_max_ms=str(HOUR))
    records = [(b"a", now()), (None, now()), (b"b", now() - 2 * HOUR)]
    found = failures(module, servers, topic, records)
    assert [type(error).__name__ for error in found] == [
        "KafkaError",
        "InvalidRecordError",
        "InvalidRecordError",
    ]
    assert "key" in str(found[1])
    assert "imestamp" in str(found[2])
    (alone, other) = failures(module, servers, topic, [(b"a", 5), (b"b", now())])
    assert type(alone).__name__ == "InvalidTimestampError"
    assert type(other).__name__ == "KafkaError"
