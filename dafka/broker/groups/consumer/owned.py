"""Which partitions some member of a group has, so that nobody gets one that another member has."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from itertools import islice
from uuid import UUID

from dafka.broker import limits
from dafka.broker.groups.modern.assignment import Assignment


class Owned:
    """The partitions of a group that a member has, or had: those of very many topics are free some at a time,
    by :meth:`release_some`."""

    def __init__(self) -> None:
        # By the numbers of topics' ids: a number is hashed several times as fast as an id, and there may be a
        # hundred thousand in a turn.
        self._by_topic: dict[int, frozenset[int]] = {}
        self._later: deque[Iterator[tuple[UUID, frozenset[int]]]] = deque()

    def free(self, topic: UUID, numbers: frozenset[int]) -> frozenset[int]:
        """The free ones of these partitions."""
        owned = self._by_topic.get(topic.int)
        return numbers if not owned else numbers - owned

    def take(self, partitions: Assignment) -> Assignment:
        """The free ones of these partitions, which somebody has from now on."""
        taken = dict(partitions)  # most are free
        by_topic = self._by_topic
        for topic, numbers in partitions.items():
            id_ = topic.int
            owned = by_topic.get(id_)
            if owned is None:
                by_topic[id_] = numbers
                continue
            if not owned.isdisjoint(numbers):
                numbers = numbers - owned
                if numbers:
                    taken[topic] = numbers
                else:
                    del taken[topic]
            by_topic[id_] = owned | numbers
        return taken

    def release(self, partitions: Assignment) -> None:
        """Nobody has these partitions any more."""
        if len(partitions) > limits.TOPICS_AT_ONCE:
            self._later.append(iter(partitions.items()))
        else:
            self._free(partitions.items())

    @property
    def is_releasing(self) -> bool:
        """Whether there are more to be free, for :meth:`release_some`."""
        return bool(self._later)

    def release_some(self) -> None:
        """Some of those that nobody has any more are free."""
        if self._later:
            some = list(islice(self._later[0], limits.TOPICS_AT_ONCE))
            if len(some) < limits.TOPICS_AT_ONCE:
                self._later.popleft()
            self._free(some)

    def _free(self, partitions: Iterable[tuple[UUID, frozenset[int]]]) -> None:
        by_topic = self._by_topic
        for topic, numbers in partitions:
            id_ = topic.int
            owned = by_topic.pop(id_)
            if owned is not numbers and (left := owned - numbers):
                by_topic[id_] = left
