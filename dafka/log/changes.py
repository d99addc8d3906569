"""The changes of a round other than appends: trimming, deleting, rewriting in place.

*Trimming* moves a partition's first sequence and first offset. That is one small row, the *floor*, so it
takes effect at once however much lies below. The values below it are *garbage* from then on: not in the
index, and deleted piece by piece in later rounds (:attr:`dafka.log.space.Space.garbage_bytes`), for deleting
megabytes costs as much as writing them and producers wait for each round. Opening a log finds garbage again
by the same rule. *Deleting a partition* likewise replaces the row with its name by one that says that its
number is dead; that row goes with the last of the values.

*Rewriting* puts one value, or several with gaps between them, in the place of neighbours that hold the same
sequences and offsets together; compaction does it.
"""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, groupby, islice
from typing import NamedTuple

from crc32c import crc32c

from dafka.log.chunk import BATCH, Chunk, ChunkKey, encode_chunk, value_size
from dafka.log.errors import StaleRewriteError
from dafka.log.growth import NewChunk
from dafka.log.index import ChunkIndex
from dafka.log.partition import LogPartition, pack_dropped, pack_floor, pack_partition
from dafka.log.sealed import BlockKey, Load, pack_block
from dafka.protocol.batch import read_header

Rows = tuple[list[bytes], list[tuple[bytes, bytes]]]
"""Keys to be deleted, and keys and values to be stored."""


class Trim(NamedTuple):
    """Drop messages from the front of ``partition``.

    Messages below ``before_sequence`` go, or records below ``before_offset``, or both; exactly, also inside
    a stored value and, for an offset, inside a record batch (which is kept whole, while ``first_offset``
    says from where on it counts). A place behind the end means the end.
    """

    partition: LogPartition
    before_sequence: int = 0
    before_offset: int = 0


class Rewrite(NamedTuple):
    """Put ``contents`` in the place of the chunks ``old``, neighbours in a partition of record batches.

    The contents must have the sequences (as many messages) and the offsets that the old ones have. None for
    one leaves a gap where its sequence and offsets were; the first one must be there.
    """

    partition: LogPartition
    old: Sequence[tuple[ChunkKey, Chunk]]
    contents: Sequence[bytes | None]

    @property
    def size(self) -> int:
        """Bytes of the contents."""
        return sum(map(len, filter(None, self.contents)))

    def pieces(self) -> Iterator[tuple[int, list[bytes]]]:
        """The runs of contents between the gaps, each with the sequence of its first message."""
        sequence = self.old[0][0].first
        for there, some in groupby(self.contents, lambda content: content is not None):
            piece = list(some)
            if there:
                yield sequence, [content for content in piece if content is not None]
            sequence += len(piece)


class Garbage:
    """Rows that are no longer in any index, in the order in which they are to be deleted.

    ``chunks`` gives the packed keys of the chunks of a block, which are found when it is their turn.
    """

    def __init__(self, chunks: Callable[[BlockKey], Iterable[bytes]] = lambda block: ()) -> None:
        self.bytes = 0
        self._chunks = chunks
        self._rows: deque[tuple[bytes | BlockKey, int]] = deque()

    def __len__(self) -> int:
        return len(self._rows)

    def add(self, keys: Iterable[ChunkKey]) -> None:
        for key in keys:
            self.add_row(key.pack(), key.size)

    def add_row(self, row: bytes, size: int) -> None:
        self._rows.append((row, size))
        self.bytes += size

    def add_blocks(self, blocks: Iterable[BlockKey]) -> None:
        """Blocks with all their chunks."""
        for block in blocks:
            self._rows.append((block, block.size))
            self.bytes += block.size

    def first(self, max_bytes: int, max_rows: int) -> list[bytes]:
        """Rows of about ``max_bytes`` bytes of values, at least one if there is any. Raises LogReadError."""
        if self._rows and isinstance(self._rows[0][0], BlockKey):
            self._unfold(self._rows[0][0])
        rows: list[bytes] = []
        for row, size in islice(self._rows, max_rows):
            if isinstance(row, BlockKey) or (rows and size > max_bytes):
                break
            rows.append(row)
            max_bytes -= size
        return rows

    def _unfold(self, block: BlockKey) -> None:
        """Put the rows of the block that comes first in its place, its own before the others."""
        keys = [ChunkKey.unpack(key) for key in self._chunks(block)]
        self._rows.popleft()
        rows = [(block.pack(), 0), *[(key.pack(), key.size) for key in keys]]
        self._rows.extendleft(reversed(rows))
        self.bytes += sum(key.size for key in keys) - block.size

    def drop(self, count: int) -> None:
        """Forget the first ``count`` rows: they are deleted."""
        for _ in range(count):
            self.bytes -= self._rows.popleft()[1]


class Changes:
    """The changes of one round, laid out. Nothing has changed before :meth:`apply`."""

    def __init__(self, drops: Iterable[LogPartition]) -> None:
        self.floors: dict[LogPartition, tuple[int, int]] = {}
        self.drops = [one for one in dict.fromkeys(drops) if one.number >= 0 and not one.dropped]
        self.rewrites: list[tuple[Rewrite, list[NewChunk]]] = []
        self.collected: list[bytes] = []
        self.seals: list[tuple[LogPartition, BlockKey, tuple[bytes, bytes]]] = []
        self.unsealed: dict[bytes, array[int]] = {}
        """Blocks with chunks that are trimmed or rewritten, which are deleted."""

    def __bool__(self) -> bool:
        return bool(self.floors or self.drops or self.rewrites or self.collected)

    def add_trims(
        self, trims: Iterable[Trim], floor: Callable[[LogPartition, int, int], tuple[int, int]]
    ) -> None:
        """``floor`` gives the first sequence and offset that remain after trimming to a place."""
        for trim in trims:
            partition = trim.partition
            if partition.number < 0 or partition.dropped or partition in self.drops:
                continue
            old = self.floors.get(partition, (partition.first_sequence, partition.first_offset))
            sequence, offset = floor(*trim)
            new = max(old[0], sequence), max(old[1], offset)
            if new != old:
                self.floors[partition] = new
                self.unsealed.update(partition.index.blocks_below(*new))

    def add_rewrite(self, path: str, rewrite: Rewrite) -> None:
        """Raises StaleRewriteError if the old chunks are not what the partition holds."""
        partition, old, contents = rewrite
        index = partition.index
        place = -1 if not old or partition.dropped else index.find([key for key, _ in old])
        if place < 0:
            raise StaleRewriteError(
                path, f"values of {partition!r} that were to be rewritten are no longer there as they were"
            )
        first, last = old[0][0], old[-1][0]
        whole = sum(key.next - key.first for key, _ in old) == last.next - first.first == len(contents)
        if not whole or contents[0] is None or index.kind != BATCH:
            raise ValueError(f"{len(contents)} messages cannot take the place of {first} to {last}")
        new = [_new_chunk(index.number, sequence, piece) for sequence, piece in rewrite.pieces()]
        self.rewrites.append((rewrite, new))
        self.unsealed.update(index.blocks_through(place, place + len(old)))

    def add_seal(self, partition: LogPartition, kept: int) -> None:
        """Write a block of a partition that has many chunks, of which the first ``kept`` stay."""
        keys = [] if partition in self.floors else partition.index.sealable(kept)
        if keys:
            row = pack_block(keys)
            self.seals.append((partition, BlockKey.unpack(row[0]), row))

    @property
    def replaced(self) -> Mapping[bytes, Chunk]:
        """Chunks whose rows a rewrite replaces."""
        return {key.pack(): chunk for rewrite, _ in self.rewrites for key, chunk in rewrite.old}

    def rows(self) -> Rows:
        deleted = [*self.collected, *self.unsealed]
        stored = [row for _, _, row in self.seals]
        for partition in self.drops:
            index = partition.index
            deleted.append(pack_partition(index.number, partition.topic, partition.address))
            stored.append(sealed(pack_dropped(index.number)))
        for partition, (sequence, offset) in self.floors.items():
            index = partition.index
            new = pack_floor(index.number, sequence, offset)
            if index.floor_sequence or index.floor_offset:
                deleted.append(pack_floor(index.number, index.floor_sequence, index.floor_offset))
            stored.append(sealed(new))
        for key, contents, _ in chain.from_iterable(new for _, new in self.rewrites):
            row = key.pack()
            stored.append((row, encode_chunk(row, BATCH, contents, [])))
        return deleted, stored

    def apply(self, garbage: Garbage, load: Load) -> list[bytes]:
        """Change the indexes and note garbage after the commit; the rows that no reader needs any more.
        ``load`` reads blocks."""
        forgotten: list[ChunkKey] = []
        for partition, block, _ in self.seals:
            partition.index.seal(block, load)
        for rewrite, new in self.rewrites:
            keys = [key for key, _ in rewrite.old]
            index = rewrite.partition.index
            index.replace(index.find(keys), len(keys), [chunk.key for chunk in new])
            forgotten += keys
        for partition, (sequence, offset) in self.floors.items():
            index = partition.index
            index.floor_sequence, index.floor_offset = sequence, offset
            forgotten += drop_trimmed(index, garbage)
        for partition in self.drops:
            index = partition.index
            floor = index.floor_sequence, index.floor_offset
            garbage.add_blocks(index.take_sealed())
            dropped = index.clear()
            index.floor_sequence = index.floor_offset = 0
            partition.dropped = True
            add_dropped(garbage, index.number, dropped, floor)
            forgotten += dropped
        garbage.drop(len(self.collected))
        return [key.pack() for key in forgotten]


def _new_chunk(number: int, first: int, contents: list[bytes]) -> NewChunk:
    """Record batches from sequence ``first`` on as one chunk of partition ``number``."""
    size = value_size(sum(map(len, contents)), len(contents), 0)
    time = max(read_header(content).max_timestamp for content in contents)
    base, end = read_header(contents[0]).base_offset, read_header(contents[-1]).next_offset
    return NewChunk(
        ChunkKey(number, first, first + len(contents), base, end, time, size, BATCH), contents, []
    )


def drop_trimmed(index: ChunkIndex, garbage: Garbage) -> list[ChunkKey]:
    """Have an index forget the chunks below its floor; they are garbage, and returned."""
    index.unseal_trimmed()
    trimmed = index.drop_trimmed()
    garbage.add(trimmed)
    return trimmed


def add_dropped(garbage: Garbage, number: int, keys: Iterable[ChunkKey], floor: tuple[int, int]) -> None:
    """Note the rows of a deleted partition; the one that says so comes last."""
    garbage.add(keys)
    if any(floor):
        garbage.add_row(pack_floor(number, *floor), 0)
    garbage.add_row(pack_dropped(number), 0)


def sealed(row: bytes) -> tuple[bytes, bytes]:
    """A row whose key holds all the information; its value is the key's checksum."""
    return row, crc32c(row).to_bytes(4, "little")
