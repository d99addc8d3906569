"""What the tests of the facade share: the plugin's broker and clients under short names, and settings."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from kafka.net.selector import NetworkSelector

from compat.kafka import KafkaConsumer, KafkaProducer
from dafka.testing import TestBroker
from tests.compat.patient import PatientConsumer


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
        producer.close(100)


@pytest.fixture
def producer(kafka_producer: KafkaProducer) -> KafkaProducer:
    """A producer with the default configuration."""
    return kafka_producer


@pytest.fixture
def new_consumer(dafka_broker: TestBroker) -> Iterator[Callable[..., KafkaConsumer]]:
    """Makes consumers of this test's broker that start at the first record and end behind the last one."""
    with ExitStack() as consumers:

        def make(*topics: str, **config: Any) -> KafkaConsumer:
            options = {"auto_offset_reset": "earliest", "consumer_timeout_ms": 100, **config}
            consumer = PatientConsumer(*topics, bootstrap_servers=dafka_broker.bootstrap_servers, **options)
            consumers.callback(consumer.close)
            return consumer

        yield make


@pytest.fixture
def kafka_python_ends(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Stop the threads that clients of kafka-python leave behind when they refuse their configuration."""
    started: list[NetworkSelector] = []
    start = NetworkSelector.start

    def noted(selector: NetworkSelector) -> None:
        start(selector)
        started.append(selector)

    monkeypatch.setattr(NetworkSelector, "start", noted)
    yield
    for selector in started:
        selector.stop(10_000)


@pytest.fixture(scope="module")
def listening() -> Iterator[TestBroker]:
    """A broker that kafka-python's clients can connect to, with a topic of two partitions."""
    with TestBroker(listen="127.0.0.1:0", auto_create_topics=False) as broker:
        broker.create_topic("t", 2)
        yield broker
