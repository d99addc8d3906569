"""The topics a producer knows, and which partition a record goes to.

Only partitions that the broker leads take part: those written by native producers on the mesh appear
behind them in the broker's metadata and cannot be written to.

kafka-python's ``DefaultPartitioner`` (exactly that class) is carried out here instead of being called,
because it sorts the partitions and hashes the key for every record: the outcome is the same, murmur2 of
the key, or any partition if there is no key; these are drawn some at a time, because a call for each record
would cost a tenth of ``send``. A limited number of keys is remembered with their partitions. Every other
partitioner is called with a :class:`ClusterView`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from random import choices, randbytes
from typing import Any

from kafka.partitioner import murmur2
from kafka.structs import TopicPartition

from compat.kafka.producer._batches import PartitionQueue

DRAWN = 256  # octets or queues at a time, for records without a key
_OCTETS = bytes(range(256))
REMEMBERED_KEYS = 16_384  # keys of one topic whose partition is remembered
REMEMBERED_KEY_SIZE = 256  # octets of the longest of them


class Topic:
    """One topic as of the last metadata: the queues of its partitions, in their order."""

    __slots__ = (
        "_by_key",
        "_by_octet",
        "_drawn",
        "_none",
        "any_queue",
        "by_number",
        "count",
        "only",
        "queue_of_key",
        "queues",
    )

    def __init__(self, queues: list[PartitionQueue]) -> None:
        self.queues = queues
        self.count = len(queues)
        self.only = queues[0] if self.count == 1 else None
        self.by_number = {queue.partition.partition: queue for queue in queues}
        self._drawn: list[PartitionQueue] = []
        self.any_queue: Callable[[], PartitionQueue] = self._drawn.pop
        """One at random; IndexError if :meth:`draw` has to be asked."""
        # Each octet stands for a queue; so many as would favour the first queues stand for none.
        self._by_octet = queues * (len(_OCTETS) // self.count)
        self._none = _OCTETS[len(self._by_octet) :]
        self._by_key: dict[bytes, PartitionQueue] = {}
        self.queue_of_key: Callable[[bytes], PartitionQueue | None] = self._by_key.get

    def draw(self) -> PartitionQueue:
        """A queue at random, and some more for :attr:`any_queue`; there has to be one."""
        if self._by_octet:
            octets = randbytes(DRAWN).translate(None, self._none)
            drawn = list(map(self._by_octet.__getitem__, octets))
        else:
            drawn = choices(self.queues, k=DRAWN)
        queue = drawn.pop()
        self._drawn.extend(drawn)
        return queue

    def hash_key(self, key: bytes) -> PartitionQueue:
        """The queue for a key that :attr:`queue_of_key` does not know yet."""
        hashed: int = murmur2(key)
        queue = self.queues[(hashed & 0x7FFFFFFF) % self.count]
        if len(key) <= REMEMBERED_KEY_SIZE:
            if len(self._by_key) >= REMEMBERED_KEYS:
                self._by_key.clear()
            self._by_key[key] = queue
        return queue


class Topics:
    """All topics that the producer has metadata of, by name; queues outlive a change of metadata."""

    def __init__(self, new_queue: Callable[[TopicPartition], PartitionQueue]) -> None:
        self.known: dict[str, Topic] = {}
        self._new_queue = new_queue
        self._queues: dict[TopicPartition, PartitionQueue] = {}

    def update_from(self, metadata: Any, names: Iterable[str]) -> None:
        """Take over the metadata of the named topics; forget those that the broker no longer has."""
        for name in names:
            found = metadata.topics.get(name)
            if found is None or found.error is not None:
                self.known.pop(name, None)
                continue
            numbers = sorted(partition.number for partition in found.partitions if partition.writable)
            known = self.known.get(name)
            if not numbers:
                self.known.pop(name, None)
            elif known is None or list(known.by_number) != numbers:
                self.known[name] = Topic([self._queue(TopicPartition(name, number)) for number in numbers])

    def _queue(self, partition: TopicPartition) -> PartitionQueue:
        # setdefault: two threads that learn of a topic at once must end up with the same queue.
        queue = self._queues.get(partition)
        if queue is None:
            queue = self._queues.setdefault(partition, self._new_queue(partition))
        return queue

    def queues(self) -> list[PartitionQueue]:
        """The queue of every partition that was ever known."""
        return list(self._queues.values())


class ClusterView:
    """The part of kafka-python's ``ClusterMetadata`` that partitioners use."""

    def __init__(self, topics: Topics) -> None:
        self._topics = topics

    def topics(self, exclude_internal_topics: bool = True) -> set[str]:
        """Names of the known topics."""
        return set(self._topics.known)

    def partitions_for_topic(self, topic: str) -> set[int] | None:
        """Numbers of the partitions that can be written to; None if the topic is not known."""
        found = self._topics.known.get(topic)
        return None if found is None else set(found.by_number)

    def available_partitions_for_topic(self, topic: str) -> set[int] | None:
        """The same: in this process no partition is without its leader."""
        return self.partitions_for_topic(topic)

    def leader_for_partition(self, partition: TopicPartition) -> int | None:
        """The node that leads the partition; None if the partition is not known."""
        found = self._topics.known.get(partition.topic)
        return 0 if found is not None and partition.partition in found.by_number else None
