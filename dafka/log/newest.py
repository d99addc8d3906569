"""The newest offset of each key, for millions of keys in little memory: what a pass of compaction notes.

Where there will be no more names than fit into a dictionary, they lie in one. For more of them, fingerprints
of 128 bits lie in a hash table in an array of machine integers: 48 octets a key or some more, where an entry
of a dictionary takes over 130. When enough names are known, how far the offsets have come by then tells how
many there will be, and the table is made large enough for them: the work for each key is the same however
many there are. If there are more after all, another one is made, twice as large.

A fingerprint is Python's own keyed hash (SipHash, PEP 456) of the name, twice, the second time with random
octets before it: nobody can choose names of records that are taken for others.
"""

from __future__ import annotations

import os
from array import array
from collections.abc import Iterable, Mapping, Sequence

_NAMES = 699_050  # that lie in the dictionary: as many as CPython fits into 2**20 slots, 90 MB
_TELLING = 65_536  # names that tell how many there will be
_SLOTS = 4096  # of a table at least
_ROW = 3  # numbers of a slot
_ZEROS = bytes(1024 * 1024)  # made at once, in a call in which no other thread runs


class NewestOffsets:
    """A map from names (any octets) to offsets (0 and up); a later one replaces an earlier one.

    ``offsets``: those that may come, in rising order; ``most``: names that may come, at most; ``names``: how
    many of them the dictionary holds.
    """

    def __init__(self, offsets: range = range(0), most: int = 2**63, names: int = _NAMES) -> None:
        self._offsets = offsets
        self._most = most
        self._names = names
        self._telling = min(names, _TELLING)  # so many names, and it is looked how many there will be
        self._named: dict[bytes, int] = {}
        self._salt = os.urandom(16)
        self._table: _Table | None = None

    def __len__(self) -> int:
        return len(self._named) if self._table is None else self._table.used

    def update(self, offsets: Mapping[bytes, int]) -> None:
        """Note offsets by their names."""
        table, named = self._table, self._named
        if table is None:
            known = len(named) + len(offsets)
            if known <= self._telling:
                named.update(offsets)
                return
            expected = self._expected(known, offsets)
            if expected <= self._names:
                self._telling = self._names
                named.update(offsets)
                return
            table = self._table = _Table(expected)
            table.put(*self._fingerprints(named), named.values())
            named.clear()
        table = self._table = table.with_room(len(offsets))
        table.put(*self._fingerprints(offsets), offsets.values())

    def of(self, names: Sequence[bytes]) -> list[int]:
        """The offset of each name, -1 for one that is not known."""
        if self._table is not None:
            return self._table.get(*self._fingerprints(names))
        get = self._named.get
        return [get(name, -1) for name in names]

    def _fingerprints(self, names: Iterable[bytes]) -> tuple[Iterable[int], Iterable[int]]:
        return map(hash, names), map(hash, map(self._salt.__add__, names))

    def _expected(self, known: int, offsets: Mapping[bytes, int]) -> int:
        """How many names there will be where so many are known, ``offsets`` the newest ones."""
        ahead = self._offsets
        seen = max(offsets.values()) - ahead.start
        return max(known, min(known * len(ahead) // seen, self._most) if seen > 0 else 0)


class _Table:
    """Open addressing with linear probing: half full with the names that are expected.

    A slot is three numbers, side by side in memory: the offset and 1, and the two halves of the fingerprint.
    The first is 0 in a free slot.
    """

    __slots__ = ("_end", "_rows", "_slots", "used")

    def __init__(self, names: int) -> None:
        self.used = 0
        self._slots = max(2 * names, _SLOTS)
        self._end = _ROW * self._slots
        self._rows = array("q")
        left = self._rows.itemsize * self._end
        while left > 0:
            self._rows.frombytes(_ZEROS[:left])
            left -= len(_ZEROS)

    def with_room(self, more: int) -> _Table:
        """This table, or a larger one, for so many names more: two thirds are full at most."""
        if 3 * (self.used + more) <= 2 * self._slots:
            return self
        larger, rows = _Table(2 * (self.used + more)), self._rows
        for begin in range(0, self._end, _ROW * _SLOTS):  # all at once they would take hundreds of MB
            taken = [row for row in range(begin, min(begin + _ROW * _SLOTS, self._end), _ROW) if rows[row]]
            firsts, seconds, behind = ([rows[row + place] for row in taken] for place in (1, 2, 0))
            larger.put(firsts, seconds, [offset - 1 for offset in behind])
        return larger

    def put(self, firsts: Iterable[int], seconds: Iterable[int], offsets: Iterable[int]) -> None:
        """Note an offset for each fingerprint; there is room for all."""
        rows, slots, end = self._rows, self._slots, self._end
        used = 0
        for first, second, offset in zip(firsts, seconds, offsets, strict=True):
            row = _ROW * (first % slots)
            while rows[row]:
                if rows[row + 1] == first and rows[row + 2] == second:
                    break
                row += _ROW
                if row == end:
                    row = 0
            else:
                rows[row + 1] = first
                rows[row + 2] = second
                used += 1
            rows[row] = offset + 1
        self.used += used

    def get(self, firsts: Iterable[int], seconds: Iterable[int]) -> list[int]:
        """The offset of each fingerprint, -1 for one that is not there."""
        rows, slots, end = self._rows, self._slots, self._end
        found = []
        for first, second in zip(firsts, seconds, strict=True):
            row = _ROW * (first % slots)
            while behind := rows[row]:
                if rows[row + 1] == first and rows[row + 2] == second:
                    break
                row += _ROW
                if row == end:
                    row = 0
            found.append(behind - 1)
        return found
