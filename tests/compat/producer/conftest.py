"""What the tests of batches share: a queue of one partition."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from compat.kafka.producer import _batches
from compat.kafka.producer._batches import PartitionQueue
from compat.kafka.structs import TopicPartition
from dafka.hub.hub import get_hub
from tests.compat.producer.queues import ROOM, Accumulator


@pytest.fixture
def accumulator() -> Iterator[Accumulator]:
    yield Accumulator()


@pytest.fixture
def queue(accumulator: Accumulator) -> PartitionQueue:
    size = ROOM + _batches.BATCH_HEADER
    return PartitionQueue(get_hub(), TopicPartition("t", 0), size, None, accumulator)
