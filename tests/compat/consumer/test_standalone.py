"""A consumer without a group."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from timing import until

from compat.kafka import (
    KafkaConsumer,
    KafkaProducer,
    TopicPartition,
)
from compat.kafka.errors import (
    IllegalStateError,
)

T0 = TopicPartition("t", 0)
Consumers = Callable[..., KafkaConsumer]


def test_without_a_group_nothing_is_committed(producer: KafkaProducer, new_consumer: Consumers) -> None:
    consumer = new_consumer("t")
    assert consumer.config["enable_auto_commit"] is False
    for commit in (consumer.commit, consumer.commit_async, lambda: consumer.committed(T0)):
        with pytest.raises(IllegalStateError, match="group_id"):
            commit()


def test_it_reads_every_partition_of_its_topics(
    producer: KafkaProducer, new_consumer: Consumers, four: str
) -> None:
    producer.send("t", b"v").get(100)
    consumer = new_consumer("t", four)
    until(lambda: consumer.poll(100) or len(consumer.assignment()) == 5)
    assert consumer.assignment() == {T0, *(TopicPartition(four, number) for number in range(4))}
    consumer.subscribe(["t"])
    until(lambda: consumer.poll(100) == {} and consumer.assignment() == {T0})


def test_two_of_them_do_not_share_partitions(producer: KafkaProducer, new_consumer: Consumers) -> None:
    producer.send("t", b"v").get(100)
    assert [next(new_consumer("t")).value for _ in range(2)] == [b"v", b"v"]


def test_it_has_no_membership(new_consumer: Consumers) -> None:
    metadata = new_consumer("t").group_metadata()
    assert (metadata.group_id, metadata.generation_id, metadata.member_id) == (None, -1, "")
