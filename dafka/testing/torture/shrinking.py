"""Which of the faults that a run met are enough for it to fail: delta debugging.

First the shortest prefix that still fails is looked for by halves, because what came behind the failure has
not caused it. Then parts of it are left out, halves first and single faults at last, while it still fails
(Zeller and Hildebrandt, "Simplifying and Isolating Failure-Inducing Input", 2002). The remaining faults are
minimal: without any one of them the run passes.

Leaving a fault out may move the calls behind it, as a repeated request is a call more. So not every part
can be tried for itself, and a smaller list may exist.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from dafka.testing.torture.plan import Fault

RUNS = 200
"""Runs of a test for one shrinking, at most."""

SECONDS = 120.0
"""... and the time after which no further one is begun."""


class Shrunk(NamedTuple):
    """``faults`` have failed in a run of their own; ``runs`` were made. ``minimal``: all parts were tried."""

    faults: list[Fault]
    runs: int
    minimal: bool


class _EnoughError(Exception):
    """There are no runs, or there is no time, for more."""


def shrink(
    faults: Sequence[Fault],
    fails: Callable[[list[Fault]], bool],
    runs: int = RUNS,
    seconds: float = SECONDS,
    clock: Callable[[], float] = time.monotonic,
) -> Shrunk | None:
    """A smallest part of ``faults`` for which ``fails`` is true; None if it is not for all of them.

    ``fails`` runs the test; it is asked once for each list.
    """
    ends = clock() + seconds
    answers: dict[tuple[int, ...], bool] = {}

    def failing(places: Sequence[int]) -> bool:
        known = answers.get(tuple(places))
        if known is not None:
            return known
        if len(answers) >= runs or (answers and clock() >= ends):
            raise _EnoughError
        answers[tuple(places)] = answer = fails([faults[place] for place in places])
        return answer

    places: Sequence[int] = range(len(faults))
    if not failing(places):
        return None
    minimal = True
    try:
        if failing(()):  # it fails by itself
            places = ()
        else:
            for smaller in (_prefix, _parts):
                for found in smaller(places, failing):
                    places = found
    except _EnoughError:
        minimal = False
    return Shrunk([faults[place] for place in places], len(answers), minimal)


def _prefix(places: Sequence[int], failing: Callable[[Sequence[int]], bool]) -> Iterator[Sequence[int]]:
    """Shorter and shorter prefixes that fail, by halves."""
    passes, fails = 0, len(places)
    while fails - passes > 1:
        half = (passes + fails) // 2
        if failing(places[:half]):
            fails = half
            yield places[:half]
        else:
            passes = half


def _parts(places: Sequence[int], failing: Callable[[Sequence[int]], bool]) -> Iterator[Sequence[int]]:
    """Smaller and smaller lists that fail: without parts, whose size is halved down to single places."""
    size = (len(places) + 1) // 2
    while True:
        before, end = len(places), len(places)
        while end > 0:
            begin = max(end - size, 0)
            without = [*places[:begin], *places[end:]]
            if failing(without):
                places = without
                yield places
            end = begin
        if size > 1:
            size = (size + 1) // 2
        elif len(places) == before:
            return
