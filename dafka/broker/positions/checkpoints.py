"""Checkpoints: which position the records of a partition have at some of its offsets.

A checkpoint is an offset and the position of the first visible record from there on. Offsets rise and
positions do not fall, so a position is found by bisection, and the octets between two checkpoints are those
of the visible records between them.

Checkpoints stand in rows of the log's table ``positions``, CHECKPOINT_BLOCK in each, so finding one reads one
row however many there are: a row's key says its first checkpoint. The last row, the *tail*, is kept in memory
and written again as it grows, each time with the place that has been measured up to as its last checkpoint.
Behind the tail, in memory alone, stands each place that was measured since (*recent*), so a reader at the end
finds its batch at once.
"""

from __future__ import annotations

import sys
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import NamedTuple

from dafka.broker.limits import CHECKPOINT_BLOCK, CHECKPOINT_BYTES, CHECKPOINT_OCTETS
from dafka.commit.rows import Rows
from dafka.hub.turns import Pace
from dafka.log import Log
from dafka.log.table import Table

POSITIONS = "positions"

OFFSET, POSITION = 0, 1  # the columns


class Checkpoint(NamedTuple):
    """``position`` is that of the first visible record at ``offset`` or behind it."""

    offset: int
    position: int


class _Block:
    """Checkpoints in their order."""

    __slots__ = ("columns",)

    def __init__(self) -> None:
        self.columns = array("q"), array("q")

    @classmethod
    def of(cls, stored: bytes) -> _Block:
        numbers = array("q")
        numbers.frombytes(stored)
        if sys.byteorder == "little":
            numbers.byteswap()
        self = cls()
        self.columns = numbers[0::2], numbers[1::2]
        return self

    def stored(self, *more: Checkpoint) -> bytes:
        numbers = array("q", bytes(16 * (len(self) + len(more))))
        for column, values in enumerate(self.columns):
            numbers[column::2] = values + array("q", [one[column] for one in more])
        if sys.byteorder == "little":
            numbers.byteswap()
        return numbers.tobytes()

    def __len__(self) -> int:
        return len(self.columns[0])

    def __getitem__(self, place: int) -> Checkpoint:
        return Checkpoint(*(column[place] for column in self.columns))

    def append(self, checkpoint: Checkpoint) -> None:
        for column, value in zip(self.columns, checkpoint, strict=True):
            column.append(value)

    def at_or_before(self, column: int, value: int) -> Checkpoint | None:
        place = bisect_right(self.columns[column], value)
        return self[place - 1] if place else None

    def at_or_after(self, column: int, value: int) -> Checkpoint | None:
        place = bisect_left(self.columns[column], value)
        return self[place] if place < len(self) else None


class Checkpoints:
    """The checkpoints of one partition, of which there is at least one. ``name`` is how rows name it.

    Many rows are gone through with pauses. Raises LookupError if there are none, or if they are deleted
    meanwhile.
    """

    def __init__(self, log: Log, name: str) -> None:
        self._table: Table = log.table(POSITIONS)
        self._prefix = name + "/"
        self._rows = _Block()  # the first checkpoint of each row but the last one
        self._unwritten: dict[str, _Block] = {}  # rows that are full and not committed yet
        for key in Pace().over(self._table.keys(self._prefix)):
            self._rows.append(_first(key))
        tail = self._rows[len(self._rows) - 1]
        for column in self._rows.columns:
            column.pop()
        self._tail = _Block.of(self._load(tail))
        self._recent = _Block()
        self._bytes = 0  # of batches since the last checkpoint of the tail
        self.stored = self.end.offset
        """The offset of the last checkpoint that is committed."""

    @property
    def begin(self) -> Checkpoint:
        """Where the positions began."""
        return self._rows[0] if self._rows else self._tail[0]

    @property
    def end(self) -> Checkpoint:
        """The place that has been measured up to."""
        block = self._recent or self._tail
        return block[len(block) - 1]

    def at_or_before(self, column: int, value: int) -> Checkpoint | None:
        """The last checkpoint whose OFFSET or POSITION, as ``column`` says, is at most ``value``."""
        for block in (self._recent, self._tail):
            if block and block.columns[column][0] <= value:
                return block.at_or_before(column, value)
        row = bisect_right(self._rows.columns[column], value)
        return self._row(row - 1).at_or_before(column, value) if row else None

    def at_or_after(self, column: int, value: int) -> Checkpoint | None:
        """The first checkpoint of the row that has one whose OFFSET or POSITION is at least ``value``."""
        if self._tail.columns[column][0] > value:
            row = bisect_left(self._rows.columns[column], value)
            found = self._row(row - 1).at_or_after(column, value) if row else None
            if found is not None:
                return found
            return self._rows[row] if row < len(self._rows) else self._tail[0]
        return self._tail.at_or_after(column, value) or self._recent.at_or_after(column, value)

    def _row(self, row: int) -> _Block:
        first = self._rows[row]
        return self._unwritten.get(self._key(first)) or _Block.of(self._load(first))

    def _load(self, first: Checkpoint) -> bytes:
        stored = self._table.get(self._key(first))
        if stored is None:
            raise LookupError(f"the checkpoints of {self._prefix[:-1]} from {first} on are deleted")
        return stored  # type: ignore[no-any-return]

    # -- growing --------------------------------------------------------------------------------

    def grow(self, offset: int, octets: int, batch_bytes: int) -> None:
        """The records from the end up to ``offset`` have so many octets, as far as there are any."""
        end = Checkpoint(offset, self.end.position + octets)
        self._bytes += batch_bytes
        far = end.position - self._tail[len(self._tail) - 1].position >= CHECKPOINT_OCTETS
        if far or self._bytes >= CHECKPOINT_BYTES:
            self._add(end)
        else:
            self._recent.append(end)

    def _add(self, checkpoint: Checkpoint) -> None:
        if len(self._tail) >= CHECKPOINT_BLOCK:
            first = self._tail[0]
            self._unwritten[self._key(first)] = self._tail
            self._rows.append(first)
            self._tail = _Block()
        self._tail.append(checkpoint)
        self._recent = _Block()
        self._bytes = 0

    # -- rows -----------------------------------------------------------------------------------

    @property
    def full_rows(self) -> int:
        """How many rows are full and not committed."""
        return len(self._unwritten)

    def rows(self) -> Rows:
        """The rows to write, so that everything up to the end is stored."""
        rows: Rows = {(POSITIONS, key): block.stored() for key, block in self._unwritten.items()}
        rows[POSITIONS, self._key(self._tail[0])] = self._tail.stored(*([self.end] if self._recent else []))
        return rows

    def written(self, rows: Rows, end: Checkpoint) -> None:
        """The rows that :meth:`rows` returned when the end was ``end`` are committed."""
        for _, key in rows:
            self._unwritten.pop(key, None)
        self.stored = max(self.stored, end.offset)

    def rows_below(self, offset: int) -> Rows:
        """Deletes the rows that are not needed for records from ``offset`` on. The first row stays,
        because it says where the positions began."""
        last = bisect_right(self._rows.columns[OFFSET], offset) - (offset < self._tail[0].offset)
        keys = [self._key(self._rows[row]) for row in range(1, last)]
        return {(POSITIONS, key): None for key in keys if key not in self._unwritten}

    def drop(self, rows: Rows) -> None:
        """The rows that :meth:`rows_below` said are deleted."""
        for column in self._rows.columns:
            del column[1 : 1 + len(rows)]

    def _key(self, first: Checkpoint) -> str:
        return _key(self._prefix, first)


def first_rows(name: str, begin: Checkpoint) -> Rows:
    """The rows of a partition whose positions begin."""
    block = _Block()
    block.append(begin)
    return {(POSITIONS, _key(name + "/", begin)): block.stored()}


def rows_before(log: Log, name: str, end: int) -> Rows:
    """Deletes the checkpoints behind the offset ``end`` from a partition's rows; one stays at least."""
    table = log.table(POSITIONS)
    rows: Rows = {}
    kept = False
    for key in list(table.keys(name + "/")):
        block = _Block.of(table.get(key))
        left = bisect_right(block.columns[OFFSET], end)
        if left < len(block):
            first = block[0]
            rows[POSITIONS, key] = None
            if left:
                block.columns = block.columns[0][:left], block.columns[1][:left]
                rows[POSITIONS, key] = block.stored()
            elif not kept:
                rows.update(first_rows(name, Checkpoint(end, first.position)))
        kept = True
    return rows


def has_positions(log: Log, name: str) -> bool:
    """Whether the positions of a partition have begun, or those of one of many, for the front of a name."""
    return any(True for _ in log.table(POSITIONS).keys(name + "/"))


def places_of(log: Log, prefix: str) -> Iterator[tuple[str, str]]:
    """The rows of all partitions whose names begin with ``prefix``."""
    return ((POSITIONS, key) for key in log.table(POSITIONS).keys(prefix))


def _key(prefix: str, first: Checkpoint) -> str:
    return f"{prefix}{first.offset:016x}/{first.position:016x}"


def _first(key: str) -> Checkpoint:
    return Checkpoint(*(int(number, 16) for number in key.rsplit("/", 2)[1:]))
