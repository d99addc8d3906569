"""The numbers of chunks: how they lie in an array, one of each as a sequence, and small ones at the end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, overload

FIRST, NEXT, BASE, END, TIME, PEAK, SIZE = range(7)  # the columns; the peak is the running maximum of times
WIDTH = 7


class Numbers(Protocol):
    """An index: some numbers of each chunk."""

    def __len__(self) -> int: ...

    def number_at(self, position: int, column: int) -> int:
        """A number of the chunk at ``position``."""

    def numbers(self, start: int, stop: int, step: int, column: int) -> Sequence[int]:
        """The numbers of some chunks."""


class Column(Sequence[int]):
    """One column of ``index``, as it is whenever it is asked."""

    __slots__ = ("_column", "_index")

    def __init__(self, index: Numbers, column: int) -> None:
        self._index = index
        self._column = column

    def __len__(self) -> int:
        return len(self._index)

    @overload
    def __getitem__(self, position: int) -> int: ...
    @overload
    def __getitem__(self, position: slice) -> Sequence[int]: ...
    def __getitem__(self, position: int | slice) -> int | Sequence[int]:
        if isinstance(position, slice):
            return self._index.numbers(*position.indices(len(self)), self._column)
        if position < 0:
            position += len(self)
        if position < 0:
            raise IndexError(f"position {position} of {len(self)}")
        return self._index.number_at(position, self._column)


def small_before(
    rows: Sequence[int], begin: int, behind: int, sequence: int, size: int, floor: int, least: int
) -> int:
    """How many chunks from place ``behind`` backwards, the last of which ends at ``sequence``, are below
    ``size`` bytes and follow each other without a gap; none begins before place ``begin``, or below the
    sequence ``floor``. 0 if there are fewer than ``least``.

    Each append of a little asks for it, so it looks at the numbers themselves, without a call for each.
    """
    farthest = behind - least * WIDTH
    if farthest < begin or (least and rows[farthest + SIZE] >= size):
        return 0
    found = 0
    for row in range(behind - WIDTH, begin - 1, -WIDTH):
        if rows[row + SIZE] >= size or rows[row + NEXT] != sequence or rows[row + FIRST] < floor:
            break
        sequence = rows[row + FIRST]
        found += 1
    return found if found >= least else 0
