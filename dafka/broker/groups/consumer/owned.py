"""Which partitions some member of a group has, so that nobody gets one that another member has."""

from __future__ import annotations

from uuid import UUID

from dafka.broker.groups.modern.assignment import Assignment


class Owned:
    """The partitions of a group that a member has."""

    def __init__(self) -> None:
        self._by_topic: dict[UUID, set[int]] = {}

    def free(self, topic: UUID, numbers: frozenset[int]) -> frozenset[int]:
        """The free ones of these partitions."""
        owned = self._by_topic.get(topic)
        return numbers if not owned else numbers - owned

    def take(self, partitions: Assignment) -> Assignment:
        """The free ones of these partitions, which somebody has from now on."""
        taken = dict(partitions)  # most are free, and ids take long to hash
        for topic, numbers in partitions.items():
            owned = self._by_topic.setdefault(topic, set())
            if not owned.isdisjoint(numbers):
                free = numbers - owned
                if free:
                    taken[topic] = numbers = free
                else:
                    del taken[topic]
            owned |= numbers
        return taken

    def release(self, partitions: Assignment) -> None:
        """Nobody has these partitions any more."""
        for topic, numbers in partitions.items():
            owned = self._by_topic.pop(topic)  # mostly it is somebody's for whole, and ids take long to hash
            owned -= numbers
            if owned:
                self._by_topic[topic] = owned
