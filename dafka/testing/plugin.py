"""The pytest plugin: fixtures for a broker inside the tests. pytest loads it by itself (``pytest11``).

=========================  ===============================================================================
``dafka_broker``           a :class:`~dafka.testing.TestBroker` for this test alone, empty; it listens, so its
                           ``bootstrap_servers`` is for every Kafka client, in any process
``dafka_broker_session``   one for the whole run (for each worker of pytest-xdist): topics stay from test to
                           test, so each test takes names of its own
``kafka_producer``         a ``KafkaProducer`` of ``dafka_broker``, flushed and closed after the test
``kafka_consumer_factory`` makes ``KafkaConsumer`` objects of ``dafka_broker``: its arguments are theirs;
                           they are closed after the test, before the broker stops
=========================  ===============================================================================

Every worker of pytest-xdist is a process with brokers of its own, on ports and in folders of their own, so
``pytest -n auto`` needs nothing.

Nothing but pytest is imported here: gevent, ZeroMQ and kafka-python come with the first fixture that is used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from compat.kafka import KafkaConsumer, KafkaProducer
    from dafka.testing.broker import TestBroker

CLOSE_TIMEOUT = 30.0  # seconds that a producer may take to send what the test left in it

CONSUMER_TIMEOUT_MS = 5000


@pytest.fixture
def dafka_broker() -> Iterator[TestBroker]:
    """A Kafka broker for this test alone, empty: ``.bootstrap_servers`` is its address."""
    from dafka.testing.broker import TestBroker

    with TestBroker() as broker:
        yield broker


@pytest.fixture(scope="session")
def dafka_broker_session() -> Iterator[TestBroker]:
    """A Kafka broker for the whole run; topics stay from test to test."""
    from dafka.testing.broker import TestBroker

    with TestBroker() as broker:
        yield broker


@pytest.fixture
def kafka_producer(dafka_broker: TestBroker) -> Iterator[KafkaProducer]:
    """A KafkaProducer of ``dafka_broker`` with kafka-python's defaults."""
    from compat.kafka import KafkaProducer

    producer = KafkaProducer(bootstrap_servers=dafka_broker.bootstrap_servers)
    yield producer
    producer.close(CLOSE_TIMEOUT)


@pytest.fixture
def kafka_consumer_factory(dafka_broker: TestBroker) -> Iterator[Callable[..., KafkaConsumer]]:
    """Makes KafkaConsumers of ``dafka_broker``: ``kafka_consumer_factory("orders", group_id="billing")``.

    Two defaults are for tests: they start at the first record (``auto_offset_reset="earliest"``), and
    iterating ends when nothing has come for five seconds (``consumer_timeout_ms=5000``), so that a test
    whose record never comes fails instead of hanging.
    """
    from compat.kafka import KafkaConsumer

    with ExitStack() as consumers:

        def make(*topics: str, **config: Any) -> KafkaConsumer:
            config = {
                "bootstrap_servers": dafka_broker.bootstrap_servers,
                "auto_offset_reset": "earliest",
                "consumer_timeout_ms": CONSUMER_TIMEOUT_MS,
                **config,
            }
            consumer = KafkaConsumer(*topics, **config)
            consumers.callback(consumer.close)
            return consumer

        yield make
