"""What the tests of the facade share: a broker of their own, and clients that are closed afterwards."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from compat.kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer
from dafka import Broker


@pytest.fixture
def broker() -> Iterator[Broker]:
    """A broker in a temporary folder, whose topics have one partition unless created otherwise."""
    with Broker() as running:
        yield running


@pytest.fixture
def four(broker: Broker) -> str:
    """The name of a topic of four partitions."""
    with KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers) as admin:
        admin.create_topics({"four": {"num_partitions": 4}})
    return "four"


@pytest.fixture
def new_producer(broker: Broker) -> Iterator[Callable[..., KafkaProducer]]:
    """Makes producers of this test's broker."""
    made: list[KafkaProducer] = []

    def make(**config: Any) -> KafkaProducer:
        made.append(KafkaProducer(bootstrap_servers=broker.bootstrap_servers, **config))
        return made[-1]

    yield make
    for producer in made:
        producer.close(10)


@pytest.fixture
def producer(new_producer: Callable[..., KafkaProducer]) -> KafkaProducer:
    """A producer with the default configuration."""
    return new_producer()


@pytest.fixture
def new_consumer(broker: Broker) -> Iterator[Callable[..., KafkaConsumer]]:
    """Makes consumers of this test's broker that start at the first record and end after a while."""
    made: list[KafkaConsumer] = []

    def make(*topics: str, **config: Any) -> KafkaConsumer:
        config = {"auto_offset_reset": "earliest", "consumer_timeout_ms": 250, **config}
        made.append(KafkaConsumer(*topics, bootstrap_servers=broker.bootstrap_servers, **config))
        return made[-1]

    yield make
    for consumer in made:
        consumer.close(autocommit=False)
