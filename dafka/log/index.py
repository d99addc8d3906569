"""Where the messages of one partition are: a row of numbers for each chunk, in one array, found by bisection.

56 bytes a chunk, and one object for the garbage collector to go through, however many there are: a process
may have a hundred thousand partitions, and everything in it stops for a collection. The chunks are in the
order of their sequences, which is the order of their offsets too. Timestamps come from clients and need not
rise, so a running maximum is kept with them: the first chunk whose running maximum reaches a time is the
first chunk with a record of that time or later.

Of a partition with many chunks the greater part is *sealed* (:mod:`dafka.log.sealed`): it stays on the disk
until somebody wants it. The array then has the chunks before it and those behind it. Between them may be rows
of chunks that were sealed since: taking them out moves all behind them, which takes milliseconds where the
partition is one of a million chunks that an older version wrote, so many are taken out together.
"""

from __future__ import annotations

import contextlib
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from itertools import accumulate, chain
from operator import le, lt

from dafka.log.chunk import KIND_NAMES, ChunkKey, unpack_keys
from dafka.log.columns import BASE, END, FIRST, NEXT, PEAK, SIZE, TIME, WIDTH, Column, small_before
from dafka.log.limits import BLOCK_CHUNKS
from dafka.log.sealed import BlockKey, Find, Load, SealedChunks

_SOME = 1024  # sizes that are summed up at a time
_MOVED = 4096  # rows that may be moved each time that a block is sealed


class ChunkIndex:
    """The chunks of partition ``number``, first to last."""

    __slots__ = (
        *("_at", "_dead", "_rows", "_sealed"),
        *("bytes", "floor_offset", "floor_sequence", "kind", "number"),
    )

    def __init__(self, number: int = -1) -> None:
        self.number = number
        self.kind = 0
        self.bytes = 0
        self.floor_sequence = 0  # messages below it, and records below floor_offset, were trimmed
        self.floor_offset = 0
        self._rows = array("q")
        self._sealed: SealedChunks | None = None  # not empty, and there is a chunk behind it
        self._at = 0  # where in the array it belongs
        self._dead = 0  # rows there that are to be taken out

    def __len__(self) -> int:
        sealed = self._sealed
        return len(self._rows) // WIDTH + (0 if sealed is None else sealed.chunks - self._dead)

    def __getitem__(self, position: int) -> ChunkKey:
        if not 0 <= position < len(self):
            raise IndexError(f"chunk {position} of {len(self)}")
        first, next_, base, end, time, _, size = self._row(position)
        return ChunkKey(self.number, first, next_, base, end, time, size, self.kind)

    @property
    def first_sequence(self) -> int:
        return max(self._begin[0], self.floor_sequence) if self._rows else 0

    @property
    def next_sequence(self) -> int:
        return self._rows[NEXT - WIDTH] if self._rows else 0

    @property
    def first_offset(self) -> int:
        """Where the records begin: a reader at this offset or a later one has missed none.

        If trimming ends in a gap, the offsets up to the first record belong to no record.
        """
        return (self.floor_offset or self._begin[1]) if self._rows else 0

    @property
    def next_offset(self) -> int:
        return self._rows[END - WIDTH] if self._rows else 0

    @property
    def firsts(self) -> Sequence[int]:
        """First sequence of each chunk."""
        return Column(self, FIRST)

    @property
    def nexts(self) -> Sequence[int]:
        """The sequence behind the last one of each chunk."""
        return Column(self, NEXT)

    @property
    def ends(self) -> Sequence[int]:
        """The offset behind the last one of each chunk."""
        return Column(self, END)

    @property
    def sizes(self) -> Sequence[int]:
        """Size of each chunk's value in bytes."""
        return Column(self, SIZE)

    @property
    def times(self) -> Sequence[int]:
        """Largest timestamp of each chunk in ms."""
        return Column(self, TIME)

    @property
    def largest_timestamp(self) -> int:
        return self._rows[PEAK - WIDTH] if self._rows else -1

    def at_sequence(self, sequence: int) -> int:
        """Position of the first chunk that ends after ``sequence``; the number of chunks if there is none."""
        return self._search(NEXT, sequence, bisect_right)

    def at_offset(self, offset: int) -> int:
        """Position of the first chunk that ends after ``offset``; the number of chunks if there is none."""
        return self._search(END, offset, bisect_right)

    def at_timestamp(self, timestamp: int) -> int:
        """Position of the first chunk with a record of ``timestamp`` (ms) or later, likewise."""
        return self._search(PEAK, timestamp, bisect_left)

    def older_than(self, timestamp: int, most: int) -> int:
        """How many chunks at the front have nothing but records before ``timestamp`` (ms); one with records
        that have no timestamp (-1) ends them. ``most``: no more are looked at."""
        count = min(self.at_timestamp(timestamp), most)
        with contextlib.suppress(ValueError):
            count = self.times[:count].index(-1)
        return count

    def beyond(self, keep_bytes: int, most: int) -> int:
        """How many chunks at the front can go so that at least ``keep_bytes`` bytes of values remain;
        ``most``: no more are looked at."""
        position, spare, count, sizes = 0, self.bytes - keep_bytes, min(len(self), most), self.sizes
        while position < count and spare > 0:
            some = self.size_between(position, min(position + _SOME, count))
            if some > spare:
                break
            spare -= some
            position += _SOME
        while position < count and 0 < sizes[position] <= spare:
            spare -= sizes[position]
            position += 1
        return min(position, count)

    def size_between(self, start: int, end: int) -> int:
        """Size of the values from position ``start`` up to ``end``, in bytes; few of them are looked at."""
        rows, sealed, at = self._rows, self._sealed, self._at
        if sealed is None:
            return sum(rows[start * WIDTH + SIZE : end * WIDTH : WIDTH])
        behind = at + len(sealed)
        size = sum(rows[start * WIDTH + SIZE : min(end, at) * WIDTH : WIDTH])
        if start < behind and end > at:
            size += sealed.size_between(max(start - at, 0), min(end, behind) - at)
        first, last = self._place(max(start, behind)), self._place(max(end, behind))
        return size + sum(rows[first + SIZE : last : WIDTH])

    def small_before(self, end: int, sequence: int, size: int, floor: int, least: int, most: int) -> int:
        """:func:`dafka.log.columns.small_before` among at most ``most`` chunks before position ``end``, none
        of them sealed."""
        behind = self._place(end)
        first = behind - min(end - self.sealed_end, most) * WIDTH
        return small_before(self._rows, first, behind, sequence, size, floor, least)

    def extend(self, keys: Iterable[ChunkKey]) -> None:
        """Add chunks behind the last one. Raises ValueError if one does not come after the one before."""
        rows, last = self._rows, self._last()
        for _, first, next_, base, end, time, size, kind in keys:
            peak = time
            if last is not None:
                last_next, last_end, peak = last
                if first < last_next or base < last_end or kind != self.kind:
                    raise ValueError(
                        f"sequences {first} to {next_ - 1} (offsets {base} to {end - 1}) overlap the chunk "
                        f"before them (to {last_next - 1}, {last_end - 1}), or are of another kind"
                    )
                peak = max(time, peak)
            self.kind = kind
            rows.extend((first, next_, base, end, time, peak, size))
            last = next_, end, peak
            self.bytes += size

    def extend_packed(self, keys: Sequence[bytes]) -> None:
        """The same with packed keys: several times as fast, by columns instead of chunk by chunk."""
        _, _, firsts, nexts, bases, ends, times, sizes, kinds = zip(*unpack_keys(keys), strict=True)
        before, behind, highest = self._last() or (firsts[0], bases[0], times[0])
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
        peaks = list(accumulate(times, max, initial=highest))[1:]
        rows = array("q", bytes(8 * WIDTH * len(keys)))
        for place, column in enumerate((firsts, nexts, bases, ends, times, peaks, sizes)):
            rows[place::WIDTH] = array("q", column)
        self.kind = kind
        self._rows.extend(rows)
        self.bytes += sum(sizes)

    def drop_last(self, count: int) -> None:
        """Forget the last ``count`` chunks, which are not sealed."""
        if count:
            self._drop(len(self) - count, len(self))

    def drop_trimmed(self) -> list[ChunkKey]:
        """Forget the chunks that lie below the floor as a whole, except the last one; they are returned.

        The last one stays because it says where the partition stands. :meth:`unseal_trimmed` comes before.
        """
        sealed_first = self._sealed is not None and not self._at
        if not self._rows or sealed_first or self._rows[NEXT] > self.floor_sequence:
            return []
        count = min(self.at_sequence(self.floor_sequence), self.at_offset(self.floor_offset), len(self) - 1)
        dropped = [self[position] for position in range(count)]
        if count > 0:
            self._drop(0, count)
            self._find_peaks(0, 0)
        return dropped

    def clear(self) -> list[ChunkKey]:
        """Forget all chunks, which must not be sealed, and return them."""
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
        """Put chunks in the place of ``count`` that hold the same range together; unseals as
        :meth:`blocks_through` says."""
        end = position + count
        self._unseal(end if position < self.sealed_end else 0)
        self.bytes += sum(key.size for key in keys) - self.size_between(position, end)
        rows = array("q")
        for _, first, next_, base, base_end, time, size, _ in keys:
            rows.extend((first, next_, base, base_end, time, time, size))
        start = self._place(position)
        self._rows[start : start + count * WIDTH] = rows
        if self._sealed is not None and position < self._at:
            self._at += len(keys) - count
        self._find_peaks(position, position + len(keys))

    @property
    def sealed_end(self) -> int:
        """The position behind the last sealed chunk; 0 if there are none."""
        return self._at + len(self._sealed) if self._sealed is not None else 0

    def sealable(self, kept: int) -> list[ChunkKey]:
        """The chunks to be sealed next, if the first ``kept`` stay as they are; none if there are few."""
        start = kept if len(self._rows) < 2 * BLOCK_CHUNKS * WIDTH else self._unsealed_from
        if kept - max(start, self.sealed_end) < 2 * BLOCK_CHUNKS:
            return []
        return [self[position] for position in range(start, start + BLOCK_CHUNKS)]

    def seal(self, block: BlockKey, load: Load) -> None:
        """The :meth:`sealable` chunks have been written as a block; ``load`` reads blocks."""
        start = self._unsealed_from
        place = self._place(start)
        assert self._rows[place + FIRST] == block.first
        before = self._rows[place - WIDTH + PEAK] if place else None
        if self._sealed is None:
            self._sealed, self._at = SealedChunks(self.number, self.kind, load), start
        self._sealed.extend([block], before)
        self._dead += block.chunks
        rows = len(self._rows) // WIDTH
        if rows - self._dead <= _MOVED or 2 * self._dead >= rows:
            self._bury()

    def attach(self, blocks: Sequence[BlockKey], load: Load) -> None:
        """Add sealed chunks behind the last one. Raises ValueError if they do not come after it, or each
        other."""
        last = self._last()
        head = blocks[0]
        if last is not None and (
            head.first < last[0] or head.base_offset < last[1] or head.kind != self.kind
        ):
            raise ValueError(f"the block {head} overlaps the chunk before it, or is of another kind")
        sealed = SealedChunks(self.number, head.kind, load)
        sealed.extend(blocks, None if last is None else last[2])
        self._sealed, self._at, self.kind = sealed, len(self._rows) // WIDTH, head.kind
        self.bytes += sealed.size

    def blocks_through(self, start: int, end: int) -> dict[bytes, array[int]]:
        """The blocks that are to be deleted when the chunks in that range are replaced."""
        sealed = self._sealed
        return {} if sealed is None or start >= self.sealed_end else sealed.loaded(end - self._at)

    def blocks_below(self, sequence: int, offset: int) -> dict[bytes, array[int]]:
        """The blocks that are to be deleted with a floor there: those that begin below it."""
        sealed = self._sealed
        return {} if sealed is None else sealed.loaded(sealed.beginning_below(sequence, offset))

    def unseal_trimmed(self) -> list[bytes]:
        """Have all chunks in memory of the blocks that begin below the floor; their keys."""
        sealed, floor = self._sealed, (self.floor_sequence, self.floor_offset)
        return [] if sealed is None else self._unseal(self._at + sealed.beginning_below(*floor))

    def take_sealed(self) -> list[BlockKey]:
        """Forget the chunks that are sealed; their blocks."""
        sealed = self._sealed
        if sealed is None:
            return []
        self._bury()
        self._sealed = None
        self.bytes -= sealed.size
        return sealed.keys()

    def rows(self) -> array[int]:
        """The columns of all chunks, one chunk after the other; none are sealed."""
        return self._rows

    @property
    def _unsealed_from(self) -> int:
        """The position of the chunk to be sealed next, which does not begin below the floor."""
        if self._sealed is not None:
            return self.sealed_end
        rows = memoryview(self._rows)
        below = bisect_left(rows[FIRST::WIDTH], self.floor_sequence)
        return min(below, bisect_left(rows[BASE::WIDTH], self.floor_offset))

    def number_at(self, position: int, column: int) -> int:
        """A number of the chunk at ``position``."""
        sealed, at = self._sealed, self._at
        if sealed is not None and position >= at:
            if position < at + sealed.chunks:
                return sealed.row(position - at)[column]
            position += self._dead - sealed.chunks
        return self._rows[position * WIDTH + column]

    def numbers(self, start: int, stop: int, step: int, column: int) -> Sequence[int]:
        """The numbers of some chunks."""
        if self._sealed is None and step > 0:
            return self._rows[start * WIDTH + column : stop * WIDTH : step * WIDTH]
        return [self.number_at(position, column) for position in range(start, stop, step)]

    @property
    def _begin(self) -> tuple[int, int]:
        """(first sequence, base offset) of the first chunk."""
        if self._sealed is not None and not self._at:
            return self._sealed.first
        return self._rows[FIRST], self._rows[BASE]

    def _last(self) -> tuple[int, int, int] | None:
        """(next sequence, next offset, running maximum) behind the last chunk; None if there is none."""
        rows, sealed = self._rows, self._sealed
        if sealed is not None and len(rows) == (self._at + self._dead) * WIDTH:
            return sealed.last
        return (rows[NEXT - WIDTH], rows[END - WIDTH], rows[PEAK - WIDTH]) if rows else None

    def _row(self, position: int) -> array[int]:
        sealed, at = self._sealed, self._at
        if sealed is not None and at <= position < at + sealed.chunks:
            return sealed.row(position - at)
        place = self._place(position)
        return self._rows[place : place + WIDTH]

    def _place(self, position: int) -> int:
        """Where the numbers of a chunk begin that is not sealed."""
        if self._sealed is not None and position >= self._at:
            position += self._dead - len(self._sealed)
        return position * WIDTH

    def _bury(self) -> None:
        """Take out the rows of sealed chunks."""
        del self._rows[self._at * WIDTH : (self._at + self._dead) * WIDTH]
        self._dead = 0

    def _search(self, column: int, number: int, find: Find) -> int:
        """The position that ``find`` says in a column that never falls."""
        # No variable has the view: an error of reading a block would keep it, and the array could not grow.
        sealed, at = self._sealed, self._at
        if sealed is None:
            return find(memoryview(self._rows)[column::WIDTH], number)
        position = find(memoryview(self._rows)[column::WIDTH], number, 0, at) if at else 0
        if position < at:
            return position
        position = sealed.search(column, number, find)
        if position < len(sealed):
            return at + position
        found = find(memoryview(self._rows)[column::WIDTH], number, at + self._dead)
        return len(sealed) - self._dead + found

    def _unseal(self, end: int) -> list[bytes]:
        """Have all chunks in memory of the blocks that have one before position ``end``; their keys."""
        sealed, at = self._sealed, self._at
        if sealed is None or end <= at:
            return []
        rows, keys = sealed.take(end - at)
        self._bury()
        self._rows[at * WIDTH : at * WIDTH] = rows
        self._at = at + len(rows) // WIDTH
        if not sealed:
            self._sealed = None
        self._find_peaks(at, at + len(rows) // WIDTH)
        return keys

    def _drop(self, start: int, end: int) -> None:
        self.bytes -= self.size_between(start, end)
        first, last = self._place(start), self._place(end)
        if self._sealed is not None and start < self._at:
            last = end * WIDTH
            self._at -= end - start
        del self._rows[first:last]

    def _find_peaks(self, start: int, end: int) -> None:
        """Find the running maxima anew from ``start`` on: to ``end``, and then to the first that is right.
        No chunk is sealed between them."""
        rows, sealed = self._rows, self._sealed
        at = len(rows) // WIDTH if sealed is None else self._at
        place = start * WIDTH if start <= at else self._place(start)
        peak: int | None = None
        if sealed is not None and start == at + len(sealed):
            peak = sealed.last[2]
        elif place:
            peak = rows[place - WIDTH + PEAK]
        if place < at * WIDTH or sealed is None:
            peak, right = self._peaks_from(place, at * WIDTH, end * WIDTH, peak)
            if right or sealed is None:
                return
        if sealed is not None and start <= at:
            before = sealed.last[2]
            peak = sealed.find_peaks(peak)
            if peak == before:
                return
            place = (at + self._dead) * WIDTH
        self._peaks_from(place, len(rows), place if start <= at else self._place(end), peak)

    def _peaks_from(self, place: int, stop: int, forced: int, peak: int | None) -> tuple[int | None, bool]:
        """The maximum so far, and whether one behind ``forced`` was right."""
        rows = self._rows
        for row in range(place, stop, WIDTH):
            time = rows[row + TIME]
            peak = time if peak is None else max(peak, time)
            if row >= forced and rows[row + PEAK] == peak:
                return peak, True
            rows[row + PEAK] = peak
        return peak, False
