"""The newest offset of each key, for millions of keys in little memory; the notes of a pass of compaction.

The first names lie in a dictionary. Those that come when it is full lie, as fingerprints of 128 bits, in
hash tables made of arrays of machine integers: some 48 octets a key, where an entry of a dictionary takes
over 130. When the dictionary is full, how far the offsets have come by then tells how many more names there
will be, and the tables are made large enough for them: nothing is moved again, and the work for each key is
the same however many there are. If there are more after all, the tables grow, each by itself.

A fingerprint is Python's own keyed hash (SipHash, PEP 456) of the name, twice, the second time with random
octets before it: nobody can choose names of records that are taken for others.
"""

from __future__ import annotations

import os
from array import array
from collections.abc import Mapping, Sequence

_NAMES = 699_050  # that lie in the dictionary: as many as CPython fits into 2**20 slots, 90 MB
_SLOTS = 4096  # of a table: to double it takes a millisecond or two
_SLOT_SHIFT = 12  # lower bits of the hash than these choose the table, mostly


class NewestOffsets:
    """A map from names (any octets) to offsets (0 and up); a later one replaces an earlier one.

    ``offsets``: those that may come, in rising order; ``most``: names that may come, at most; ``names``: how
    many of them the dictionary holds.
    """

    def __init__(self, offsets: range = range(0), most: int = 2**63, names: int = _NAMES) -> None:
        self._offsets = offsets
        self._most = most
        self._names = names
        self._named: dict[bytes, int] = {}
        self._salt = os.urandom(16)
        self._tables: list[_Table] = []
        self._tabled = 0  # names in the tables

    def __len__(self) -> int:
        return len(self._named) + self._tabled

    def update(self, offsets: Mapping[bytes, int]) -> None:
        """Note offsets by their names."""
        named = self._named
        if len(named) + len(offsets) <= self._names:
            named.update(offsets)
            return
        if not self._tables:
            self._tables = [_Table(_SLOTS) for _ in range(1 + 2 * self._expected(offsets) // _SLOTS)]
        tables, salt = self._tables, self._salt
        count = len(tables)
        for name, offset in offsets.items():
            if name in named or len(named) < self._names:
                named[name] = offset
                continue
            first, second = hash(name), hash(salt + name)
            table = tables[first % count]
            rows, mask = table.rows, table.mask
            slot = first >> _SLOT_SHIFT & mask
            while rows[row := 3 * slot] >= 0:
                if rows[row + 1] == first and rows[row + 2] == second:
                    break
                slot = slot + 1 & mask
            else:
                rows[row + 1] = first
                rows[row + 2] = second
                table.used += 1
                self._tabled += 1
            rows[row] = offset
            if 3 * table.used > 2 * mask:
                table.grow()

    def _expected(self, offsets: Mapping[bytes, int]) -> int:
        """How many names there will be that do not fit into the dictionary, ``offsets`` the newest ones."""
        ahead = self._offsets
        seen = max(offsets.values()) - ahead.start
        if seen <= 0:
            return 0
        known = len(self._named) + len(offsets)
        return max(0, min(known * len(ahead) // seen, self._most) - self._names)

    def of(self, names: Sequence[bytes]) -> list[int]:
        """The offset of each name, -1 for one that is not known."""
        get = self._named.get
        if not self._tables:
            return [get(name, -1) for name in names]
        tables, salt, found = self._tables, self._salt, []
        count = len(tables)
        for name in names:
            offset = get(name, -1)
            if offset < 0:
                first = hash(name)
                table = tables[first % count]
                rows, mask = table.rows, table.mask
                slot = first >> _SLOT_SHIFT & mask
                while (offset := rows[row := 3 * slot]) >= 0:
                    if rows[row + 1] == first and rows[row + 2] == hash(salt + name):
                        break
                    slot = slot + 1 & mask
            found.append(offset)
        return found


class _Table:
    """Open addressing with linear probing, at most two thirds full.

    A slot is three numbers, side by side in memory: offset, and the two halves of the fingerprint. A free
    slot has an offset below 0.
    """

    __slots__ = ("mask", "rows", "used")

    def __init__(self, slots: int) -> None:
        self.used = 0
        self.mask = slots - 1
        self.rows = array("q", [-1]) * (3 * slots)

    def grow(self) -> None:
        """Twice as many slots."""
        old = self.rows
        mask = self.mask = 2 * self.mask + 1
        rows = self.rows = array("q", [-1]) * (3 * (mask + 1))
        for at in range(0, len(old), 3):
            if old[at] >= 0:
                slot = old[at + 1] >> _SLOT_SHIFT & mask
                while rows[3 * slot] >= 0:
                    slot = slot + 1 & mask
                rows[3 * slot : 3 * slot + 3] = old[at : at + 3]
