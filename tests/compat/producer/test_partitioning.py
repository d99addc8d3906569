"""Explicit partitions, and partitioners other than the default one."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import kafka
import kafka.codec
import pytest

from compat.kafka import KafkaProducer
from compat.kafka.errors import (
    KafkaTimeoutError,
)
from compat.kafka.partitioner import DefaultPartitioner, Partitioner, StickyPartitioner
from dafka import Broker

Producers = Callable[..., KafkaProducer]


def test_an_explicit_partition_wins_over_the_key(producer: KafkaProducer, four: str) -> None:
    assert {producer.send(four, b"v", key=b"k", partition=2).get(100).partition} == {2}


def test_a_partitioner_of_ones_own_is_asked_with_a_view_of_the_cluster(
    new_producer: Producers, four: str
) -> None:
    class Last(Partitioner):
        def partition(self, topic, key, serialized_key, value, serialized_value, cluster):  # type: ignore[no-untyped-def]
            assert topic in cluster.topics()
            assert (key, serialized_key) == ("k", b"k")
            assert cluster.available_partitions_for_topic(topic) == cluster.partitions_for_topic(topic)
            assert cluster.partitions_for_topic("unknown") is None
            return max(cluster.partitions_for_topic(topic))

    with pytest.warns(DeprecationWarning):
        producer = new_producer(partitioner=Last(), key_serializer=str.encode)
    assert producer.send(four, b"v", key="k").get(100).partition == 3


def test_a_sub_class_of_the_default_partitioner_is_asked(new_producer: Producers, four: str) -> None:
    class Odd(DefaultPartitioner):
        def partition(self, *args: object) -> int:
            return 1

    assert new_producer(partitioner=Odd()).send(four, b"v").get(100).partition == 1


def test_the_sticky_partitioner_moves_on_with_every_batch(new_producer: Producers, four: str) -> None:
    producer = new_producer(partitioner=StickyPartitioner(), linger_ms=60_000, batch_size=1000)
    futures = [producer.send(four, b"x" * 90) for _ in range(900)]
    producer.flush(100)
    partitions = [future.get(100).partition for future in futures]
    runs = 1 + sum(1 for one, other in pairwise(partitions) if one != other)
    assert set(partitions) == {0, 1, 2, 3} and runs < 300


def test_a_topic_that_may_not_be_created_is_a_timeout(new_producer: Producers) -> None:
    producer = new_producer(allow_auto_create_topics=False, max_block_ms=50)
    with pytest.raises(KafkaTimeoutError, match="nowhere"):
        producer.send("nowhere", b"v")


def test_a_partitioner_that_chooses_nothing_is_a_value_error(broker: Broker) -> None:
    class Undecided(kafka.partitioner.Partitioner):
        def partition(self, *args: Any) -> None:
            return None

    with (
        KafkaProducer(bootstrap_servers=broker.bootstrap_servers, partitioner=Undecided()) as producer,
        pytest.raises(ValueError, match="did not assign a partition for topic t"),
    ):
        producer.send("t", b"v")
