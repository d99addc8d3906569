"""The contents of a folder, read from its keys when the log opens: partitions with indexes, and tables."""

from __future__ import annotations

import struct
from collections import defaultdict
from collections.abc import Callable

from dafka.log.boot import rebooted
from dafka.log.changes import Garbage, add_dropped
from dafka.log.chunk import CHUNK_TAG, ChunkKey
from dafka.log.errors import DamagedError
from dafka.log.layout import LAYOUT_KEY
from dafka.log.limits import PAUSE_KEYS
from dafka.log.lost import LostValues
from dafka.log.partition import (
    DROPPED_TAG,
    FLOOR_TAG,
    PARTITION_TAG,
    LogPartition,
    unpack_dropped,
    unpack_floor,
    unpack_partition,
)
from dafka.log.storage import Storage
from dafka.log.table import TABLE_TAG, unpack_key


class Catalogue:
    """Partitions by their number, the tables' keys as (table, key), and what is still to be deleted."""

    def __init__(self) -> None:
        self.partitions: dict[int, LogPartition] = {}
        self.table_keys: list[tuple[str, str]] = []
        self.garbage = Garbage()
        self.dropped: set[int] = set()


def read_catalogue(storage: Storage, pause: Callable[[], object]) -> Catalogue:
    """Read all keys; calls ``pause`` now and then.

    Raises DamagedError for one that cannot be ours or does not fit the others.
    """
    catalogue = Catalogue()
    chunks: defaultdict[bytes, list[bytes]] = defaultdict(list)
    floors: dict[int, tuple[int, int]] = {}
    for count, key in enumerate(storage, 1):
        if not count % PAUSE_KEYS:
            pause()
        if type(key) is not bytes:
            if key != LAYOUT_KEY:
                raise _damaged(storage, f"key {key!r}", "no log has such a key")
            continue
        tag = key[:1]
        try:
            if tag == CHUNK_TAG:
                chunks[key[1:5]].append(key)
            elif tag == PARTITION_TAG:
                number, topic, address = unpack_partition(key)
                catalogue.partitions[number] = LogPartition(topic, address, number)
            elif tag == FLOOR_TAG:
                number, *floor = unpack_floor(key)
                floors[number] = floor[0], floor[1]
            elif tag == DROPPED_TAG:
                catalogue.dropped.add(unpack_dropped(key))
            elif tag == TABLE_TAG:
                catalogue.table_keys.append(unpack_key(key))
            else:
                raise ValueError("no log has such a key")
        except ValueError as error:
            raise _damaged(storage, f"key {key!r}", str(error)) from error
    lost = LostValues(storage.lost, bool(storage.lost) and rebooted(storage.folder))
    for count, (prefix, keys) in enumerate(chunks.items(), 1):
        if not count % PAUSE_KEYS:
            pause()
        number = int.from_bytes(prefix, "big")
        if number in catalogue.dropped and number not in catalogue.partitions:
            continue
        partition = catalogue.partitions.get(number)
        if partition is None:
            raise _damaged(storage, f"partition number {number}", "it has records and no name")
        try:
            keys.sort()  # big endian numbers: the order of the bytes is the order of the sequences
            index = partition.index
            for begin in range(0, len(keys), PAUSE_KEYS):
                index.extend(map(ChunkKey.unpack, keys[begin : begin + PAUSE_KEYS]))
                if begin:
                    pause()
            if storage.lost:
                lost.cut(partition, floors)
            if number in floors:
                index.floor_sequence, index.floor_offset = floors[number]
                catalogue.garbage.add(index.drop_trimmed())
        except (ValueError, struct.error) as error:
            place = f"the index of topic {partition.topic!r} of {partition.address!r}"
            raise _damaged(storage, place, str(error)) from error
    for number in catalogue.dropped - catalogue.partitions.keys():
        dead = map(ChunkKey.unpack, chunks.get(number.to_bytes(4, "big"), ()))
        add_dropped(catalogue.garbage, number, dead, floors.get(number, (0, 0)))
    lost.commit(storage, catalogue.table_keys)
    return catalogue


def _damaged(storage: Storage, place: str, cause: str) -> DamagedError:
    return DamagedError(
        storage.folder,
        f"{place} in the log {storage.folder} is damaged: {cause}. Restore the folder from a copy",
        place,
    )
