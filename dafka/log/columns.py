"""One number of each chunk of an index, as a sequence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, overload


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
