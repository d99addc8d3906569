"""Batches and queues without a producer."""

from __future__ import annotations

from compat.kafka.producer._batches import NANOSECONDS, Batch, PartitionQueue
from compat.kafka.producer._callbacks import CallbackThread
from dafka.hub.hub import get_hub

RECORD = (NANOSECONDS, None, b"v" * 40, ())
SIZE = 50  # octets of it, by estimate
ROOM = 3 * SIZE  # for three of them


class Accumulator:
    """What batches need of a producer's accumulator."""

    def __init__(self) -> None:
        self.callbacks = CallbackThread(get_hub())
        self.incomplete: dict[Batch, None] = {}
        self.ended: list[Batch] = []

    def finished(self, batch: Batch) -> None:
        self.ended.append(batch)


def filled(queue: PartitionQueue, count: int) -> Batch:
    """A sealed and encoded batch of so many records."""
    for _ in range(count):
        queue.append(RECORD, SIZE)
    queue.seal_open()
    batch = queue.take_sealed()
    assert batch is not None
    return batch
