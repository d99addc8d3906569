"""What the tests of the facade share: the plugin's broker and clients under short names, and settings."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from compat.kafka import KafkaConsumer, KafkaProducer
from dafka.testing import TestBroker


@pytest.fixture
def broker(dafka_broker: TestBroker) -> TestBroker:
    """A broker of this test's own, whose topics have one partition unless created otherwise."""
    return dafka_broker


@pytest.fixture
def four(dafka_broker: TestBroker) -> str:
    """The name of a topic of four partitions."""
    dafka_broker.create_topic("four", 4)
    return "four"


@pytest.fixture
def new_producer(dafka_broker: TestBroker) -> Iterator[Callable[..., KafkaProducer]]:
    """Makes producers of this test's broker."""
    made: list[KafkaProducer] = []

    def make(**config: Any) -> KafkaProducer:
        made.append(KafkaProducer(bootstrap_servers=dafka_broker.bootstrap_servers, **config))
        return made[-1]

    yield make
    for producer in made:
        producer.close(10)


@pytest.fixture
def producer(kafka_producer: KafkaProducer) -> KafkaProducer:
    """A producer with the default configuration."""
    return kafka_producer


@pytest.fixture
def new_consumer(kafka_consumer_factory: Callable[..., KafkaConsumer]) -> Callable[..., KafkaConsumer]:
    """Makes consumers of this test's broker that start at the first record and end after a moment."""

    def make(*topics: str, **config: Any) -> KafkaConsumer:
        return kafka_consumer_factory(*topics, **{"consumer_timeout_ms": 250, **config})

    return make
