"""The part of a partition's index that is left on the disk: blocks of chunks that hardly change any more.

A log of a terabyte may have tens of millions of chunks. To read the key of each would take half a minute when
the log is opened, and gigabytes of memory. So when a partition has twice BLOCK_CHUNKS chunks, the round that
stores its next one writes the keys of the first BLOCK_CHUNKS as one row, a *block*, and so on. Opening reads
the keys of blocks, which say what is in them together, and of the chunks that are in none. A block is read
when somebody wants a chunk in it; some stay in memory (:class:`dafka.log.blocks.Blocks`).

A block is written and deleted in the transactions that concern its chunks, so it is never wrong. It is
deleted when one of its chunks is trimmed or rewritten; its chunks are in the index in memory again then.

The key of a block, big endian::

    "i", partition u32, first and next sequence u64, base and next offset i64, largest timestamp i64 (ms),
    size of the values u64, number of chunks u32, kind u8

Its value has the keys of the chunks, one after the other, and the CRC-32C of its key and of these, u32
(little endian).
"""

from __future__ import annotations

import struct
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import NamedTuple

from crc32c import crc32c

from dafka.log.chunk import CHUNK_KEY_BYTES, KIND_NAMES, ChunkKey

BLOCK_TAG = b"i"
_KEY = struct.Struct(">cIQQqqqQIB")
_CRC = struct.Struct("<I")

Find = Callable[..., int]
"""``bisect_left`` or ``bisect_right``."""

Load = Callable[[bytes], "array[int]"]
"""Gives the rows of a block, by its packed key: the columns of :class:`dafka.log.index.ChunkIndex`, with
running maxima that begin with the block."""


class BlockKey(NamedTuple):
    """Everything known about a block without reading its value."""

    partition: int
    first: int
    next: int
    base_offset: int
    next_offset: int
    max_timestamp: int
    size: int
    chunks: int
    kind: int

    def pack(self) -> bytes:
        return _KEY.pack(BLOCK_TAG, *self)

    @classmethod
    def unpack(cls, key: bytes) -> BlockKey:
        """Raises ValueError for anything that :meth:`pack` did not make."""
        if len(key) != _KEY.size:
            raise ValueError(f"a block's key has {_KEY.size} bytes, this one {len(key)}")
        self = cls._make(_KEY.unpack(key)[1:])
        ordered = self.next - self.first >= self.chunks > 0 and self.next_offset > self.base_offset
        if not ordered or self.kind not in KIND_NAMES:
            raise ValueError(f"a block's key with an impossible range or kind: {self}")
        return self


def pack_block(keys: Sequence[ChunkKey]) -> tuple[bytes, bytes]:
    """The row of a block of these chunks."""
    head, last = keys[0], keys[-1]
    times, sizes = [key.max_timestamp for key in keys], [key.size for key in keys]
    row = BlockKey(
        head.partition,
        head.first,
        last.next,
        head.base_offset,
        last.next_offset,
        max(times),
        sum(sizes),
        len(keys),
        head.kind,
    ).pack()
    value = b"".join([key.pack() for key in keys])
    return row, value + _CRC.pack(crc32c(value, crc32c(row)))


def unpack_block(row: bytes, value: object) -> list[bytes]:
    """The packed keys of a block's chunks; raises ValueError for a value that is damaged."""
    known = BlockKey.unpack(row)
    if type(value) is not bytes or len(value) != known.chunks * CHUNK_KEY_BYTES + _CRC.size:
        raise ValueError("its value is missing, or has another size than its key says")
    end = len(value) - _CRC.size
    if crc32c(value[:end], crc32c(row)) != _CRC.unpack_from(value, end)[0]:
        raise ValueError("its checksum (CRC-32C) does not match its bytes")
    return [value[place : place + CHUNK_KEY_BYTES] for place in range(0, end, CHUNK_KEY_BYTES)]


_FIRST, _NEXT, _BASE, _END, _TIME, _PEAK, _SIZE, _COUNT = range(8)  # as in ChunkIndex, for a block
_WIDTH = 8
_ROW = 7  # columns of a chunk


class SealedChunks:
    """The blocks of one partition, first to last; positions are those of chunks, from 0 on."""

    __slots__ = ("_blocks", "_load", "_recent", "_starts", "chunks", "kind", "number")

    def __init__(self, number: int, kind: int, load: Load) -> None:
        self.number = number
        self.kind = kind
        self._load = load
        self._blocks = array("q")
        self._starts = array("q", [0])  # the position of each block's first chunk, and that behind the last
        self._recent = -1, b""  # the block that was read last, and its packed key
        self.chunks = 0
        """How many."""

    def __len__(self) -> int:
        return self.chunks

    @property
    def count(self) -> int:
        """How many blocks."""
        return len(self._starts) - 1

    @property
    def size(self) -> int:
        """Size of the values of all chunks."""
        return sum(self._blocks[_SIZE::_WIDTH])

    @property
    def first(self) -> tuple[int, int]:
        """(first sequence, base offset) of the first chunk."""
        return self._blocks[_FIRST], self._blocks[_BASE]

    @property
    def last(self) -> tuple[int, int, int]:
        """(next sequence, next offset, running maximum of timestamps) behind the last chunk."""
        blocks = self._blocks
        return blocks[_NEXT - _WIDTH], blocks[_END - _WIDTH], blocks[_PEAK - _WIDTH]

    def extend(self, keys: Sequence[BlockKey], peak: int | None = None) -> None:
        """Add blocks; ``peak`` is the running maximum before the first of all. Raises ValueError if one does
        not come after the one before."""
        if not keys:
            return
        if self._blocks:
            before, behind, peak = self.last
        else:
            before, behind = keys[0].first, keys[0].base_offset
        for key in keys:
            if key.first < before or key.base_offset < behind or key.kind != self.kind:
                raise ValueError(f"the block {key} overlaps the one before it, or is of another kind")
            before, behind = key.next, key.next_offset
            time = key.max_timestamp
            peak = time if peak is None else max(peak, time)
            self._blocks.extend(
                (key.first, key.next, key.base_offset, key.next_offset, time, peak, key.size, key.chunks)
            )
            self._starts.append(self._starts[-1] + key.chunks)
            self.chunks += key.chunks

    def row(self, position: int) -> array[int]:
        """The columns of a chunk."""
        block = self._block_at(position)
        place = (self._starts[0] + position - self._starts[block]) * _ROW
        return self._rows(block)[place : place + _ROW]

    def search(self, column: int, place: int, find: Find) -> int:
        """The position that ``find`` says in a column that never falls."""
        block = find(memoryview(self._blocks)[column::_WIDTH], place)
        if block == self.count:
            return len(self)
        start = self._starts[block] - self._starts[0]
        if column in (_NEXT, _END) and place <= self._blocks[block * _WIDTH + column - 1]:
            return start  # the block begins there or behind it, and need not be read
        return start + find(memoryview(self._rows(block))[column::_ROW], place)

    def size_between(self, start: int, end: int) -> int:
        """Size of the values from position ``start`` up to ``end``; reads two blocks at most."""
        first, last = self._block_at(start), self._block_at(end)
        size = sum(self._blocks[first * _WIDTH + _SIZE : last * _WIDTH : _WIDTH])
        return size - self._size_before(first, start) + self._size_before(last, end)

    def _block_at(self, position: int) -> int:
        return bisect_right(self._starts, self._starts[0] + position) - 1

    def _size_before(self, block: int, position: int) -> int:
        """Size of the values of a block before a position that is in it, or behind all."""
        within = self._starts[0] + position - self._starts[block]
        return sum(self._rows(block)[_SIZE : within * _ROW : _ROW]) if within else 0

    def keys(self) -> list[BlockKey]:
        """The keys of the blocks."""
        return [self._key(block) for block in range(self.count)]

    def loaded(self, through: int) -> dict[bytes, array[int]]:
        """The blocks that have a chunk before position ``through``: their keys, and their rows."""
        return {self._key(block).pack(): self._rows(block) for block in range(self._count_through(through))}

    def beginning_below(self, sequence: int, offset: int) -> int:
        """The position behind the blocks that begin below both."""
        if sequence <= self._blocks[_FIRST] or offset <= self._blocks[_BASE]:
            return 0
        blocks = memoryview(self._blocks)
        below = bisect_left(blocks[_FIRST::_WIDTH], sequence), bisect_left(blocks[_BASE::_WIDTH], offset)
        return self._starts[min(below)] - self._starts[0]

    def take(self, through: int) -> tuple[array[int], list[bytes]]:
        """Take out the blocks that have a chunk before position ``through``: their rows, and their keys."""
        count = self._count_through(through)
        keys = [self._key(block).pack() for block in range(count)]
        rows = array("q")
        for block in range(count):
            rows.extend(self._rows(block))
        del self._blocks[: count * _WIDTH]
        del self._starts[:count]
        self._recent = -1, b""
        self.chunks = self._starts[-1] - self._starts[0]
        return rows, keys

    def find_peaks(self, peak: int | None) -> int:
        """Find the running maxima anew behind one of ``peak`` (None: there is nothing before); the last."""
        blocks = self._blocks
        times = blocks[_TIME::_WIDTH]
        if peak is not None:
            times[0] = max(times[0], peak)
        if blocks[_PEAK] != times[0]:
            blocks[_PEAK::_WIDTH] = array("q", accumulate(times, max))
        return blocks[_PEAK - _WIDTH]

    def _count_through(self, through: int) -> int:
        return self._block_at(min(through, len(self)) - 1) + 1 if through > 0 else 0

    def _key(self, block: int) -> BlockKey:
        first, next_, base, end, time, _, size, count = self._blocks[block * _WIDTH : (block + 1) * _WIDTH]
        return BlockKey(self.number, first, next_, base, end, time, size, count, self.kind)

    def _rows(self, block: int) -> array[int]:
        if self._recent[0] != block:
            self._recent = block, self._key(block).pack()
        return self._load(self._recent[1])
