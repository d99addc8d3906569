"""After a power cut a log with durability ``'process'`` may have lost the last values of its partitions.

Their rows are in the database, but their files never reached the disk. The partition then ends before the
first lost value, as if nothing had been stored from there on; Kafka does the same. Only values of the last
seconds are given up in this way. If the machine has not gone down since the log was opened, files that are
missing have been lost in some other way, and those with a readable value behind them in their partition are
damage, as any other value that cannot be read.

A partition's only value stays all the same, because it says where the partition stands; the partition is
trimmed to its end. Its offsets are not given again.

State that is kept elsewhere may refer to lost records. The log forgets how far such a partition was
compacted, and notes the offset from which on all is lost in the table LOST_TABLE, where owners of other state
look it up.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from dafka.log.changes import sealed
from dafka.log.chunk import ChunkKey
from dafka.log.partition import LogPartition, pack_floor
from dafka.log.repeating import bounded_logger
from dafka.log.storage import Storage
from dafka.log.table import COMPACTION_TABLE, LOST_TABLE, encode_values

logger = bounded_logger(__name__)

Floors = dict[int, tuple[int, int]]


class LostValues:
    """Truncates partitions with values whose files are lost; ``keys`` are those of the values.

    ``rebooted`` says whether the machine has gone down since they were stored.
    """

    def __init__(self, keys: Collection[bytes], rebooted: bool) -> None:
        self._keys = keys
        self._rebooted = rebooted
        self._deleted: list[bytes] = []
        self.partitions = {ChunkKey.unpack(key).partition for key in keys}
        """Numbers of the partitions that they are in."""
        self._stored: list[tuple[bytes, bytes]] = []
        self._notes: dict[tuple[str, str], object] = {}

    def cut(self, partition: LogPartition, floors: Floors) -> None:
        """Truncate ``partition`` before its first lost value; changes its index or its floor."""
        index, end = partition.index, partition.next_sequence
        old = floors.get(partition.number)
        kept = max(1, self._kept(partition, old))
        self._deleted += [index[position].pack() for position in range(kept, len(index))]
        index.drop_last(len(index) - kept)
        new = partition.next_sequence, partition.next_offset
        first = new[0]
        gone = len(index) == 1 and index[0].pack() in self._keys
        if old != new and (gone or (old is not None and old > new)):
            first = index.firsts[0] if gone else first
            if old is not None:
                self._deleted.append(pack_floor(partition.number, *old))
            floors[partition.number] = new
            self._stored.append(sealed(pack_floor(partition.number, *new)))
        if first < end:
            self._notes[COMPACTION_TABLE, str(partition.number)] = None
            self._notes[LOST_TABLE, str(partition.number)] = index[0].base_offset if gone else new[1]
            logger.warning(
                "sequences %d to %d of topic %r of %r were lost when the machine went down: "
                "durability 'process' does not keep what was stored in the seconds before",
                *(first, end - 1, partition.topic, partition.address),
            )

    def _kept(self, partition: LogPartition, floor: tuple[int, int] | None) -> int:
        """How many values stay."""
        index = partition.index
        count = len(index)
        while count and index[count - 1].pack() in self._keys:
            count -= 1
        if not self._rebooted:
            return count
        lost = (key for key in map(ChunkKey.unpack, self._keys) if key.partition == partition.number)
        begins = 0 if floor is None else floor[0]
        return min((index.at_sequence(key.first) for key in lost if key.next > begins), default=count)

    def unseal(self, blocks: Iterable[bytes]) -> None:
        """Delete blocks with chunks of these partitions: their indexes may end before them."""
        self._deleted += blocks

    def commit(self, storage: Storage, table_keys: dict[str, list[str]]) -> None:
        """Write the truncations, and add their rows to ``table_keys``. Raises LogWriteError."""
        if self._deleted or self._stored:
            _, (deleted, stored) = encode_values(storage.folder, self._notes)
            storage.commit([*self._deleted, *deleted], [*self._stored, *stored])
            for (table, key), value in self._notes.items():
                keys = {*table_keys.get(table, ())} - {key}
                table_keys[table] = sorted(keys if value is None else keys | {key})
