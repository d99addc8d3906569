"""Partitions of members, and what an assignor is given and returns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeVar
from uuid import UUID

Assignment = Mapping[UUID, frozenset[int]]
"""Partitions by topic id. No topic is there without partitions."""

Target = dict[str, Assignment]
"""The target of each member of a group, by member id."""

NOTHING: Assignment = {}

MANY_TOPICS = 1000

S = TypeVar("S")  # the share of a member


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


def weight(assignment: Assignment) -> int:
    """The number of partitions, or of topics if these alone are many: enough to say whether it is much."""
    return len(assignment) if len(assignment) > MANY_TOPICS else size(assignment)


def same_where_equal(before: Mapping[str, S], target: Mapping[str, S]) -> dict[str, S]:
    """The target with the share of each member that has not changed as the same object as before, so that
    nobody has to compare them again."""
    found = dict(target)
    for name, share in target.items():
        had = before.get(name)
        if had is not None and had == share:
            found[name] = had
    return found


def without_nothing(assignment: Mapping[UUID, frozenset[int]]) -> Assignment:
    """The assignment without topics of which no partition is left."""
    return {topic: numbers for topic, numbers in assignment.items() if numbers}


class Comparison(NamedTuple):
    """What of an assignment is in a target, what is not, and what of the target is not in the assignment."""

    kept: Assignment
    rest: Assignment
    missing: Assignment


def compared(had: Assignment, target: Assignment) -> Comparison:
    """An assignment beside a target. Each topic is looked up as rarely as can be: ids take long to hash."""
    kept: dict[UUID, frozenset[int]] = {}
    missing: dict[UUID, frozenset[int]] = {}
    gone = set(had).difference(target)
    rest = {topic: had[topic] for topic in gone} if gone else {}
    has_others = len(gone) < len(had)
    for topic, wanted in target.items():
        numbers = had.get(topic) if has_others else None
        if numbers is None:
            missing[topic] = wanted
        elif numbers is wanted or numbers == wanted:
            kept[topic] = numbers
        else:
            if both := numbers & wanted:
                kept[topic] = both
            if extra := numbers - wanted:
                rest[topic] = extra
            if lacking := wanted - numbers:
                missing[topic] = lacking
    return Comparison(kept, rest, missing)


def both(one: Assignment, other: Assignment) -> Assignment:
    """The partitions of both."""
    if not one or not other:
        return one or other
    found = {**one, **other}
    if len(found) < len(one) + len(other):
        for topic in set(one) & set(other):  # which takes no id's hash again, as a dictionary's keys would
            found[topic] = one[topic] | other[topic]
    return found
