"""Partitions of members, and what an assignor is given and returns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple
from uuid import UUID

Assignment = Mapping[UUID, frozenset[int]]
"""Partitions by topic id. No topic is there without partitions."""

Target = dict[str, Assignment]
"""The target of each member of a group, by member id."""

NOTHING: Assignment = {}


class Subscriber(NamedTuple):
    """A member as an assignor sees it. ``target`` is what it was to have until now."""

    member_id: str
    instance_id: str | None
    topics: frozenset[UUID]
    target: Assignment


class Spec(NamedTuple):
    """The input for a target assignment: the group of an epoch, and its topics' partitions.

    It does not change with the group, so that the assignor may run beside the hub.
    """

    epoch: int
    members: Sequence[Subscriber]
    partitions: Mapping[UUID, int]

    @property
    def is_homogeneous(self) -> bool:
        """Whether all members read the same topics."""
        return all(one.topics == self.members[0].topics for one in self.members)


Assignor = Callable[[Spec], Target]


def size(assignment: Assignment) -> int:
    """The number of partitions."""
    return sum(map(len, assignment.values()))


def without_nothing(assignment: Mapping[UUID, frozenset[int]]) -> Assignment:
    """The assignment without topics of which no partition is left."""
    return {topic: numbers for topic, numbers in assignment.items() if numbers}


def split(had: Assignment, target: Assignment) -> tuple[Assignment, Assignment]:
    """The parts of an assignment that are in the target, and those that are not."""
    kept: dict[UUID, frozenset[int]] = {}
    rest: dict[UUID, frozenset[int]] = {}
    for topic, numbers in had.items():
        wanted = target.get(topic)
        if wanted is None or wanted.isdisjoint(numbers):
            rest[topic] = numbers
        elif wanted >= numbers:
            kept[topic] = numbers
        else:
            kept[topic], rest[topic] = numbers & wanted, numbers - wanted
    return kept, rest


def both(one: Assignment, other: Assignment) -> Assignment:
    """The partitions of both."""
    if not one or not other:
        return one or other
    found = dict(one)
    for topic, numbers in other.items():
        found[topic] = found.get(topic, frozenset()) | numbers
    return found
