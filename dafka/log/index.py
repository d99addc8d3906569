"""Where the messages of one partition are: a few numbers for each chunk, in arrays, found by bisection.

Some 50 bytes a chunk. The chunks are in the order of their sequences, which is the order of their offsets
too. Timestamps come from clients and need not rise, so a running maximum is kept with them: the first chunk
whose running maximum reaches a time is the first chunk with a record of that time or later.
"""

from __future__ import annotations

import contextlib
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence

from dafka.log.chunk import ChunkKey

_BLOCK = 1024  # sizes that are summed up at a time


class ChunkIndex:
    """The chunks of partition ``number``, first to last."""

    __slots__ = (
        "_bases", "_ends", "_firsts", "_nexts", "_peaks", "_sizes", "_times", "bytes", "floor_offset",
        "floor_sequence", "kind", "number",
    )  # fmt: skip

    def __init__(self, number: int = -1) -> None:
        self.number = number
        self.kind = 0
        self.bytes = 0
        self.floor_sequence = 0  # messages below it, and records below floor_offset, were trimmed
        self.floor_offset = 0
        self._firsts = array("Q")
        self._nexts = array("Q")
        self._bases = array("q")
        self._ends = array("q")
        self._times = array("q")
        self._peaks = array("q")
        self._sizes = array("I")

    def __len__(self) -> int:
        return len(self._nexts)

    def __getitem__(self, position: int) -> ChunkKey:
        return ChunkKey(
            self.number,
            self._firsts[position],
            self._nexts[position],
            self._bases[position],
            self._ends[position],
            self._times[position],
            self._sizes[position],
            self.kind,
        )

    @property
    def first_sequence(self) -> int:
        return max(self._firsts[0], self.floor_sequence) if self._firsts else 0

    @property
    def next_sequence(self) -> int:
        return self._nexts[-1] if self._nexts else 0

    @property
    def first_offset(self) -> int:
        """Where the records begin: no record is lost to a reader that stands there or behind.

        What was trimmed may end in a gap. The offsets from there to the first record are those of none.
        """
        return (self.floor_offset or self._bases[0]) if self._bases else 0

    @property
    def next_offset(self) -> int:
        return self._ends[-1] if self._ends else 0

    @property
    def firsts(self) -> Sequence[int]:
        """First sequence of each chunk."""
        return self._firsts

    @property
    def nexts(self) -> Sequence[int]:
        """The sequence behind the last one of each chunk."""
        return self._nexts

    @property
    def ends(self) -> Sequence[int]:
        """The offset behind the last one of each chunk."""
        return self._ends

    @property
    def sizes(self) -> Sequence[int]:
        """Size of each chunk's value in bytes."""
        return self._sizes

    @property
    def times(self) -> Sequence[int]:
        """Largest timestamp of each chunk in ms."""
        return self._times

    @property
    def largest_timestamp(self) -> int:
        return self._peaks[-1] if self._peaks else -1

    def at_sequence(self, sequence: int) -> int:
        """Position of the first chunk that ends after ``sequence``; the number of chunks if there is none."""
        return bisect_right(self._nexts, sequence)

    def at_offset(self, offset: int) -> int:
        """Position of the first chunk that ends after ``offset``; the number of chunks if there is none."""
        return bisect_right(self._ends, offset)

    def at_timestamp(self, timestamp: int) -> int:
        """Position of the first chunk with a record of ``timestamp`` (ms) or later, likewise."""
        return bisect_left(self._peaks, timestamp)

    def older_than(self, timestamp: int) -> int:
        """How many chunks at the front have nothing but records before ``timestamp`` (ms); one with records
        that have no timestamp (-1) ends them."""
        count = self.at_timestamp(timestamp)
        with contextlib.suppress(ValueError):
            count = self._times.index(-1, 0, count)
        return count

    def beyond(self, keep_bytes: int) -> int:
        """How many chunks at the front can go so that at least ``keep_bytes`` bytes of values remain."""
        position, spare, count = 0, self.bytes - keep_bytes, len(self)
        while position < count and spare > 0:
            block = sum(self._sizes[position : position + _BLOCK])
            if block > spare:
                break
            spare -= block
            position += _BLOCK
        while position < count and 0 < self._sizes[position] <= spare:
            spare -= self._sizes[position]
            position += 1
        return min(position, count)

    def extend(self, keys: Iterable[ChunkKey]) -> None:
        """Add chunks behind the last one. Raises ValueError if one does not come after the one before."""
        for _, first, next_, base, end, time, size, kind in keys:
            if self._nexts and (first < self._nexts[-1] or base < self._ends[-1] or kind != self.kind):
                raise ValueError(
                    f"sequences {first} to {next_ - 1} (offsets {base} to {end - 1}) overlap the chunk "
                    f"before them (to {self._nexts[-1] - 1}, {self._ends[-1] - 1}), or are of another kind"
                )
            self.kind = kind
            self._firsts.append(first)
            self._nexts.append(next_)
            self._bases.append(base)
            self._ends.append(end)
            self._times.append(time)
            self._peaks.append(max(time, self._peaks[-1]) if self._peaks else time)
            self._sizes.append(size)
            self.bytes += size

    def drop_last(self, count: int) -> None:
        """Forget the last ``count`` chunks."""
        if count:
            self._drop(len(self) - count, len(self))

    def drop_trimmed(self) -> list[ChunkKey]:
        """Forget the chunks that lie below the floor as a whole, except the last one; they are returned.

        The last one stays because it says where the partition stands.
        """
        if not self._nexts or self._nexts[0] > self.floor_sequence:
            return []
        sequences = bisect_right(self._nexts, self.floor_sequence)
        count = min(sequences, bisect_right(self._ends, self.floor_offset), len(self) - 1)
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
        self.bytes += sum(key.size for key in keys) - sum(self._sizes[position:end])
        self._firsts[position:end] = array("Q", [key.first for key in keys])
        self._nexts[position:end] = array("Q", [key.next for key in keys])
        self._bases[position:end] = array("q", [key.base_offset for key in keys])
        self._ends[position:end] = array("q", [key.next_offset for key in keys])
        self._times[position:end] = self._peaks[position:end] = array(
            "q", [key.max_timestamp for key in keys]
        )
        self._sizes[position:end] = array("I", [key.size for key in keys])
        self._find_peaks(position, position + len(keys))

    def _drop(self, start: int, end: int) -> None:
        self.bytes -= sum(self._sizes[start:end])
        for column in (
            self._firsts, self._nexts, self._bases, self._ends, self._times, self._peaks, self._sizes,
        ):  # fmt: skip
            del column[start:end]

    def _find_peaks(self, start: int, end: int) -> None:
        """Find the running maxima anew from ``start`` on: to ``end``, and then to the first that is right."""
        peaks, times = self._peaks, self._times
        peak = peaks[start - 1] if start else times[0]
        for position in range(start, len(times)):
            peak = max(peak, times[position])
            if position >= end and peaks[position] == peak:
                return
            peaks[position] = peak
