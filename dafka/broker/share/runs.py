"""Runs of offsets that are in the same state: how the offsets in flight of a share partition are kept.

The runs follow each other without a gap. A run is split where a part of it changes, and runs that have become
alike are joined again, so that what they cost goes by how often the state changes along the offsets, not by
how many offsets there are.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from enum import IntEnum
from operator import attrgetter
from typing import TypeVar

T = TypeVar("T")

_first = attrgetter("first")


class RecordState(IntEnum):
    """The state of a record in flight, with Kafka's numbers of the stored ones."""

    AVAILABLE = 0
    ACQUIRED = 1
    ACKNOWLEDGED = 2
    ARCHIVED = 4

    @property
    def is_final(self) -> bool:
        """Whether it is never delivered again."""
        return self >= RecordState.ACKNOWLEDGED


class Run:
    """The offsets ``first`` to ``last``, their state, and how often they were delivered.

    ``member`` has acquired them until the time ``until``. Those that it has released are available, but still
    its own until that is on disk.
    """

    __slots__ = ("count", "first", "last", "member", "state", "until")

    def __init__(
        self, first: int, last: int, state: RecordState, count: int, member: str = "", until: float = 0.0
    ) -> None:
        self.first = first
        self.last = last
        self.state = state
        self.count = count
        self.member = member
        self.until = until

    def __len__(self) -> int:
        return self.last - self.first + 1

    def __repr__(self) -> str:
        return f"Run({self.first}-{self.last} {self.state.name} {self.count} {self.member!r})"

    @property
    def is_free(self) -> bool:
        """Whether anybody may acquire them."""
        return self.state is RecordState.AVAILABLE and not self.member

    def is_like(self, other: Run) -> bool:
        """Whether the two can be one run, if one follows the other."""
        return (
            self.state is other.state
            and self.count == other.count
            and self.member == other.member
            and self.until == other.until
        )

    def before(self, offset: int) -> Run:
        """A copy of it up to this offset, which is within it."""
        return Run(self.first, offset - 1, self.state, self.count, self.member, self.until)

    def change(self, state: RecordState, count: int, member: str = "", until: float = 0.0) -> None:
        """Another state for all its offsets."""
        self.state, self.count, self.member, self.until = state, count, member, until


class Runs:
    """Runs from the offset ``start`` up to ``end``, which is behind the last one."""

    def __init__(self, start: int) -> None:
        self.start = start
        self.end = start
        self._runs: list[Run] = []

    def __len__(self) -> int:
        return len(self._runs)

    def __iter__(self) -> Iterator[Run]:
        return iter(self._runs)

    def append(self, run: Run) -> None:
        """Add a run that begins at the end."""
        assert run.first == self.end <= run.last
        self.end = run.last + 1
        _add(self._runs, run)

    def within(self, first: int, last: int) -> Iterator[Run]:
        """The runs with offsets from ``first`` to ``last``; they must not be changed meanwhile."""
        for position in range(self._position(first), len(self._runs)):
            run = self._runs[position]
            if run.first > last:
                return
            if run.last >= first:
                yield run

    def cut(self, first: int, last: int) -> list[Run]:
        """Runs of exactly the offsets ``first`` to ``last``, as far as they exist: others are split there.

        They may be changed until the next call; :meth:`join` is called afterwards.
        """
        first, last = max(first, self.start), min(last, self.end - 1)
        if first > last:
            return []
        begin = self._split(first)
        end = self._split(last + 1)
        return self._runs[begin:end]

    def join(self, first: int, last: int) -> None:
        """Join runs that are alike, from before ``first`` to behind ``last``."""
        begin = max(self._position(first) - 1, 0)
        end = min(self._position(last) + 2, len(self._runs))
        joined: list[Run] = []
        for run in self._runs[begin:end]:
            _add(joined, run)
        if len(joined) < end - begin:
            self._runs[begin:end] = joined

    def change(self, changes: Sequence[tuple[int, int, T]], change: Callable[[Run, T], None]) -> None:
        """Have ``change(run, what)`` called for runs of exactly the offsets of ``(first, last, what)``.

        They are in order, do not overlap, and exist. Goes through the runs once, however many changes there
        are, and joins those that have become alike.
        """
        if not changes:
            return
        at = max(self._position(changes[0][0]) - 1, 0)  # one before may be alike
        left = self._runs[at : self._position(changes[-1][1]) + 2]
        changed: list[Run] = []
        number, count = 0, len(changes)
        for run in left:
            end = run.last
            while number < count:  # each step as short as can be: there may be ten thousand in a turn
                first, last, what = changes[number]
                if first > end:
                    break
                if first > run.first:
                    _add(changed, run.before(first))
                    run.first = first
                if last >= end:
                    change(run, what)
                    number += last == end
                    break
                part = run.before(last + 1)
                change(part, what)
                number += 1
                if changed and changed[-1].is_like(part):
                    changed[-1].last = last
                else:
                    changed.append(part)
                run.first = last + 1
            _add(changed, run)
        self._runs[at : at + len(left)] = changed

    def move_start(self, start: int) -> None:
        """Forget everything below ``start``; if that is behind the end, the end moves as well."""
        if start <= self.start:
            return
        if start >= self.end:
            self._runs.clear()
            self.end = start
        else:
            del self._runs[: self._split(start)]
        self.start = start

    def move_end(self, end: int) -> None:
        """Forget everything from ``end`` on, which is not below the start."""
        if end < self.end:
            del self._runs[self._split(end) :]
            self.end = end

    def _position(self, offset: int) -> int:
        """The position of the run with this offset, or of the nearest one."""
        return max(bisect_right(self._runs, offset, key=_first) - 1, 0)

    def _split(self, offset: int) -> int:
        """The position of the run that begins at ``offset``, from now on; behind all runs for the end."""
        if offset >= self.end:
            return len(self._runs)
        position = self._position(offset)
        run = self._runs[position]
        if run.first == offset:
            return position
        self._runs.insert(position + 1, Run(offset, run.last, run.state, run.count, run.member, run.until))
        run.last = offset - 1
        return position + 1


def _add(runs: list[Run], run: Run) -> None:
    """Add a run behind the others, to the last one if they are alike."""
    if runs and runs[-1].is_like(run):
        runs[-1].last = run.last
    else:
        runs.append(run)
