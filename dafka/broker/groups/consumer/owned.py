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
        taken: dict[UUID, frozenset[int]] = {}
        for topic, numbers in partitions.items():
            owned = self._by_topic.get(topic)
            if owned is None:
                self._by_topic[topic] = set(numbers)
            else:
                if not owned.isdisjoint(numbers):
                    numbers = numbers - owned
                owned |= numbers
            if numbers:
                taken[topic] = numbers
        return taken

    def release(self, partitions: Assignment) -> None:
        """Nobody has these partitions any more."""
        for topic, numbers in partitions.items():
            owned = self._by_topic[topic]
            owned -= numbers
            if not owned:
                del self._by_topic[topic]
