"""Watching many partitions for change, so that repeated fetches of a session look at changed ones only."""

from __future__ import annotations

from collections.abc import Collection

from dafka.broker.interface.broker import PartitionWatch, TopicPartition
from dafka.broker.topics.table import Partition, TopicTable
from dafka.hub.flag import Flag
from dafka.hub.turns import Pace


class Watch(PartitionWatch):
    """The embedded broker's :class:`~dafka.broker.interface.records.PartitionWatch`. Hub side."""

    def __init__(self, topics: TopicTable) -> None:
        self._topics = topics
        self._partitions: dict[TopicPartition, Partition] = {}
        self._keys: dict[Partition, TopicPartition] = {}
        self._changed: dict[TopicPartition, None] = {}
        self._wake = Flag()
        self._closed = False

    def add(self, key: TopicPartition) -> bool:
        partition = self._topics.partition(*key)
        if partition is None or self._closed:
            return False
        if self._partitions.get(key) is not partition:
            self.remove(key)  # the partition of a deleted topic of this name
            self._partitions[key] = partition
            self._keys[partition] = key
            partition.watch(self)
        return True

    def remove(self, key: TopicPartition) -> None:
        partition = self._partitions.pop(key, None)
        if partition is not None:
            partition.unwatch(self)
            del self._keys[partition]

    def take(self) -> Collection[TopicPartition]:
        changed, self._changed = self._changed, {}
        self._wake.clear()
        return changed

    def wait(self, timeout: float) -> bool:
        return self._wake.wait(timeout)

    def close(self) -> None:
        self._closed = True
        self._wake.set()
        for partition in Pace().over(list(self._keys)):
            partition.unwatch(self)
        self._partitions.clear()
        self._keys.clear()

    def partition_grew(self, partition: Partition) -> None:
        """Called after each commit of a partition that is watched, and when it is trimmed or deleted."""
        key = self._keys.get(partition)
        if key is not None:
            self._changed[key] = None
            self._wake.set()
