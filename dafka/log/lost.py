"""What a power cut took from a log with durability ``'process'``: the last values of its partitions.

Their rows are in the database, and the files were not written yet. A partition then ends before the first of
them, as if they had never been stored. Only values of the last seconds are given up so, and none that has a
readable one behind it in its partition: those are damage, as any other value that cannot be read.

A partition's only value stays all the same, because it says where the partition stands; the partition is
trimmed to its end.
"""

from __future__ import annotations

import logging
from collections.abc import Collection

from dafka.log.changes import sealed
from dafka.log.partition import LogPartition, pack_floor
from dafka.log.storage import Storage

logger = logging.getLogger(__name__)

Floors = dict[int, tuple[int, int]]


class LostValues:
    """Values whose files are lost, by their keys, and what becomes of their partitions."""

    def __init__(self, keys: Collection[bytes]) -> None:
        self._keys = keys
        self._deleted: list[bytes] = []
        self._stored: list[tuple[bytes, bytes]] = []

    def cut(self, partition: LogPartition, floors: Floors) -> None:
        """Have ``partition`` end before the lost values at its end; changes its index or its floor."""
        index, end = partition.index, partition.next_sequence
        while len(index) > 1 and index[-1].pack() in self._keys:
            self._deleted.append(index[-1].pack())
            index.drop_last(1)
        new, old = (partition.next_sequence, partition.next_offset), floors.get(partition.number)
        first = new[0]
        gone = len(index) == 1 and index[0].pack() in self._keys
        if old != new and (gone or (old is not None and old > new)):
            first = index.firsts[0] if gone else first
            if old is not None:
                self._deleted.append(pack_floor(partition.number, *old))
            floors[partition.number] = new
            self._stored.append(sealed(pack_floor(partition.number, *new)))
        if first < end:
            logger.warning(
                "sequences %d to %d of topic %r of %r were lost when the machine went down: "
                "durability 'process' does not keep what was stored in the seconds before",
                *(first, end - 1, partition.topic, partition.address),
            )

    def commit(self, storage: Storage) -> None:
        """Write it down. Raises LogWriteError."""
        if self._deleted or self._stored:
            storage.commit(self._deleted, self._stored)
