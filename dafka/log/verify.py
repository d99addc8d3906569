"""Checking a whole folder: every row, every value, every batch, and that they fit together.

Opening a log stops at the first damage of its index. This goes on, so that all of it is known: rows are
taken one by one, and what cannot be read is noted with its place.
"""

from __future__ import annotations

import os
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack

from crc32c import crc32c

from dafka.log.blocks import chunks_from
from dafka.log.chunk import BATCH, CHUNK_TAG, Chunk, ChunkKey, decode_chunk
from dafka.log.errors import DamagedError, LogReadError, NotALogError
from dafka.log.folder import take_folder
from dafka.log.layout import LAYOUT_KEY
from dafka.log.partition import (
    DROPPED_TAG,
    FLOOR_TAG,
    PARTITION_TAG,
    unpack_dropped,
    unpack_floor,
    unpack_partition,
)
from dafka.log.sealed import BLOCK_TAG, BlockKey, unpack_block
from dafka.log.storage import Storage
from dafka.log.table import TABLE_TAG, decode_value, unpack_key, unseal
from dafka.protocol.batch import BatchError, check_batch


class Verification:
    """The findings of :func:`verify` so far."""

    def __init__(self) -> None:
        self.partitions = 0
        self.values = 0
        self.messages = 0
        self.records = 0
        self.bytes = 0
        self.table_values = 0
        self.damages: list[tuple[str, str]] = []
        """(place, cause) of each damage."""


def verify(path: str | os.PathLike[str], seen: Verification | None = None) -> Iterator[Verification]:
    """Check the log in folder ``path``, which must not be open anywhere; yields after each value.

    Raises LogLockedError, LogVersionError, NotALogError and LogOpenError; damage is not raised but noted.
    """
    folder = os.path.abspath(os.fspath(path))
    if not os.path.isdir(folder) or not os.listdir(folder):
        raise NotALogError(folder, f"{folder} is not a log: there is nothing in it")
    seen = seen or Verification()
    with ExitStack() as undo:
        try:
            lock = take_folder(folder)
            undo.callback(lock.release)
            storage = Storage(folder, "process")
        except DamagedError as error:
            seen.damages.append((error.place, str(error)))
            yield seen
            return
        undo.callback(storage.close)
        yield from _Check(storage, seen).steps()


class _Check:
    def __init__(self, storage: Storage, seen: Verification) -> None:
        self._storage = storage
        self._seen = seen
        self._names: dict[int, str] = {}
        self._chunks: defaultdict[int, list[bytes]] = defaultdict(list)
        self._blocks: defaultdict[int, list[bytes]] = defaultdict(list)
        self._tables: list[bytes] = []
        self._dead: set[int] = set()
        self._floors: dict[int, tuple[int, int]] = {}

    def steps(self) -> Iterator[Verification]:
        seen = self._seen
        for row in self._storage.damages():
            self._note("the database", row)
        self._keys()
        for number in sorted(self._chunks):
            if number not in self._names and number not in self._dead:
                self._note(f"partition number {number}", "it has records and no name")
            for _ in self._partition(number, sorted(self._chunks[number])):
                yield seen
        for number, blocks in sorted(self._blocks.items()):
            if number not in self._dead:
                self._index(number, sorted(blocks))
            yield seen
        for stored in sorted(self._tables):
            table, key = unpack_key(stored)
            place = f"key {key!r} of table {table!r}"
            try:
                decode_value(unseal(stored, self._storage.get(stored, place)))
                seen.table_values += 1
            except (ValueError, DamagedError, LogReadError) as error:
                self._note(place, str(error))
            yield seen
        seen.partitions = len(self._names)
        yield seen

    def _keys(self) -> None:
        try:
            for key in self._storage:
                try:
                    self._key(key)
                except (ValueError, DamagedError, LogReadError) as error:
                    self._note(f"key {key!r}", str(error))
        except (DamagedError, LogReadError) as error:
            self._note("the index", str(error))

    def _key(self, key: object) -> None:
        if type(key) is not bytes:
            if key != LAYOUT_KEY:
                raise ValueError("no log has such a key")
            return
        tag = key[:1]
        if tag == CHUNK_TAG:
            self._chunks[int.from_bytes(key[1:5], "big")].append(key)
            return
        if tag == BLOCK_TAG:
            self._blocks[BlockKey.unpack(key).partition].append(key)
            return
        if tag == TABLE_TAG:
            unpack_key(key)
            self._tables.append(key)
            return
        if tag == PARTITION_TAG:
            number, topic, address = unpack_partition(key)
            self._names[number] = f"topic {topic!r} of {address!r}"
        elif tag == FLOOR_TAG:
            number, *floor = unpack_floor(key)
            self._floors[number] = floor[0], floor[1]
        elif tag == DROPPED_TAG:
            self._dead.add(unpack_dropped(key))
        else:
            raise ValueError("no log has such a key")
        if self._storage.get(key, f"key {key!r}") != crc32c(key).to_bytes(4, "little"):
            raise ValueError("its checksum (CRC-32C) does not match its bytes")

    def _partition(self, number: int, keys: list[bytes]) -> Iterator[None]:
        name = self._names.get(number, f"partition number {number}")
        sequence, offset, kind = 0, 0, 0
        floor = self._floors.get(number, (0, 0))
        for key in keys:
            try:
                known = ChunkKey.unpack(key)
            except ValueError as error:
                self._note(f"a value of {name}", str(error))
                continue
            place = f"sequences {known.first} to {known.next - 1} of {name}"
            if known.first < sequence or known.base_offset < offset or kind not in (0, known.kind):
                self._note(place, f"it overlaps what is before it (to {sequence - 1}), or is of another kind")
            sequence, offset, kind = known.next, known.next_offset, known.kind
            try:
                chunk = decode_chunk(key, self._storage.get(key, place))
            except (ValueError, DamagedError, LogReadError) as error:
                if known.next > floor[0] or known.next_offset > floor[1]:  # trimmed values are never read
                    self._note(place, str(error))
            else:
                self._contents(known, chunk, place)
            self._seen.values += 1
            self._seen.bytes += known.size
            yield
        if floor[0] > sequence or floor[1] > offset:
            self._note(name, f"it was trimmed to sequence {floor[0]}, offset {floor[1]}, behind its end")

    def _index(self, number: int, blocks: list[bytes]) -> None:
        """The blocks of a partition's index: each has the chunks that are there."""
        name = self._names.get(number, f"partition number {number}")
        chunks = sorted(self._chunks[number])
        floor = self._floors.get(number, (0, 0))[0]
        sequence = 0
        for row in blocks:
            known = BlockKey.unpack(row)
            place = f"the index of sequences {known.first} to {known.next - 1} of {name}"
            if known.first < sequence:
                self._note(place, f"it overlaps what is before it (to {sequence - 1})")
            sequence = known.next
            try:
                keys = unpack_block(row, self._storage.get(row, place))
            except (ValueError, DamagedError, LogReadError) as error:
                self._note(place, str(error))
                continue
            begin = bisect_left(chunks, chunks_from(number, known.first))
            there = chunks[begin : bisect_left(chunks, chunks_from(number, known.next))]
            if there != keys and known.first >= floor:  # a trimmed one goes before its chunks, or with them
                self._note(place, "its values are not those that are there")

    def _contents(self, known: ChunkKey, chunk: Chunk, place: str) -> None:
        seen = self._seen
        seen.messages += len(chunk.contents)
        if known.kind != BATCH:
            seen.records += len(chunk.contents)
            return
        offset = known.base_offset
        for sequence, content in enumerate(chunk.contents, chunk.first):
            try:
                header = check_batch(content)
            except BatchError as error:
                self._note(f"sequence {sequence} in {place}", str(error))
                continue
            seen.records += header.count
            if header.base_offset < offset or header.next_offset > known.next_offset:
                cause = f"its offset {header.base_offset} is out of order"
                self._note(f"sequence {sequence} in {place}", cause)
            offset = header.next_offset
        if offset != known.next_offset:
            self._note(place, f"its offsets end at {offset}, its key says {known.next_offset}")

    def _note(self, place: str, cause: str) -> None:
        self._seen.damages.append((place, cause))
