"""A sorted set of keys, kept in blocks so that adding or removing a key moves few others."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator, Sequence

_BLOCK = 512  # keys; a block of twice that is cut in two


class OrderedKeys:
    """A sorted set of strings."""

    def __init__(self) -> None:
        self._blocks: list[list[str]] = []
        self._lasts: list[str] = []  # of each block

    def add(self, key: str) -> None:
        """Add a key that is not there."""
        if not self._blocks:
            self._blocks.append([key])
            self._lasts.append(key)
            return
        position = min(bisect_left(self._lasts, key), len(self._blocks) - 1)
        block = self._blocks[position]
        insort(block, key)
        if len(block) >= 2 * _BLOCK:
            self._blocks.insert(position + 1, block[_BLOCK:])
            self._lasts.insert(position + 1, block[-1])
            del block[_BLOCK:]
        self._lasts[position] = block[-1]

    def extend(self, keys: Sequence[str]) -> None:
        """Add keys that come in order, behind all that are there."""
        for begin in range(0, len(keys), _BLOCK):
            block = list(keys[begin : begin + _BLOCK])
            self._blocks.append(block)
            self._lasts.append(block[-1])

    def remove(self, key: str) -> None:
        """Remove a key that is there."""
        position = bisect_left(self._lasts, key)
        block = self._blocks[position]
        del block[bisect_left(block, key)]
        if block:
            self._lasts[position] = block[-1]
        else:
            del self._blocks[position], self._lasts[position]

    def __iter__(self) -> Iterator[str]:
        """All keys in order, of which some may come and go meanwhile as in :meth:`beginning`.

        Some hundreds are copied at a time: to copy a million, and to free them at once, takes long.
        """
        start = ""
        while (position := bisect_left(self._lasts, start)) < len(self._blocks):
            block = self._blocks[position]
            some = block[bisect_left(block, start) :]
            yield from some
            start = some[-1] + "\0"  # the first text behind it

    def beginning(self, prefix: str = "", start: str = "") -> Iterator[str]:
        """The keys that begin with ``prefix``, in order, from ``start`` on.

        Keys may come and go meanwhile: new keys behind the last one are found, and some deleted ones are
        given all the same.
        """
        start = max(prefix, start)
        while True:
            position = bisect_left(self._lasts, start)
            if position == len(self._blocks):
                return
            block = self._blocks[position]
            for key in block[bisect_left(block, start) :]:
                if not key.startswith(prefix):
                    return
                yield key
            start = key + "\0"  # the first text behind it
