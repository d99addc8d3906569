"""How many objects a broker gives the garbage collector: everything in the process stops for a collection."""

from __future__ import annotations

import gc

from broker.clients import batch

PARTITIONS = 2000


def collected_objects() -> int:
    for _ in range(3):  # each finds out of some more tuples that they hold no objects of this kind
        gc.collect()
    return len(gc.get_objects())


def test_a_partition_that_is_written_is_few_objects_for_the_garbage_collector(client):
    before = collected_objects()
    client.create("wide", partitions=PARTITIONS)
    created = collected_objects()
    assert created - before < 1.2 * PARTITIONS
    for _ in range(3):
        answers = client.call("produce", {("wide", number): [batch(b"x")] for number in range(PARTITIONS)})
        assert all(one.error is None for one in answers.values())
        del answers
    # Partition, LogPartition, its index, the index's array, and what the log's tail has of it.
    chunks = sum(len(partition.index) for partition in client.core.log.partitions())
    assert collected_objects() - created < 3.2 * PARTITIONS + 1.1 * chunks
