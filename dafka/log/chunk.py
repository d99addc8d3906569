"""A chunk: consecutive messages of one partition, stored as one value; and its key.

The key says everything that the index needs, so opening a log reads keys and no values::

    "c", partition u32, first and next sequence u64, base and next offset i64, largest timestamp i64 (ms),
    size of the value u32, kind u8                                                        (big endian)

The value, little endian::

    format u8, kind u8, reserved u16, number of stamps u32, number of messages u32
    stamps:   u32 each (how many messages have it), then i64 each (ms since the epoch); raw messages only
    lengths:  u32 for each message
    contents, one after the other
    CRC-32C of the key and of all that precedes, u32

A record batch carries its own offsets and timestamps. A raw message has its sequence for an offset and the
time of the round that stored it for a timestamp; that is what the stamps keep when chunks are merged.
"""

from __future__ import annotations

import struct
import sys
from array import array
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, chain, islice, pairwise, repeat
from typing import Any, NamedTuple

from crc32c import crc32c

from dafka.protocol.batch import CRC_END, CRC_START, read_header
from dafka.protocol.checksums import crc32c_behind

RAW, BATCH = 1, 2
KIND_NAMES = {RAW: "raw", BATCH: "batch"}

Stamps = Sequence[tuple[int, int]]
"""(number of messages, timestamp in ms), in the order of the messages."""

MESSAGE_MEMORY = {RAW: 48, BATCH: 168}
"""Bytes of memory a message takes besides its own: objects, places in lists, a batch's three numbers."""

_KEY = struct.Struct(">cIQQqqqIB")
_HEAD = struct.Struct("<BBHII")
_CRC = struct.Struct("<I")
BEHIND_CONTENTS = _CRC.size  # octets of a value
_FORMAT = 1
_SUMMED_OCTETS = 1024  # parts of fewer are joined first: that copies them once more, but is one call
_WRITTEN_OCTETS = 4096  # parts of more are not joined at all for a value that becomes a file
CHUNK_TAG = b"c"
CHUNK_KEY_BYTES = _KEY.size


class ChunkKey(NamedTuple):
    """Everything known about a chunk without reading its value."""

    partition: int
    first: int
    next: int
    base_offset: int
    next_offset: int
    max_timestamp: int
    size: int
    kind: int

    def pack(self) -> bytes:
        return _KEY.pack(CHUNK_TAG, *self)

    @classmethod
    def unpack(cls, key: bytes) -> ChunkKey:
        """Raises ValueError for anything that :meth:`pack` did not make."""
        if len(key) != _KEY.size:
            raise ValueError(f"a chunk's key has {_KEY.size} bytes, this one {len(key)}")
        self = cls._make(_KEY.unpack(key)[1:])
        if self.next <= self.first or self.next_offset <= self.base_offset or self.kind not in KIND_NAMES:
            raise ValueError(f"a chunk's key with an impossible range or kind: {self}")
        return self


class Chunk:
    """The messages of a chunk in memory; immutable.

    It holds tuples of bytes and numbers, which the garbage collector does not have to traverse.
    """

    __slots__ = ("_columns", "contents", "first", "kind", "memory", "stamps")

    def __init__(self, kind: int, first: int, contents: Sequence[bytes], stamps: Stamps, size: int) -> None:
        self.kind = kind
        self.first = first
        self.contents = contents
        self.stamps = stamps
        self.memory = size + MESSAGE_MEMORY[kind] * len(contents)
        self._columns: tuple[list[int], list[int], list[int]] | None = None

    def offsets(self) -> tuple[Sequence[int], Sequence[int]]:
        """(base offset, next offset) of each message, as two columns."""
        if self.kind == RAW:
            first, count = self.first, len(self.contents)
            return range(first, first + count), range(first + 1, first + count + 1)
        bases, ends, _ = self._headers()
        return bases, ends

    def timestamps(self, start: int, count: int) -> Iterable[int]:
        """Timestamps in ms of ``count`` messages from position ``start`` on; a batch's is its largest."""
        if self.kind == BATCH:
            return self._headers()[2][start : start + count]
        if len(self.stamps) == 1:
            return repeat(self.stamps[0][1], count)
        times = chain.from_iterable(repeat(time, number) for number, time in self.stamps)
        return islice(times, start, start + count)

    def _headers(self) -> tuple[list[int], list[int], list[int]]:
        if self._columns is None:
            headers = [read_header(content) for content in self.contents]
            self._columns = (
                [header.base_offset for header in headers],
                [header.next_offset for header in headers],
                [header.max_timestamp for header in headers],
            )
        return self._columns


def unpack_keys(keys: Iterable[bytes]) -> Iterator[tuple[Any, ...]]:
    """The fields of packed keys, the tag first. Raises struct.error for keys of another size together."""
    return _KEY.iter_unpack(b"".join(keys))


def value_size(contents_size: int, count: int, stamps: int) -> int:
    """The size of a chunk's value in bytes."""
    return _HEAD.size + 12 * stamps + 4 * count + contents_size + _CRC.size


class Pieces:
    """A value in pieces that are not joined, to be written one behind the other."""

    __slots__ = ("_size", "pieces")

    def __init__(self, pieces: list[bytes]) -> None:
        self.pieces = pieces
        self._size = sum(map(len, pieces))

    def __len__(self) -> int:
        return self._size

    def __bytes__(self) -> bytes:
        return b"".join(self.pieces)


def encode_chunk(key: bytes, kind: int, contents: Sequence[bytes], stamps: Stamps) -> bytes:
    """The value stored under ``key``."""
    return bytes(encode_pieces(key, kind, contents, stamps))


def encode_pieces(
    key: bytes, kind: int, contents: Sequence[bytes], stamps: Stamps, checked: bool = False
) -> bytes | Pieces:
    """The same, without a copy of contents that are large.

    ``checked``: record batches have been compared with their checksums. The value's is made of theirs then,
    so that a bit that has changed in memory since shows when the value is read.
    """
    counts, times = array("I"), array("q")
    for count, time in stamps:
        counts.append(count)
        times.append(time)
    lengths = array("I", map(len, contents))
    size = sum(lengths)
    if sys.byteorder == "big":
        for column in (counts, times, lengths):
            column.byteswap()
    head = _HEAD.pack(_FORMAT, kind, 0, len(stamps), len(contents))
    parts = [b"".join((head, counts.tobytes(), times.tobytes(), lengths.tobytes())), *contents]
    checksum = crc32c(key)
    if size < _SUMMED_OCTETS * len(parts):
        parts = [b"".join(parts)]
    for place, part in enumerate(parts):
        if place and checked and kind == BATCH:
            known = int.from_bytes(part[CRC_START:CRC_END], "big")
            checksum = crc32c_behind(part, known, CRC_END, checksum)
        else:
            checksum = crc32c(part, checksum)
    parts.append(_CRC.pack(checksum))
    return Pieces(parts) if size >= _WRITTEN_OCTETS * len(parts) else b"".join(parts)


class Value(NamedTuple):
    """The parts of a stored value: its key's fields, and its messages' places, with the end of the last."""

    known: ChunkKey
    stamps: Stamps
    places: list[int]


def read_value(key: bytes, value: bytes | memoryview) -> Value:
    """Check the value stored under ``key``; raises ValueError, saying what is wrong, if it is damaged."""
    known = ChunkKey.unpack(key)
    size = len(value) - _CRC.size
    if size < _HEAD.size or len(value) != known.size:
        raise ValueError(f"its value has {len(value)} bytes, its key says {known.size}")
    if crc32c(memoryview(value)[:size], crc32c(key)) != _CRC.unpack_from(value, size)[0]:
        raise ValueError("its checksum (CRC-32C) does not match its bytes")
    form, kind, _, stamp_count, count = _HEAD.unpack_from(value)
    if form != _FORMAT:
        raise ValueError(f"its value has format {form}, this version reads {_FORMAT}")
    counts_at = _HEAD.size
    times_at = counts_at + 4 * stamp_count
    lengths_at = times_at + 8 * stamp_count
    contents_at = lengths_at + 4 * count
    counts, times, lengths = array("I"), array("q"), array("I")
    counts.frombytes(value[counts_at:times_at])
    times.frombytes(value[times_at:lengths_at])
    lengths.frombytes(value[lengths_at:contents_at])
    if sys.byteorder == "big":
        for column in (counts, times, lengths):
            column.byteswap()
    places = list(accumulate(lengths, initial=contents_at))
    if places[-1] != size or count != known.next - known.first or kind != known.kind:
        raise ValueError("its lengths do not add up to its size, or it is not what its key says")
    return Value(known, tuple(zip(counts, times, strict=True)), places)


def decode_chunk(key: bytes, value: object) -> Chunk:
    """The chunk stored under ``key``; raises ValueError, saying what is wrong, if it is damaged."""
    if type(value) is not bytes:
        raise ValueError(f"its value is missing or no bytes (found {type(value).__name__})")
    known, stamps, places = read_value(key, value)
    contents = tuple([value[start:end] for start, end in pairwise(places)])
    return Chunk(known.kind, known.first, contents, stamps, len(value))


def join_stamps(parts: Iterable[Stamps]) -> Stamps:
    """Concatenate lists of stamps; equal neighbours are merged."""
    joined: list[tuple[int, int]] = []
    for count, time in chain.from_iterable(parts):
        if joined and joined[-1][1] == time:
            joined[-1] = (joined[-1][0] + count, time)
        else:
            joined.append((count, time))
    return joined
