"""Compaction of one stored value: find its keys, and remove overtaken records. Runs in any thread."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import blake2b
from itertools import compress as selected
from operator import ge
from typing import NamedTuple

from crc32c import crc32c

from dafka.log.chunk import Chunk, ChunkKey
from dafka.log.errors import DamagedError
from dafka.log.log import Log
from dafka.log.newest import NewestOffsets
from dafka.log.partition import LogPartition
from dafka.protocol.batch import (
    COMPRESSION_MASK,
    CRC_END,
    CRC_START,
    HEADER,
    HEADER_OCTETS,
    LENGTH_END,
    BatchError,
    BatchHeader,
    read_header,
)
from dafka.protocol.batch_control import commits
from dafka.protocol.batch_reader import decode_batch
from dafka.protocol.compression import compress, decompress
from dafka.protocol.varint import decode_varint

_SHORT = 32  # octets; the map holds shorter keys as they are


class Filtered(NamedTuple):
    """The result for one chunk; ``chunk`` None: it is damaged."""

    key: ChunkKey
    chunk: Chunk | None
    contents: list[bytes]
    idle: list[bool]
    """For each message whether it is safe to drop: it has no records, or is the marker of a commit."""
    removed: int
    tombstones: list[tuple[int, int]]
    """(sequence, number) of those that stay."""
    unreadable: bool


def newest_offsets(
    log: Log, partition: LogPartition, key: ChunkKey, end: int, aborted: Sequence[tuple[int, int, int]]
) -> tuple[dict[bytes, int], bool] | None:
    """The newest offset of each key in a chunk, below the sequence ``end``, and whether all of it could be
    read; None: it is damaged. Raises LogReadError."""
    try:
        chunk = log.load(partition, key)
    except DamagedError:
        return None
    newest: dict[bytes, int] = {}
    whole = True
    for content in chunk.contents[: max(0, end - chunk.first)]:
        header = read_header(content)
        if header.is_control or not header.count or _is_aborted(header, aborted):
            continue
        try:
            columns = decode_batch(content)
        except BatchError:
            whole = False
            continue
        newest.update(zip(_names(columns.keys), columns.offsets, strict=True))
    newest.pop(_NO_KEY, None)
    return newest, whole


def filter_chunk(
    log: Log,
    partition: LogPartition,
    key: ChunkKey,
    newest: NewestOffsets,
    end: int,
    horizon: int,
    aborted: Sequence[tuple[int, int, int]],
) -> Filtered:
    """Compact a chunk. Everything from the sequence ``end`` on stays, and below it records that are in
    ``newest`` with their offset or a higher one, or not at all, and tombstones unless they lie below the
    sequence ``horizon``. Raises LogReadError."""
    try:
        chunk = log.load(partition, key)
    except DamagedError:
        return Filtered(key, None, [], [], 0, [], True)
    contents: list[bytes] = []
    tombstones: list[tuple[int, int]] = []
    removed = 0
    unreadable = False
    for sequence, content in enumerate(chunk.contents, chunk.first):
        header = read_header(content)
        if sequence >= end or header.is_control or not header.count:
            contents.append(content)
            continue
        if _is_aborted(header, aborted):
            removed += header.count
            contents.append(_without(content, header, [False] * header.count, None))
            continue
        try:
            columns = decode_batch(content)
        except BatchError:
            contents.append(content)
            unreadable = True
            continue
        keys, offsets, values = _names(columns.keys), columns.offsets, columns.values
        times = columns.timestamps
        if min(times) < -(2**63) or max(times) >= 2**63:  # no header holds the largest of those that stay
            contents.append(content)
            unreadable = True
            continue
        keep = list(map(ge, offsets, newest.of(keys)))
        if None in values:
            gone = [value is None and name is not _NO_KEY for value, name in zip(values, keys, strict=True)]
            if sequence < horizon:
                keep = [stays and not dead for stays, dead in zip(keep, gone, strict=True)]
            elif stay := sum(selected(gone, keep)):
                tombstones.append((sequence, stay))
        if all(keep):
            contents.append(content)
            continue
        removed += len(keep) - sum(keep)
        contents.append(_without(content, header, keep, max(selected(times, keep), default=None)))
    idle = [_is_idle(content) for content in contents[: max(0, end - chunk.first)]]
    idle += [False] * (len(contents) - len(idle))
    return Filtered(key, chunk, contents, idle, removed, tombstones, unreadable)


def _is_aborted(header: BatchHeader, aborted: Sequence[tuple[int, int, int]]) -> bool:
    return header.is_transactional and any(
        producer_id == header.producer_id and first <= header.base_offset < marker
        for producer_id, first, marker in aborted
    )


def _is_idle(content: bytes) -> bool:
    if content[_COUNT] == _NO_RECORDS:
        return True
    try:
        return read_header(content).is_control and commits(content)
    except BatchError:
        return False


_COUNT = slice(HEADER_OCTETS - 4, HEADER_OCTETS)  # of records, in a batch
_NO_RECORDS = bytes(4)
_NO_KEY = bytes(_SHORT + 1)  # no key has this name: it is too long for a short one, too short for a digest


def _names(keys: list[bytes | None]) -> list[bytes]:
    """The names of keys in the map: a digest for a long key, so that the map's size is bounded."""
    return [
        (key if len(key) <= _SHORT else blake2b(key, digest_size=2 * _SHORT).digest())
        if key is not None
        else _NO_KEY
        for key in keys
    ]


def _without(content: bytes, header: BatchHeader, keep: list[bool], newest: int | None) -> bytes:
    """The batch with only the records that ``keep`` says; ``newest`` is their largest timestamp.

    If they have none (-1) the header's stays, by which retention goes.
    """
    codec = header.compression
    attributes, body = header.attributes & ~COMPRESSION_MASK, b""
    if newest is not None:
        records = decompress(codec, content[HEADER_OCTETS:]) if codec else content[HEADER_OCTETS:]
        body = b"".join(selected(_records(records), keep))
        if codec:
            packed = compress(codec, body)
            if len(packed) < len(body):
                attributes, body = header.attributes, packed
    count = sum(keep)
    changed = header._replace(
        length=HEADER_OCTETS - LENGTH_END + len(body),
        attributes=attributes,
        max_timestamp=header.max_timestamp if newest is None or newest < 0 else newest,
        count=count,
    )
    head = HEADER.pack(*changed)
    crc = crc32c(body, crc32c(head[CRC_END:]))
    return head[:CRC_START] + crc.to_bytes(4, "big") + head[CRC_END:] + body


def _records(body: bytes) -> Iterator[bytes]:
    """The bytes of each record."""
    position, end = 0, len(body)
    while position < end:
        length, start = decode_varint(body, position)
        yield body[position : start + length]
        position = start + length
