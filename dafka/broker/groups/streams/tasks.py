"""Tasks of a Streams group: which subtopology, which number; and what a member has of them, by role."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import NamedTuple

Share = Mapping[str, frozenset[int]]
"""Numbers of tasks by subtopology. No subtopology is there without tasks."""

TaskId = tuple[str, int]

NONE: Share = {}


class Roles(NamedTuple):
    """Tasks by role. Warm-up tasks are part of the protocol; as in Apache Kafka 4.3 no assignor gives any."""

    active: Share = NONE
    standby: Share = NONE
    warmup: Share = NONE


NOTHING = Roles()


def each(share: Mapping[str, Collection[int]]) -> Iterator[TaskId]:
    """The tasks one by one."""
    return ((name, number) for name, numbers in share.items() for number in numbers)


def make_up(shares: Iterable[Share], counts: Mapping[str, int]) -> bool:
    """Whether the shares have, together, so many tasks of each subtopology and nothing else."""
    found: dict[str, set[int]] = {}
    for share in shares:
        for name, numbers in share.items():
            found.setdefault(name, set()).update(numbers)
    return found == {name: set(range(count)) for name, count in counts.items() if count}


def size(roles: Roles) -> int:
    """How many tasks of all roles there are."""
    return sum(len(numbers) for share in roles for numbers in share.values())


def frozen(tasks: Mapping[str, Collection[int]]) -> Share:
    """A share that nobody changes, without subtopologies of which there is no task."""
    return {name: frozenset(numbers) for name, numbers in tasks.items() if numbers}


def split(had: Roles, target: Roles) -> tuple[Roles, Roles]:
    """The tasks that are in the target, in the same role, and those that are not."""
    kept = Roles(*(_both(one, other) for one, other in zip(had, target, strict=True)))
    return kept, minus(had, kept)


def minus(roles: Roles, others: Roles) -> Roles:
    """The tasks without those that others have in the same role."""
    return Roles(*(_minus(one, other) for one, other in zip(roles, others, strict=True)))


def joined(one: Roles, other: Roles) -> Roles:
    """The tasks of both."""
    return Roles(*(_joined(share, more) for share, more in zip(one, other, strict=True)))


def overlap(one: Roles, other: Roles) -> bool:
    """Whether a task has the same role in both."""
    return any(
        not numbers.isdisjoint(share.get(name, ()))
        for share, more in zip(one, other, strict=True)
        for name, numbers in more.items()
    )


def has_any(owned: Roles | None, tasks: Roles) -> bool:
    """Whether a member that says what it owns (None: as before) has any of these tasks."""
    return owned is None or overlap(tasks, owned)


def _both(one: Share, other: Share) -> Share:
    return frozen({name: numbers & other.get(name, frozenset()) for name, numbers in one.items()})


def _minus(one: Share, other: Share) -> Share:
    return frozen({name: numbers - other.get(name, frozenset()) for name, numbers in one.items()})


def _joined(one: Share, other: Share) -> Share:
    both = dict(one)
    for name, numbers in other.items():
        both[name] = both.get(name, frozenset()) | numbers
    return both
