"""The aborted transactions of one partition, whose records readers of committed records skip.

An entry says whose transaction it was, where its records begin, and where its abort marker is. Entries stand
in the order of their markers, ABORTED_BLOCK of them in one row of the log's table ``aborted``, and the last
row is written again with each abort, in the same transaction as the marker. Rows below the start of the log
go, from the front, so that entry and row can be told from each other by counting.
"""

from __future__ import annotations

import re
import struct
from array import array
from bisect import bisect_left
from collections.abc import Iterator
from typing import NamedTuple

from dafka.broker.limits import ABORTED_BLOCK
from dafka.commit.rows import Rows
from dafka.log import Log, shapes

ABORTED = "aborted"
_ENTRY = struct.Struct(">qqqq")

ABORTED_ROWS = shapes.rows(
    re.compile("[0-9a-f]{32}/[0-9]{1,6}/[0-9]{12}").fullmatch,
    shapes.octets(lambda size: size and not size % _ENTRY.size),
)


class AbortedTransaction(NamedTuple):
    """``first`` and ``last`` are the offsets of its first record and of its marker. ``stable`` is where the
    last stable offset went with the marker, so no later entry begins below it."""

    producer_id: int
    first: int
    last: int
    stable: int


class AbortedIndex:
    """The entries of one partition, loaded once. ``name`` is how rows name the partition."""

    def __init__(self, log: Log, name: str) -> None:
        self._prefix = name + "/"
        self._columns = tuple(array("q") for _ in AbortedTransaction._fields)
        self._first_row = 0
        for number, (key, stored) in enumerate(log.table(ABORTED).items(self._prefix)):
            if not number:
                self._first_row = int(key.rpartition("/")[2])
            for column, values in zip(
                self._columns, zip(*_ENTRY.iter_unpack(stored), strict=True), strict=True
            ):
                column.extend(values)

    def __len__(self) -> int:
        return len(self._columns[0])

    def between(self, start: int, end: int) -> list[AbortedTransaction]:
        """The transactions with records from offset ``start`` up to ``end``."""
        _, firsts, lasts, stables = self._columns
        found = []
        for position in range(bisect_left(lasts, start), len(lasts)):
            if firsts[position] < end:
                found.append(self._entry(position))
            if stables[position] >= end:
                break
        return found

    def add(self, entry: AbortedTransaction) -> Rows:
        """Add an entry behind all others; the row that holds it."""
        for column, value in zip(self._columns, entry, strict=True):
            column.append(value)
        row = (len(self) - 1) // ABORTED_BLOCK
        return {(ABORTED, self._key(row)): self._stored(row)}

    def take_back(self, entry: AbortedTransaction) -> None:
        """The round of an entry failed."""
        position = bisect_left(self._columns[2], entry.last)
        for column in self._columns:
            column.pop(position)

    def cut(self, end: int) -> tuple[list[AbortedTransaction], Rows]:
        """Take out the transactions whose markers are at ``end`` or behind it; they, and rows that change."""
        position = bisect_left(self._columns[2], end)
        taken = [self._entry(number) for number in range(position, len(self))]
        last_row = (len(self) - 1) // ABORTED_BLOCK
        for column in self._columns:
            del column[position:]
        rows: Rows = {}
        for row in range(position // ABORTED_BLOCK, last_row + 1):
            rows[ABORTED, self._key(row)] = self._stored(row)
        return taken, rows

    def _stored(self, row: int) -> bytes | None:
        """The row's value; None if it has no entries."""
        block = range(row * ABORTED_BLOCK, min(len(self), (row + 1) * ABORTED_BLOCK))
        return b"".join(_ENTRY.pack(*self._entry(position)) for position in block) or None

    def rows_below(self, offset: int) -> Rows:
        """Rows that delete the full rows at the front, all of whose markers lie below ``offset``."""
        rows: Rows = {}
        lasts = self._columns[2]
        while (end := (len(rows) + 1) * ABORTED_BLOCK) <= len(lasts) and lasts[end - 1] < offset:
            rows[ABORTED, self._key(len(rows))] = None
        return rows

    def drop(self, rows: int) -> None:
        """So many rows at the front are deleted."""
        for column in self._columns:
            del column[: rows * ABORTED_BLOCK]
        self._first_row += rows

    @staticmethod
    def places_of(log: Log, prefix: str) -> Iterator[tuple[str, str]]:
        """The rows of all partitions whose names begin with ``prefix``."""
        return ((ABORTED, key) for key in log.table(ABORTED).keys(prefix))

    def _entry(self, position: int) -> AbortedTransaction:
        return AbortedTransaction._make(column[position] for column in self._columns)

    def _key(self, row: int) -> str:
        return f"{self._prefix}{self._first_row + row:012}"
