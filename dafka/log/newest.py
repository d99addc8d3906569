"""The newest offset of each key, for millions of keys in little memory: what a pass of compaction notes.

The first names lie in a dictionary. Those that come when it is full lie, as fingerprints of 128 bits, in
hash tables made of arrays of machine integers: 36 to 72 octets a key, where an entry of a dictionary takes
over 150. A fingerprint is Python's own keyed hash (SipHash, PEP 456) of the name, twice, the second time with
random octets before it: nobody can choose names of records that are taken for others.
"""

from __future__ import annotations

import os
from array import array
from collections.abc import Mapping, Sequence

_TABLES = 256  # each grows by itself, in milliseconds; chosen by the lowest bits of the hash
_TABLE_BITS = 8
_FIRST_SLOTS = 64
_NAMES = 200_000  # that lie in the dictionary: 30 MB


class NewestOffsets:
    """A map from names (any octets) to offsets (0 and up); a later one replaces an earlier one.

    ``names``: how many of them the dictionary holds.
    """

    def __init__(self, names: int = _NAMES) -> None:
        self._names = names
        self._named: dict[bytes, int] = {}
        self._salt = os.urandom(16)
        self._tables: list[_Table] = []

    def __len__(self) -> int:
        return len(self._named) + sum(table.used for table in self._tables)

    def update(self, offsets: Mapping[bytes, int]) -> None:
        """Note offsets by their names."""
        named = self._named
        if len(named) + len(offsets) <= self._names:
            named.update(offsets)
            return
        if not self._tables:
            self._tables = [_Table() for _ in range(_TABLES)]
        tables, salt = self._tables, self._salt
        for name, offset in offsets.items():
            if name in named or len(named) < self._names:
                named[name] = offset
            else:
                first = hash(name)
                tables[first & (_TABLES - 1)].put(first, hash(salt + name), offset)

    def of(self, names: Sequence[bytes]) -> list[int]:
        """The offset of each name, -1 for one that is not known."""
        get = self._named.get
        if not self._tables:
            return [get(name, -1) for name in names]
        tables, salt, found = self._tables, self._salt, []
        for name in names:
            offset = get(name, -1)
            if offset < 0:
                first = hash(name)
                table = tables[first & (_TABLES - 1)]
                firsts, offsets, mask = table.firsts, table.offsets, table.mask
                slot = first >> _TABLE_BITS & mask
                while (offset := offsets[slot]) >= 0:
                    if firsts[slot] == first and table.seconds[slot] == hash(salt + name):
                        break
                    slot = slot + 1 & mask
            found.append(offset)
        return found


class _Table:
    """Open addressing with linear probing, at most two thirds full. A free slot has an offset below 0."""

    __slots__ = ("firsts", "mask", "offsets", "seconds", "used")

    def __init__(self) -> None:
        self.used = 0
        self._clear(_FIRST_SLOTS)

    def put(self, first: int, second: int, offset: int) -> None:
        firsts, offsets, mask = self.firsts, self.offsets, self.mask
        slot = first >> _TABLE_BITS & mask
        while offsets[slot] >= 0:
            if firsts[slot] == first and self.seconds[slot] == second:
                offsets[slot] = offset
                return
            slot = slot + 1 & mask
        firsts[slot], self.seconds[slot], offsets[slot] = first, second, offset
        self.used += 1
        if 3 * self.used > 2 * mask:
            self._grow()

    def _grow(self) -> None:
        entries = zip(self.firsts, self.seconds, self.offsets, strict=True)
        self._clear(2 * (self.mask + 1))
        self.used = 0
        for first, second, offset in entries:
            if offset >= 0:
                self.put(first, second, offset)

    def _clear(self, slots: int) -> None:
        self.mask = slots - 1
        self.firsts = array("q", bytes(8 * slots))
        self.seconds = array("q", bytes(8 * slots))
        self.offsets = array("q", [-1]) * slots
