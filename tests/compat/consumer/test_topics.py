"""What a consumer knows of topics and their partitions."""

from __future__ import annotations

from collections.abc import Callable

from timing import until

from compat.kafka import (
    KafkaAdminClient,
    KafkaConsumer,
    KafkaProducer,
    TopicPartition,
)
from dafka import Broker
from tests.compat.consumer.numbered import fill, take

Consumers = Callable[..., KafkaConsumer]


def test_a_subscribed_topic_may_come_later(producer: KafkaProducer, new_consumer: Consumers) -> None:
    consumer = new_consumer("t", allow_auto_create_topics=False, consumer_timeout_ms=100_000)
    assert consumer.poll() == {}
    fill(producer, "t", [1])
    assert take(consumer, 1) == [1]


def test_subscribing_creates_the_topic_where_that_is_allowed(new_consumer: Consumers) -> None:
    consumer = new_consumer("fresh")
    until(lambda: not consumer.poll() and consumer.assignment())
    assert consumer.assignment() == {TopicPartition("fresh", 0)}
    assert consumer.topics() == {"fresh"}


def test_a_pattern_matches_topics_now_and_later(producer: KafkaProducer, new_consumer: Consumers) -> None:
    fill(producer, "log-a", [1])
    fill(producer, "other", [2])
    consumer = new_consumer(consumer_timeout_ms=100_000)
    consumer.subscribe(pattern="^log-")
    assert take(consumer, 1) == [1]
    assert consumer.subscription() == {"log-a"}
    fill(producer, "log-b", [3])
    assert take(consumer, 1) == [3]


def test_new_partitions_are_read(producer: KafkaProducer, new_consumer: Consumers, broker: Broker) -> None:
    fill(producer, "t", [0])
    consumer = new_consumer("t", consumer_timeout_ms=100_000)
    assert take(consumer, 1) == [0]
    with KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers) as admin:
        admin.create_partitions({"t": 2})
    with KafkaProducer(bootstrap_servers=broker.bootstrap_servers) as later:
        later.send("t", b"1", partition=1)
    assert take(consumer, 1) == [1]
