"""The contents of a folder, read from its keys when the log opens: partitions with indexes, and tables."""

from __future__ import annotations

import struct
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, groupby
from operator import itemgetter
from typing import TypeVar

from dafka.log.blocks import Blocks, chunks_from
from dafka.log.boot import rebooted
from dafka.log.changes import Garbage, add_dropped, drop_trimmed
from dafka.log.chunk import CHUNK_KEY_BYTES, CHUNK_TAG, ChunkKey
from dafka.log.errors import DamagedError
from dafka.log.index import ChunkIndex
from dafka.log.layout import LAYOUT_KEY
from dafka.log.lost import LostValues
from dafka.log.partition import (
    DROPPED_TAG,
    FLOOR_TAG,
    PARTITION_TAG,
    LogPartition,
    Names,
    PackedIndex,
    pack_index,
    unpack_dropped,
    unpack_floor,
    unpack_partition,
)
from dafka.log.sealed import BLOCK_TAG, BlockKey, Load
from dafka.log.storage import Storage
from dafka.log.table import TABLE_TAG, unpack_key

T = TypeVar("T")

_PARTITION = slice(1, 5)  # the number of the partition in a chunk's key
_UNKNOWN = "no log has such a key"
_BYTES, _LENGTHS = {bytes}, {CHUNK_KEY_BYTES}
_FEW = 16  # chunks of a partition whose index stays packed until somebody asks for it


class Catalogue:
    """The contents of a folder, by its keys.

    ``names`` and ``indexes`` are those of partitions by their numbers, in the order of the numbers,
    ``table_keys`` the keys of tables in their order, and ``garbage`` is what is still to be deleted.
    """

    def __init__(self, storage: Storage) -> None:
        self.blocks = Blocks(storage)
        self.names: dict[int, Names] = {}
        self.indexes: dict[int, ChunkIndex | PackedIndex] = {}
        self.floors: dict[int, tuple[int, int]] = {}
        self.table_keys: dict[str, list[str]] = {}
        self.garbage = Garbage(self.blocks.chunks)
        self.dropped: set[int] = set()

    def partitions(self) -> Iterator[tuple[int, Names, ChunkIndex | PackedIndex]]:
        """(number, names, index) of each partition."""
        for number, names in self.names.items():
            yield number, names, self.indexes.get(number) or ChunkIndex(number)


def read_catalogue(storage: Storage, pause: Callable[[], object]) -> Catalogue:
    """Read all keys; calls ``pause`` now and then.

    Raises DamagedError for one that cannot be ours or does not fit the others.
    """
    catalogue = Catalogue(storage)
    tags = (CHUNK_TAG, BLOCK_TAG, PARTITION_TAG, FLOOR_TAG, DROPPED_TAG, TABLE_TAG)
    for other in storage.other_keys(tags):
        if other != LAYOUT_KEY:
            raise _damaged(storage, f"key {other!r}", _UNKNOWN)
    for number, topic, address in _read(storage, PARTITION_TAG, unpack_partition, pause):
        catalogue.names[number] = topic, address
    for number, sequence, offset in _read(storage, FLOOR_TAG, unpack_floor, pause):
        catalogue.floors[number] = sequence, offset
    catalogue.dropped.update(_read(storage, DROPPED_TAG, unpack_dropped, pause))
    for table, key in _read(storage, TABLE_TAG, unpack_key, pause):
        catalogue.table_keys.setdefault(table, []).append(key)
    _read_chunks(storage, catalogue, pause)
    return catalogue


def _read_chunks(storage: Storage, catalogue: Catalogue, pause: Callable[[], object]) -> None:
    lost = LostValues(storage.lost, bool(storage.lost) and rebooted(storage.folder))
    floors, garbage, load = catalogue.floors, catalogue.garbage, catalogue.blocks.load
    dead = catalogue.dropped - catalogue.names.keys()
    sealed: defaultdict[int, list[BlockKey]] = defaultdict(list)
    for block in _read(storage, BLOCK_TAG, BlockKey.unpack, pause):
        if block.partition in lost.partitions:
            lost.unseal([block.pack()])
        else:
            sealed[block.partition].append(block)
    for prefix, group in groupby(_read_pieces(storage, pause, sealed), itemgetter(0)):
        number, pieces = int.from_bytes(prefix, "big"), (keys for _, keys in group)
        names = catalogue.names.get(number)
        if number in dead:
            dead.remove(number)
            garbage.add_blocks(sealed.pop(number, ()))
            add_dropped(
                garbage, number, map(ChunkKey.unpack, chain.from_iterable(pieces)), floors.get(number, (0, 0))
            )
            continue
        if names is None:
            raise _damaged(storage, f"partition number {number}", "it has records and no name")
        few, blocks = next(pieces), sealed.pop(number, [])
        while len(few) < _FEW and not blocks and (more := next(pieces, None)):
            few += more
        try:
            if len(few) < _FEW and number not in floors and not storage.lost and not blocks:
                catalogue.indexes[number] = pack_index(number, few)
                _check(number, few)
                continue
            index = catalogue.indexes[number] = ChunkIndex(number)
            if not blocks:
                for some in chain((few,), pieces):
                    index.extend_packed(some)
            else:
                _join(index, blocks, chain((few,), pieces), load)
            if storage.lost:
                lost.cut(LogPartition(*names, index=index), floors)
            if number in floors:
                index.floor_sequence, index.floor_offset = floors[number]
                lost.unseal(index.unseal_trimmed())  # there are none: they go when the floor is set
                drop_trimmed(index, garbage)
        except (ValueError, struct.error) as error:
            place = f"the index of topic {names[0]!r} of {names[1]!r}"
            raise _damaged(storage, place, str(error)) from error
    for number in sealed.keys() - dead:
        raise _damaged(storage, f"partition number {number}", "it has an index and no records")
    for number in dead:
        garbage.add_blocks(sealed.pop(number, ()))
        add_dropped(garbage, number, (), floors.get(number, (0, 0)))
    lost.commit(storage, catalogue.table_keys)


def _read(
    storage: Storage, tag: bytes, unpack: Callable[[bytes], T], pause: Callable[[], object]
) -> Iterator[T]:
    for page in storage.keys(tag):
        pause()
        for key in page:
            try:
                if type(key) is not bytes:
                    raise ValueError(_UNKNOWN)
                unpacked = unpack(key)
            except ValueError as error:
                raise _damaged(storage, f"key {key!r}", str(error)) from error
            yield unpacked


def _join(index: ChunkIndex, blocks: Sequence[BlockKey], pieces: Iterable[list[bytes]], load: Load) -> None:
    """Fill an index from its blocks and from the keys before and behind them. Raises ValueError."""
    begin = chunks_from(index.number, blocks[0].first)
    attached = False
    for keys in pieces:
        if not attached and keys[0] >= begin:
            index.attach(blocks, load)
            attached = True
        index.extend_packed(keys)
    if not attached:
        raise ValueError("it ends with a block")


def _unsealed_keys(storage: Storage, sealed: Mapping[int, Sequence[BlockKey]]) -> Iterator[list[object]]:
    """The keys of the chunks that are in no block, in order."""
    begin = b""
    for number in sorted(sealed):
        blocks = sealed[number]
        yield from storage.keys(CHUNK_TAG, begin, chunks_from(number, blocks[0].first))
        begin = chunks_from(number, blocks[-1].next)
    yield from storage.keys(CHUNK_TAG, begin)


def _read_pieces(
    storage: Storage, pause: Callable[[], object], sealed: Mapping[int, Sequence[BlockKey]]
) -> Iterator[tuple[bytes, list[bytes]]]:
    """The keys of chunks in no block, in pieces of one partition, each with the octets of its number.

    Most keys of a large log lie between others of their partition, and are not looked at one by one.
    """
    for page in _unsealed_keys(storage, dict(sealed)):
        pause()
        for key in () if set(map(type, page)) == _BYTES and set(map(len, page)) == _LENGTHS else page:  # type: ignore[arg-type]
            if type(key) is not bytes or len(key) != CHUNK_KEY_BYTES:
                raise _damaged(storage, f"key {key!r}", _UNKNOWN)
        keys: list[bytes] = page  # type: ignore[assignment]
        if keys[0][_PARTITION] == keys[-1][_PARTITION]:
            yield keys[0][_PARTITION], keys
        else:
            for prefix, some in groupby(keys, itemgetter(_PARTITION)):
                yield prefix, list(some)


def _check(number: int, keys: list[bytes]) -> None:
    """Raise ValueError for keys that make no index."""
    known = map(ChunkKey.unpack, keys)
    if len(keys) == 1:
        next(known)  # which is all for most of very many partitions
    else:
        ChunkIndex(number).extend(known)


def _damaged(storage: Storage, place: str, cause: str) -> DamagedError:
    return DamagedError(
        storage.folder,
        f"{place} in the log {storage.folder} is damaged: {cause}. Restore the folder from a copy",
        place,
    )
