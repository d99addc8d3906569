"""The epochs from which on a member has had what it has: partitions of topics, or tasks of subtopologies.

Most of it has come at once, so numbers of one epoch are one set: what a change takes goes by topics or
subtopologies, however many partitions or tasks these have.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from math import inf
from typing import Any, TypeVar

from dafka.log import shapes

K = TypeVar("K")

Since = Mapping[K, Mapping[int, frozenset[int]]]
"""By topic or subtopology, the numbers of each epoch. Nothing is there without numbers."""


def taken(since: Since[K], fresh: Mapping[K, frozenset[int]], epoch: int) -> Since[K]:
    """With numbers that the member had not, and has from this epoch on.

    What is equal is one object: of a hundred thousand topics nearly all have the same numbers.
    """
    alone: dict[frozenset[int], Mapping[int, frozenset[int]]] = {}
    found = dict(since)
    for key, numbers in fresh.items():
        before = found.get(key) if since else None
        if before is None:
            found[key] = alone.setdefault(numbers, {epoch: numbers})
        elif epoch in before:
            found[key] = {**before, epoch: before[epoch] | numbers}
        else:
            found[key] = {**before, epoch: numbers}
    return found


def lost(since: Since[K], given_up: Mapping[K, frozenset[int]]) -> Since[K]:
    """Without numbers that the member has no more."""
    found = dict(since)
    for key, numbers in given_up.items():
        before = found.get(key)
        if before is None:
            continue
        if len(before) == 1:  # as nearly always
            ((epoch, had),) = before.items()
            rest = had - numbers
            left = {epoch: rest} if rest else {}
        else:
            left = {epoch: rest for epoch, had in before.items() if (rest := had - numbers)}
        if left:
            found[key] = left
        else:
            del found[key]
    return found


def epoch_of(since: Since[K], key: K, number: int) -> float:
    """The epoch from which on the member has had this; inf if it has not."""
    return next((epoch for epoch, numbers in since.get(key, {}).items() if number in numbers), inf)


# -- as a part of a row ------------------------------------------------------------------------------

is_part = shapes.list_of(shapes.row_of(shapes.natural, shapes.list_of(shapes.natural)))
"""Whether this can be the row of what a member has of one topic or subtopology."""


def part_row(epochs: Mapping[int, Collection[int]]) -> list[list[Any]]:
    """The numbers of each epoch."""
    return [[epoch, sorted(numbers)] for epoch, numbers in epochs.items()]


def part_of(row: list[list[Any]]) -> Mapping[int, frozenset[int]]:
    """The same, of a row."""
    return {epoch: frozenset(numbers) for epoch, numbers in row}
