"""What tests share: a queue of one partition for those of batches, and a transactional producer."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from compat.kafka.producer import _batches
from compat.kafka.producer._batches import PartitionQueue
from compat.kafka.structs import TopicPartition
from dafka.broker import connect
from dafka.broker.interface.features import FeatureUpdate, UpgradeType
from dafka.hub.hub import get_hub
from tests.compat.producer.queues import ROOM, Accumulator


@pytest.fixture
def accumulator() -> Iterator[Accumulator]:
    yield Accumulator()


@pytest.fixture
def queue(accumulator: Accumulator) -> PartitionQueue:
    size = ROOM + _batches.BATCH_HEADER
    return PartitionQueue(get_hub(), TopicPartition("t", 0), size, None, accumulator)


@pytest.fixture(params=[1, 2], ids=["announced", "raising"])
def level(request, broker):
    """Either protocol of transactions: that of the level of transaction.version."""
    connection = connect(broker.bootstrap_servers, 100.0)
    update = FeatureUpdate(request.param, UpgradeType.SAFE_DOWNGRADE)
    if request.param != connection.call("features").levels["transaction.version"]:
        assert connection.call("update_features", {"transaction.version": update}).error is None
    return request.param


@pytest.fixture
def state(broker):
    """State and epoch of a transactional id."""
    connection = connect(broker.bootstrap_servers, 100.0)

    def look(name: str = "mine") -> tuple[str, int]:
        found = connection.call("describe_transactions", [name])[name]
        return found.state, found.epoch

    return look


@pytest.fixture
def transactional(new_producer, broker, level):
    broker.create_topic("t", 2)
    producer = new_producer(transactional_id="mine")
    producer.init_transactions()
    return producer


@pytest.fixture
def committed(new_consumer):
    """The values that a reader of committed records gets from the beginning."""

    def read(**config: object) -> list[bytes]:
        consumer = new_consumer("t", isolation_level="read_committed", **config)
        return sorted(record.value for record in consumer)

    return read
