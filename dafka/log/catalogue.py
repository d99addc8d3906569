"""What a folder holds, read from its keys when the log opens: partitions with their indexes, and tables."""

from __future__ import annotations

import struct
from collections import defaultdict

from dafka.log.chunk import CHUNK_TAG, ChunkKey
from dafka.log.errors import DamagedError
from dafka.log.partition import PARTITION_TAG, LogPartition, unpack_partition
from dafka.log.storage import LAYOUT_KEY, Storage
from dafka.log.table import TABLE_TAG, unpack_key


class Catalogue:
    """Partitions by their number, and the tables' keys as (table, key)."""

    def __init__(self) -> None:
        self.partitions: dict[int, LogPartition] = {}
        self.table_keys: list[tuple[str, str]] = []


def read_catalogue(storage: Storage) -> Catalogue:
    """Read all keys. Raises DamagedError for one that cannot be ours or does not fit the others."""
    catalogue = Catalogue()
    chunks: defaultdict[bytes, list[bytes]] = defaultdict(list)
    for key in storage:
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
            elif tag == TABLE_TAG:
                catalogue.table_keys.append(unpack_key(key))
            else:
                raise ValueError("no log has such a key")
        except ValueError as error:
            raise _damaged(storage, f"key {key!r}", str(error)) from error
    for prefix, keys in chunks.items():
        number = int.from_bytes(prefix, "big")
        partition = catalogue.partitions.get(number)
        if partition is None:
            raise _damaged(storage, f"partition number {number}", "it has records and no name")
        try:
            keys.sort()  # big endian numbers: the order of the bytes is the order of the sequences
            partition.index.extend(map(ChunkKey.unpack, keys))
        except (ValueError, struct.error) as error:
            place = f"the index of topic {partition.topic!r} of {partition.address!r}"
            raise _damaged(storage, place, str(error)) from error
    return catalogue


def _damaged(storage: Storage, place: str, cause: str) -> DamagedError:
    return DamagedError(
        storage.folder,
        f"{place} in the log {storage.folder} is damaged: {cause}. Restore the folder from a copy",
        place,
    )
