"""What the tests of consumer groups share: a topic, and members of one group that read it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from compat.kafka import KafkaAdminClient, KafkaConsumer
from dafka import Broker
from tests.compat.consumer.members import PARTITIONS, Members
from tests.compat.consumer.readers import Reader


@pytest.fixture
def topic(broker: Broker) -> None:
    """The topic "t" of twelve partitions."""
    with KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers) as admin:
        admin.create_topics({"t": {"num_partitions": PARTITIONS}})


@pytest.fixture
def new_member(broker: Broker, topic: None) -> Iterator[Members]:
    """Makes consumers of the group "g"; those that do not say what they read subscribe to "t"."""
    made: list[KafkaConsumer] = []

    def make(*, listener: Any = None, subscribe: bool = True, **config: Any) -> KafkaConsumer:
        options = {
            "group_id": "g",
            "auto_offset_reset": "earliest",
            "enable_auto_commit": False,
            "heartbeat_interval_ms": 500,
            **config,
        }
        consumer = KafkaConsumer(bootstrap_servers=broker.bootstrap_servers, **options)
        if subscribe:
            consumer.subscribe(["t"], listener=listener)
        made.append(consumer)
        return consumer

    yield make
    for consumer in made:
        consumer.close(autocommit=False)


@pytest.fixture
def new_reader(new_member: Members) -> Iterator[Callable[..., Reader]]:
    """Makes consumers of the group "g" that are polled by threads."""
    made: list[Reader] = []

    def make(delay: float = 0.0, **config: Any) -> Reader:
        made.append(Reader(new_member(**config), delay))
        return made[-1]

    yield make
    for reader in made:
        reader.stop()
