"""The contents of a folder, read from its keys when the log opens: partitions with indexes, and tables."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from itertools import chain, groupby
from operator import itemgetter
from typing import TypeVar

from dafka.log.boot import rebooted
from dafka.log.changes import Garbage, add_dropped
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

    def __init__(self) -> None:
        self.names: dict[int, Names] = {}
        self.indexes: dict[int, ChunkIndex | PackedIndex] = {}
        self.floors: dict[int, tuple[int, int]] = {}
        self.table_keys: dict[str, list[str]] = {}
        self.garbage = Garbage()
        self.dropped: set[int] = set()

    def partitions(self) -> Iterator[tuple[int, Names, ChunkIndex | PackedIndex]]:
        """(number, names, index) of each partition."""
        for number, names in self.names.items():
            yield number, names, self.indexes.get(number) or ChunkIndex(number)


def read_catalogue(storage: Storage, pause: Callable[[], object]) -> Catalogue:
    """Read all keys; calls ``pause`` now and then.

    Raises DamagedError for one that cannot be ours or does not fit the others.
    """
    catalogue = Catalogue()
    tags = (CHUNK_TAG, PARTITION_TAG, FLOOR_TAG, DROPPED_TAG, TABLE_TAG)
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
    floors, garbage = catalogue.floors, catalogue.garbage
    dead = catalogue.dropped - catalogue.names.keys()
    for prefix, group in groupby(_read_pieces(storage, pause), itemgetter(0)):
        number, pieces = int.from_bytes(prefix, "big"), (keys for _, keys in group)
        names = catalogue.names.get(number)
        if number in dead:
            dead.remove(number)
            add_dropped(
                garbage, number, map(ChunkKey.unpack, chain.from_iterable(pieces)), floors.get(number, (0, 0))
            )
            continue
        if names is None:
            raise _damaged(storage, f"partition number {number}", "it has records and no name")
        few = next(pieces)
        while len(few) < _FEW and (more := next(pieces, None)):
            few += more
        try:
            if len(few) < _FEW and number not in floors and not storage.lost:
                catalogue.indexes[number] = pack_index(number, few)
                _check(number, few)
                continue
            index = catalogue.indexes[number] = ChunkIndex(number)
            for some in chain((few,), pieces):
                index.extend_packed(some)
            if storage.lost:
                lost.cut(LogPartition(*names, index=index), floors)
            if number in floors:
                index.floor_sequence, index.floor_offset = floors[number]
                garbage.add(index.drop_trimmed())
        except (ValueError, struct.error) as error:
            place = f"the index of topic {names[0]!r} of {names[1]!r}"
            raise _damaged(storage, place, str(error)) from error
    for number in dead:
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


def _read_pieces(storage: Storage, pause: Callable[[], object]) -> Iterator[tuple[bytes, list[bytes]]]:
    """The keys of chunks, in pieces of one partition, each with the octets of its number.

    Most keys of a large log lie between others of their partition, and are not looked at one by one.
    """
    for page in storage.keys(CHUNK_TAG):
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
