"""What a consumer asks about topics and offsets without reading."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from compat.kafka import (
    KafkaConsumer,
    KafkaProducer,
    TopicPartition,
)
from compat.kafka.errors import (
    KafkaTimeoutError,
)
from compat.kafka.structs import OffsetAndTimestamp

T0 = TopicPartition("t", 0)
Consumers = Callable[..., KafkaConsumer]


def test_offsets_are_looked_up_by_edge_and_time(producer: KafkaProducer, new_consumer: Consumers) -> None:
    for number in range(5):
        producer.send("t", b"v", timestamp_ms=1000 + number * 10)
    producer.flush(100)
    consumer = new_consumer()
    assert consumer.beginning_offsets([T0]) == {T0: 0}
    assert consumer.end_offsets([T0]) == {T0: 5}
    found = consumer.offsets_for_times({T0: 1015})[T0]
    assert isinstance(found, OffsetAndTimestamp) and (found.offset, found.timestamp) == (2, 1020)
    assert consumer.offsets_for_times({T0: 5000}) == {T0: None}
    assert consumer.end_offsets([]) == {}


def test_offsets_of_an_unknown_partition_are_a_timeout(new_consumer: Consumers) -> None:
    with pytest.raises(KafkaTimeoutError):
        new_consumer().end_offsets([TopicPartition("nothing", 0)], timeout_ms=50)


def test_partitions_and_topics_are_listed(new_consumer: Consumers, four: str) -> None:
    consumer = new_consumer()
    assert consumer.partitions_for_topic(four) == {0, 1, 2, 3}
    assert consumer.partitions_for_topic("nothing") == set()
    assert consumer.topics() == {four}
