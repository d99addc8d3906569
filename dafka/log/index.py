"""Where the messages of one partition are: a row of numbers for each chunk, in one array, found by bisection.

56 bytes a chunk, and one object for the garbage collector to go through, however many there are: a process
may have a hundred thousand partitions, and everything in it stops for a collection. The chunks are in the
order of their sequences, which is the order of their offsets too. Timestamps come from clients and need not
rise, so a running maximum is kept with them: the first chunk whose running maximum reaches a time is the
first chunk with a record of that time or later.
"""

from __future__ import annotations

import contextlib
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from itertools import accumulate, chain
from operator import le, lt
from typing import overload

from dafka.log.chunk import KIND_NAMES, ChunkKey, unpack_keys

_BLOCK = 1024  # sizes that are summed up at a time

_FIRST, _NEXT, _BASE, _END, _TIME, _PEAK, _SIZE = range(7)  # the columns; the peak is the running maximum
_WIDTH = 7


class _Column(Sequence[int]):
    """One number of each chunk."""

    __slots__ = ("_column", "_rows")

    def __init__(self, rows: array[int], column: int) -> None:
        self._rows = rows
        self._column = column

    def __len__(self) -> int:
        return len(self._rows) // _WIDTH

    @overload
    def __getitem__(self, position: int) -> int: ...
    @overload
    def __getitem__(self, position: slice) -> Sequence[int]: ...
    def __getitem__(self, position: int | slice) -> int | Sequence[int]:
        if isinstance(position, slice):
            start, stop, step = position.indices(len(self))
            return self._rows[start * _WIDTH + self._column : stop * _WIDTH : step * _WIDTH]
        if position < 0:
            position += len(self)
        if position < 0:
            raise IndexError(f"position {position} of {len(self)}")
        return self._rows[position * _WIDTH + self._column]


class ChunkIndex:
    """The chunks of partition ``number``, first to last."""

    __slots__ = ("_rows", "bytes", "floor_offset", "floor_sequence", "kind", "number")

    def __init__(self, number: int = -1) -> None:
        self.number = number
        self.kind = 0
        self.bytes = 0
        self.floor_sequence = 0  # messages below it, and records below floor_offset, were trimmed
        self.floor_offset = 0
        self._rows = array("q")

    def __len__(self) -> int:
        return len(self._rows) // _WIDTH

    def __getitem__(self, position: int) -> ChunkKey:
        if not 0 <= position < len(self):
            raise IndexError(f"chunk {position} of {len(self)}")
        first, next_, base, end, time, _, size = self._rows[position * _WIDTH : (position + 1) * _WIDTH]
        return ChunkKey(self.number, first, next_, base, end, time, size, self.kind)

    @property
    def first_sequence(self) -> int:
        return max(self._rows[_FIRST], self.floor_sequence) if self._rows else 0

    @property
    def next_sequence(self) -> int:
        return self._rows[_NEXT - _WIDTH] if self._rows else 0

    @property
    def first_offset(self) -> int:
        """Where the records begin: a reader at this offset or a later one has missed none.

        If trimming ends in a gap, the offsets up to the first record belong to no record.
        """
        return (self.floor_offset or self._rows[_BASE]) if self._rows else 0

    @property
    def next_offset(self) -> int:
        return self._rows[_END - _WIDTH] if self._rows else 0

    @property
    def firsts(self) -> Sequence[int]:
        """First sequence of each chunk."""
        return _Column(self._rows, _FIRST)

    @property
    def nexts(self) -> Sequence[int]:
        """The sequence behind the last one of each chunk."""
        return _Column(self._rows, _NEXT)

    @property
    def ends(self) -> Sequence[int]:
        """The offset behind the last one of each chunk."""
        return _Column(self._rows, _END)

    @property
    def sizes(self) -> Sequence[int]:
        """Size of each chunk's value in bytes."""
        return _Column(self._rows, _SIZE)

    @property
    def times(self) -> Sequence[int]:
        """Largest timestamp of each chunk in ms."""
        return _Column(self._rows, _TIME)

    @property
    def largest_timestamp(self) -> int:
        return self._rows[_PEAK - _WIDTH] if self._rows else -1

    def at_sequence(self, sequence: int) -> int:
        """Position of the first chunk that ends after ``sequence``; the number of chunks if there is none."""
        return bisect_right(memoryview(self._rows)[_NEXT::_WIDTH], sequence)

    def at_offset(self, offset: int) -> int:
        """Position of the first chunk that ends after ``offset``; the number of chunks if there is none."""
        return bisect_right(memoryview(self._rows)[_END::_WIDTH], offset)

    def at_timestamp(self, timestamp: int) -> int:
        """Position of the first chunk with a record of ``timestamp`` (ms) or later, likewise."""
        return bisect_left(memoryview(self._rows)[_PEAK::_WIDTH], timestamp)

    def older_than(self, timestamp: int, most: int) -> int:
        """How many chunks at the front have nothing but records before ``timestamp`` (ms); one with records
        that have no timestamp (-1) ends them. ``most``: no more are looked at."""
        count = min(self.at_timestamp(timestamp), most)
        with contextlib.suppress(ValueError):
            count = self._rows[_TIME : count * _WIDTH : _WIDTH].index(-1)
        return count

    def beyond(self, keep_bytes: int, most: int) -> int:
        """How many chunks at the front can go so that at least ``keep_bytes`` bytes of values remain;
        ``most``: no more are looked at."""
        position, spare, count, sizes = 0, self.bytes - keep_bytes, min(len(self), most), self.sizes
        while position < count and spare > 0:
            block = sum(sizes[position : min(position + _BLOCK, count)])
            if block > spare:
                break
            spare -= block
            position += _BLOCK
        while position < count and 0 < sizes[position] <= spare:
            spare -= sizes[position]
            position += 1
        return min(position, count)

    def extend(self, keys: Iterable[ChunkKey]) -> None:
        """Add chunks behind the last one. Raises ValueError if one does not come after the one before."""
        rows = self._rows
        for _, first, next_, base, end, time, size, kind in keys:
            peak = time
            if rows:
                last_next, last_end = rows[_NEXT - _WIDTH], rows[_END - _WIDTH]
                if first < last_next or base < last_end or kind != self.kind:
                    raise ValueError(
                        f"sequences {first} to {next_ - 1} (offsets {base} to {end - 1}) overlap the chunk "
                        f"before them (to {last_next - 1}, {last_end - 1}), or are of another kind"
                    )
                peak = max(time, rows[_PEAK - _WIDTH])
            self.kind = kind
            rows.extend((first, next_, base, end, time, peak, size))
            self.bytes += size

    def extend_packed(self, keys: Sequence[bytes]) -> None:
        """The same with packed keys: several times as fast, by columns instead of chunk by chunk."""
        _, _, firsts, nexts, bases, ends, times, sizes, kinds = zip(*unpack_keys(keys), strict=True)
        before, behind = (self.next_sequence, self.next_offset) if self._rows else (firsts[0], bases[0])
        kind = self.kind or kinds[0]
        if not (
            all(map(lt, firsts, nexts))
            and all(map(lt, bases, ends))
            and all(map(le, chain((before,), nexts), firsts))
            and all(map(le, chain((behind,), ends), bases))
            and kind in KIND_NAMES
            and kinds.count(kind) == len(kinds)
        ):
            self.extend(map(ChunkKey.unpack, keys))  # which says what is wrong
            return
        highest = self.largest_timestamp if self._rows else times[0]
        peaks = list(accumulate(times, max, initial=highest))[1:]
        rows = array("q", bytes(8 * _WIDTH * len(keys)))
        for place, column in enumerate((firsts, nexts, bases, ends, times, peaks, sizes)):
            rows[place::_WIDTH] = array("q", column)
        self.kind = kind
        self._rows.extend(rows)
        self.bytes += sum(sizes)

    def drop_last(self, count: int) -> None:
        """Forget the last ``count`` chunks."""
        if count:
            self._drop(len(self) - count, len(self))

    def drop_trimmed(self) -> list[ChunkKey]:
        """Forget the chunks that lie below the floor as a whole, except the last one; they are returned.

        The last one stays because it says where the partition stands.
        """
        if not self._rows or self._rows[_NEXT] > self.floor_sequence:
            return []
        count = min(self.at_sequence(self.floor_sequence), self.at_offset(self.floor_offset), len(self) - 1)
        dropped = [self[position] for position in range(count)]
        if count > 0:
            self._drop(0, count)
            self._find_peaks(0, 0)
        return dropped

    def clear(self) -> list[ChunkKey]:
        """Forget all chunks; they are returned."""
        dropped = [self[position] for position in range(len(self))]
        self._drop(0, len(self))
        return dropped

    def find(self, keys: Sequence[ChunkKey]) -> int:
        """The position where exactly these chunks stand, one after the other; -1 if they do not."""
        start = self.at_sequence(keys[0].first)
        if start + len(keys) > len(self):
            return -1
        return start if all(self[start + number] == key for number, key in enumerate(keys)) else -1

    def replace(self, position: int, count: int, keys: Sequence[ChunkKey]) -> None:
        """Put chunks in the place of ``count`` that hold the same range together."""
        end = position + count
        self.bytes += sum(key.size for key in keys) - sum(self.sizes[position:end])
        rows = array("q")
        for _, first, next_, base, base_end, time, size, _ in keys:
            rows.extend((first, next_, base, base_end, time, time, size))
        self._rows[position * _WIDTH : end * _WIDTH] = rows
        self._find_peaks(position, position + len(keys))

    def _drop(self, start: int, end: int) -> None:
        self.bytes -= sum(self.sizes[start:end])
        del self._rows[start * _WIDTH : end * _WIDTH]

    def _find_peaks(self, start: int, end: int) -> None:
        """Find the running maxima anew from ``start`` on: to ``end``, and then to the first that is right."""
        rows = self._rows
        peak = rows[(start - 1) * _WIDTH + _PEAK] if start else rows[_TIME]
        for row in range(start * _WIDTH, len(rows), _WIDTH):
            peak = max(peak, rows[row + _TIME])
            if row >= end * _WIDTH and rows[row + _PEAK] == peak:
                return
            rows[row + _PEAK] = peak
