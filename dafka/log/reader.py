"""Reading: chunks from memory or disk, and ranges of messages out of them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from itertools import accumulate

from dafka.log.chunk import Chunk, decode_chunk
from dafka.log.errors import DamagedError, LogError
from dafka.log.partition import LogPartition
from dafka.log.storage import Storage
from dafka.log.tail import ChunkCache
from dafka.log.timestamps import first_record_since

_FIT_STEP = 64  # messages looked at first when as many as fit into a number of bytes are wanted


class Reader:
    """What :class:`dafka.log.Log` reads with. The methods of the same names there say what they do."""

    def __init__(self, storage: Storage, tail_bytes: int) -> None:
        self.replaced: Mapping[bytes, Chunk] = {}  # rows that a round under way has taken away already
        self._storage = storage
        # Half for what was written, half for what was read: a reader of old records leaves the tail alone.
        self._written = ChunkCache(tail_bytes - tail_bytes // 2)
        self._read = ChunkCache(tail_bytes // 2)

    def read(
        self, partition: LogPartition, sequence: int, count: int, max_bytes: int
    ) -> tuple[int, list[bytes]]:
        index = partition.index
        start, taken = sequence, list[bytes]()
        for position in range(index.at_sequence(sequence), len(index)):
            if len(taken) >= count or (max_bytes <= 0 and taken):
                break
            chunk = self._next(partition, position, bool(taken))
            if chunk is None:
                break
            if not taken:
                start = max(start, chunk.first)
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
        for position in range(index.at_offset(offset), len(index)):
            if max_bytes <= 0 and taken:
                break
            chunk = self._next(partition, position, bool(taken))
            if chunk is None:
                break
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

    def offset_for_timestamp(self, partition: LogPartition, timestamp: int) -> tuple[int, int] | None:
        index = partition.index
        for position in range(index.at_timestamp(timestamp), len(index)):
            found = first_record_since(self.load(partition, position), timestamp)
            if found is not None:
                return found
        return None

    def load(self, partition: LogPartition, position: int) -> Chunk:
        """The chunk at ``position`` of the partition's index. Raises DamagedError, LogReadError."""
        known = partition.index[position]
        key = known.pack()
        chunk = self._written.get(key) or self._read.get(key) or self.replaced.get(key)
        if chunk is None:
            place = (
                f"sequences {known.first} to {known.next - 1} of topic {partition.topic!r} "
                f"of {partition.address!r}"
            )
            value = self._storage.get(key, place)
            try:
                chunk = decode_chunk(key, value)
            except ValueError as error:
                raise damaged(self._storage.folder, place, error) from error
            self._read.put(key, chunk)
        return chunk

    def remember(self, key: bytes, chunk: Chunk) -> None:
        """Put what was just written into the tail."""
        self._written.put(key, chunk)

    def forget(self, key: bytes) -> None:
        self._written.drop(key)
        self._read.drop(key)

    def clear(self) -> None:
        self._written.clear()
        self._read.clear()

    def _next(self, partition: LogPartition, position: int, has_some: bool) -> Chunk | None:
        """The chunk, or None if it cannot be read but something before it could be."""
        try:
            return self.load(partition, position)
        except LogError:
            if has_some:
                return None
            raise


def damaged(path: str, place: str, error: ValueError) -> DamagedError:
    """The error for a stored value that is not what was written."""
    return DamagedError(
        path, f"{place} in the log {path} is damaged: {error}. What lies behind it can be read", place
    )


def _fitting(contents: list[bytes], start: int, stop: int, room: int, at_least_one: bool) -> tuple[int, int]:
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
