"""Reading: chunks from memory or disk, and ranges of messages out of them."""

from __future__ import annotations

import contextlib
import os
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any

from dafka.log.chunk import BATCH, BEHIND_CONTENTS, RAW, Chunk, ChunkKey, decode_chunk, read_value
from dafka.log.errors import DamagedError, LogError
from dafka.log.growth import NewChunk
from dafka.log.limits import FILE_BYTES
from dafka.log.partition import LogPartition
from dafka.log.storage import Storage
from dafka.log.stored import Layout, Layouts, StoredBatches, ValueFile, layout_of, layout_of_written
from dafka.log.tail import ChunkCache
from dafka.log.timestamps import first_record_since

_BUFFER_BYTES = 2 * 1024 * 1024  # kept for checking values up to this size
_FEW_BATCHES = 1000  # of a value: a header is looked at in a microsecond
_FIT_STEP = 64  # messages looked at first when as many as fit into a number of bytes are wanted


class Reader:
    """Reads for :class:`dafka.log.Log`, whose methods of the same names have the documentation."""

    def __init__(
        self, storage: Storage, tail_bytes: int, skip: Callable[[DamagedError], None] | None = None
    ) -> None:
        self._skip = skip  # called for each damaged chunk that is skipped; None: damage raises
        self.replaced: Mapping[bytes, Chunk] = {}  # rows that the round under way has already deleted
        self._storage = storage
        # Half for written chunks, half for chunks that were read: old records do not evict the tail.
        self._written = ChunkCache(tail_bytes - tail_bytes // 2)
        self._read = ChunkCache(tail_bytes // 2)
        self._layouts = Layouts()
        self._buffer = bytearray()  # for checking values

    def read(
        self, partition: LogPartition, sequence: int, count: int, max_bytes: int
    ) -> tuple[int, list[bytes]]:
        index = partition.index
        start, taken = sequence, list[bytes]()
        sequence = max(sequence, index.floor_sequence)
        for position in range(index.at_sequence(sequence), len(index)):
            if len(taken) >= count or (max_bytes <= 0 and taken):
                break
            chunk = self._next(partition, position, bool(taken))
            if chunk is None:
                if taken:
                    break
                continue
            if not taken:
                start = max(sequence, chunk.first)
            elif chunk.first != start + len(taken):
                break
            skip = start + len(taken) - chunk.first
            stop = min(len(chunk.contents), skip + count - len(taken))
            fitting, size = _fitting(chunk.contents, skip, stop, max_bytes, not taken)
            taken += chunk.contents[skip : skip + fitting]
            max_bytes -= size
            if skip + fitting < stop:
                break
        return start, taken

    def read_offsets(
        self, partition: LogPartition, offset: int, max_bytes: int
    ) -> list[tuple[int, int, bytes]]:
        index = partition.index
        taken: list[tuple[int, int, bytes]] = []
        offset = max(offset, index.floor_offset)
        for position in range(index.at_offset(offset), len(index)):
            if max_bytes <= 0 and taken:
                break
            chunk = self._next(partition, position, bool(taken))
            if chunk is None:
                if taken:
                    break
                continue
            contents = chunk.contents
            bases, ends = chunk.offsets()
            skip = 0 if taken else bisect_right(ends, offset)
            fitting, size = _fitting(contents, skip, len(contents), max_bytes, not taken)
            stop = skip + fitting
            times = chunk.timestamps(skip, fitting)
            taken += zip(bases[skip:stop], times, contents[skip:stop], strict=True)
            max_bytes -= size
            if stop < len(contents):
                break
        return taken

    def read_stored(
        self, partition: LogPartition, offset: int, end: int, max_bytes: int
    ) -> tuple[list[bytes | StoredBatches], int]:
        index = partition.index
        taken: list[bytes | StoredBatches] = []
        offset = max(offset, index.floor_offset)
        for position in range(index.at_offset(offset), len(index)):
            if max_bytes <= 0 and taken:
                break
            stored = self._in_file(partition, position, (offset, end, max_bytes, not taken))
            if stored is not None:
                run, offset = stored
                if run is None:
                    break
                taken.append(run)
                max_bytes -= len(run)
                if offset < index.ends[position]:
                    break
                continue
            chunk = self._next(partition, position, bool(taken))
            if chunk is None:
                if taken:
                    break
                continue
            bases, ends = chunk.offsets()
            skip = bisect_right(ends, offset)
            stop = bisect_left(bases, end, lo=skip)
            fitting, size = _fitting(chunk.contents, skip, stop, max_bytes, not taken)
            taken += chunk.contents[skip : skip + fitting]
            if fitting:
                offset = ends[skip + fitting - 1]
            max_bytes -= size
            if skip + fitting < len(bases):
                break
        return taken, offset

    def search_timestamp(
        self, partition: LogPartition, timestamp: int, run: Callable[..., Any]
    ) -> Iterator[tuple[int, int] | None]:
        index = partition.index
        sequence = 0
        while True:  # between two steps the index may change
            position = max(index.at_timestamp(timestamp), index.at_sequence(sequence))
            while position < len(index) and index.times[position] < timestamp:
                position += 1
            if position == len(index):
                return
            sequence = index.nexts[position]
            chunk = self._next(partition, position, False)
            floor = index.floor_offset
            found = None if chunk is None else run(first_record_since, chunk, timestamp, floor)
            yield found
            if found is not None:
                return

    def sequence_of(self, partition: LogPartition, offset: int) -> int:
        """The sequence of the message that holds ``offset`` or of the first one after it."""
        index = partition.index
        position = index.at_offset(max(offset, index.floor_offset))
        if position == len(index):
            return index.next_sequence
        key = index[position]
        if offset <= key.base_offset:
            return max(key.first, index.floor_sequence)
        if key.kind == RAW:
            return max(offset, index.floor_sequence)
        _, ends = self.load(partition, position).offsets()
        return max(key.first + bisect_right(ends, offset), index.floor_sequence)

    def floor(self, partition: LogPartition, sequence: int, offset: int) -> tuple[int, int]:
        """(sequence, offset) that a partition begins with if all before both goes. The sequence is that of a
        message; the offset may lie in a gap, where compaction has left nothing."""
        index = partition.index
        if (
            index.kind == RAW
        ):  # offsets are sequences; that of the floor is behind the gap in which its offset is
            sequence = offset = max(sequence, offset, index.floor_offset)
        else:
            sequence, offset = max(sequence, index.floor_sequence), max(offset, index.floor_offset)
        sequence, offset = min(sequence, index.next_sequence), min(offset, index.next_offset)
        # A place inside a damaged value: the answer without it is never beyond the place asked for.
        position = index.at_sequence(sequence)
        if position == len(index):
            return index.next_sequence, index.next_offset
        key = index[position]
        by_sequence = sequence, index.ends[position - 1] if position else index.first_offset
        if key.kind == RAW:
            by_sequence = sequence, offset
        elif sequence > key.first:
            with contextlib.suppress(LogError):
                ends = self.load(partition, position).offsets()[1]
                by_sequence = sequence, ends[sequence - key.first - 1]
        position = index.at_offset(offset)
        if position == len(index):
            return index.next_sequence, index.next_offset
        key = index[position]
        by_offset = key.first, offset
        if offset > key.base_offset:
            with contextlib.suppress(LogError):
                by_offset = self.sequence_of(partition, offset), offset
        return max(by_sequence[0], by_offset[0]), max(by_sequence[1], by_offset[1])

    def load(self, partition: LogPartition, position: int) -> Chunk:
        """The chunk at ``position`` of the partition's index. Raises DamagedError, LogReadError."""
        known = partition.index[position]
        key = known.pack()
        chunk = self._written.get(key) or self._read.get(key) or self.replaced.get(key)
        if chunk is None:
            chunk = self.fetch(partition, known)
            self._read.put(key, chunk)
        return chunk

    def fetch(self, partition: LogPartition, known: ChunkKey) -> Chunk:
        """The chunk with that key from disk, past the memory; in any thread."""
        place = (
            f"sequences {known.first} to {known.next - 1} of topic {partition.topic!r} "
            f"of {partition.address!r}"
        )
        key = known.pack()
        value = self._storage.get(key, place)
        try:
            return decode_chunk(key, value)
        except ValueError as error:
            raise damaged(self._storage.folder, place, error) from error

    def _in_file(
        self, partition: LogPartition, position: int, wanted: tuple[int, int, int, bool]
    ) -> tuple[StoredBatches | None, int] | None:
        """The batches of a value that are ``wanted`` (see :meth:`Layout.cut`), or None if none fits, and the
        next offset; None in place of both if the value is to be loaded.

        Loading a damaged value raises the error.
        """
        try:
            known = partition.index[position]
        except LogError:
            return None
        if known.size < FILE_BYTES or known.kind != BATCH or known.next - known.first > _FEW_BATCHES:
            return None
        if not StoredBatches.may_open():
            return None
        key = known.pack()
        if key in self._written or key in self._read or key in self.replaced:
            return None
        layout = self._layouts.get(key)
        if layout is not None:
            if not len(layout):
                return None
            _, size, offset = layout.cut(*wanted)
            if not size:  # most fetches end so, behind a value that fills them nearly: the file stays closed
                return None, offset
        try:
            opened = self._storage.open_file(key, "a value", None if layout is None else layout.file.name)
        except LogError:
            return None
        if opened is None:
            return None
        descriptor, file = opened
        if layout is None or layout.file != file:
            layout = self._checked(key, descriptor, file)
        if layout is None or not len(layout):
            os.close(descriptor)
            return None
        begin, size, offset = layout.cut(*wanted)
        run = StoredBatches(descriptor, begin, size)
        if size:
            return run, offset
        run.close()
        return None, offset

    def _checked(self, key: bytes, descriptor: int, file: ValueFile) -> Layout | None:
        """The layout of a value, which is read and checked."""
        size = file.state[2]
        if len(self._buffer) < size <= _BUFFER_BYTES:
            self._buffer = bytearray(_BUFFER_BYTES)
        buffer = memoryview(self._buffer if size <= _BUFFER_BYTES else bytearray(size))[:size]
        try:
            filled = os.preadv(descriptor, [buffer], 0)
            layout = layout_of(file, read_value(key, buffer[:filled]).places, buffer, self._layouts.clock())
        except (OSError, ValueError):
            return None
        self._layouts.put(key, layout)
        return layout

    def note_files(self, chunks: Mapping[bytes, NewChunk]) -> set[bytes]:
        """The values of a round that was committed; the keys of those that were put into files."""
        for key, file in self._storage.written:
            chunk = chunks.get(key)
            if chunk is not None and chunk.key.kind == BATCH and len(chunk.contents) <= _FEW_BATCHES:
                layout = layout_of_written(file, chunk.contents, BEHIND_CONTENTS, self._layouts.clock())
                self._layouts.put(key, layout)
        return {key for key, _ in self._storage.written}

    def remember(self, key: bytes, chunk: Chunk) -> None:
        """Keep a chunk that was just written in memory."""
        self._written.put(key, chunk)

    def forget(self, key: bytes) -> None:
        self._written.drop(key)
        self._read.drop(key)
        self._layouts.drop(key)

    def clear(self) -> None:
        self._written.clear()
        self._read.clear()
        self._layouts.clear()

    def _next(self, partition: LogPartition, position: int, has_some: bool) -> Chunk | None:
        """The chunk, or None if something before it could be read and it cannot, or it is skipped."""
        try:
            return self.load(partition, position)
        except LogError as error:
            if has_some:
                return None
            if self._skip is None or not isinstance(error, DamagedError):
                raise
            self._skip(error)
            return None


def damaged(path: str, place: str, error: Exception) -> DamagedError:
    """The error for a stored value that is damaged."""
    return DamagedError(
        path, f"{place} in the log {path} is damaged: {error}. Records behind it can be read", place
    )


def _fitting(
    contents: Sequence[bytes], start: int, stop: int, room: int, at_least_one: bool
) -> tuple[int, int]:
    """How many of ``contents[start:stop]`` fit into ``room`` bytes together, and their size."""
    if at_least_one and start < stop and len(contents[start]) > room:
        return 1, len(contents[start])
    fitting = size = 0
    step = _FIT_STEP
    while start + fitting < stop:
        part = contents[start + fitting : min(stop, start + fitting + step)]
        sizes = list(accumulate(map(len, part), initial=size))
        if sizes[-1] > room:
            more = bisect_right(sizes, room) - 1
            return fitting + more, sizes[more]
        fitting += len(part)
        size = sizes[-1]
        step *= 2
    return fitting, size
