"""Dafka partitions in the log, each the messages of one producer on one topic; and the keys of their rows."""

from __future__ import annotations

import struct
import weakref
from collections.abc import Callable, Iterable

from dafka.log.chunk import CHUNK_KEY_BYTES, KIND_NAMES, ChunkKey
from dafka.log.index import ChunkIndex
from dafka.log.limits import NAME_BYTES, PAUSE_KEYS

PARTITION_TAG = b"p"
DROPPED_TAG = b"d"
FLOOR_TAG = b"f"
_KEY = struct.Struct(">cIB")
_FLOOR = struct.Struct(">cIQq")
_DROPPED = struct.Struct(">cI")


Names = tuple[bytes, bytes]
"""The topic and the address of a partition."""

PackedIndex = bytes
"""The number of a partition (u32) and the keys of its chunks, one after the other."""


class LogPartition:
    """The state of one partition in the log. Only the log may change it.

    ``number`` is the partition's number in this folder, for good, or -1 before its first commit.
    The ranges are those of committed messages: ``first_sequence`` is the first message that exists and
    ``next_sequence`` the one to be appended next; offsets likewise. All are 0 while there is nothing.
    After trimming, ``first_offset`` may lie inside the first message (a record batch is kept whole) or before
    it, where what was trimmed ends in a gap, and
    both firsts may be equal to the nexts. ``dropped`` says that the partition was deleted for good.
    """

    __slots__ = ("__weakref__", "address", "dropped", "index", "merge_floor", "topic")

    def __init__(
        self, topic: bytes, address: bytes, number: int = -1, index: ChunkIndex | None = None
    ) -> None:
        self.topic = topic
        self.address = address
        self.index = ChunkIndex(number) if index is None else index
        self.merge_floor = 0  # chunks below this sequence stay as they are: one of them is damaged
        self.dropped = False

    @property
    def number(self) -> int:
        return self.index.number

    @property
    def kind(self) -> str | None:
        """``'raw'`` or ``'batch'``, for life from the first message on; None before that."""
        return KIND_NAMES.get(self.index.kind)

    @property
    def first_sequence(self) -> int:
        return self.index.first_sequence

    @property
    def next_sequence(self) -> int:
        return self.index.next_sequence

    @property
    def first_offset(self) -> int:
        return self.index.first_offset

    @property
    def next_offset(self) -> int:
        return self.index.next_offset

    @property
    def bytes(self) -> int:
        """Size of its stored values in bytes."""
        return self.index.bytes

    @property
    def newest_timestamp(self) -> int:
        """The timestamp of the last stored value in ms, -1 if there is none."""
        return self.index.times[-1] if len(self.index) else -1

    @property
    def largest_timestamp(self) -> int:
        """The largest timestamp that a stored value says it has, in ms, -1 if there is none."""
        return self.index.largest_timestamp

    def sequence_for_retention(
        self,
        *,
        older_than_ms: int | None = None,
        keep_bytes: int | None = None,
        max_values: int | None = None,
    ) -> int:
        """The sequence to trim to by retention; reads no values.

        Retention removes whole stored values from the front, as Kafka removes segments: values whose records
        are all older than ``older_than_ms`` (since the epoch), up to the first that is not, and values
        without which at least ``keep_bytes`` bytes remain. None: no bound. ``max_values`` bounds how many
        are removed at once. The last value is removed for its age only, not for its bytes. Records without a
        timestamp (-1) are never too old. Returns ``first_sequence`` if there is nothing to remove.
        """
        index = self.index
        count = len(index)
        most = count if max_values is None else max_values
        old = 0 if older_than_ms is None else index.older_than(older_than_ms, most)
        much = 0 if keep_bytes is None else min(index.beyond(keep_bytes, most), count - 1)
        position = max(old, much)
        if position <= 0:
            return self.first_sequence
        return max(index.nexts[position - 1], self.first_sequence)

    def offset_behind(self, sequence: int) -> int:
        """The offset behind the stored values that end at ``sequence`` or before it."""
        index = self.index
        position = index.at_sequence(sequence)
        return index.ends[position - 1] if position else index.first_offset

    def __repr__(self) -> str:
        return (
            f"<LogPartition {self.topic!r} of {self.address!r}: {self.kind}, "
            f"sequences {self.first_sequence} to {self.next_sequence - 1}>"
        )


class Partitions:
    """The partitions of a log by their names, in the order of their numbers.

    ``written`` are those on the disk, as (number, names, index). A small index is packed: a folder may have a
    hundred thousand partitions, and the objects of one are made when somebody asks for it. Calls ``pause``
    now and then while it takes them in.
    """

    def __init__(
        self,
        written: Iterable[tuple[int, Names, ChunkIndex | PackedIndex]],
        next_number: int,
        pause: Callable[[], object],
    ) -> None:
        self.next_number = next_number
        self._written: dict[Names, LogPartition | PackedIndex] = {}
        for count, (number, names, index) in enumerate(written, 1):
            self._written[names] = (
                LogPartition(*names, number, index) if isinstance(index, ChunkIndex) else index
            )
            if not count % PAUSE_KEYS:
                pause()
        # A partition without messages lasts as long as a caller has it.
        self._unwritten: weakref.WeakValueDictionary[tuple[bytes, bytes], LogPartition] = (
            weakref.WeakValueDictionary()
        )

    def get(self, topic: bytes, address: bytes) -> LogPartition:
        """The partition, a new one if there is none. Raises ValueError for a name over 255 bytes."""
        names = (topic, address)
        partition = self.find(topic, address) or self._unwritten.get(names)
        if partition is None:
            for name in names:
                if len(name) > NAME_BYTES:
                    raise ValueError(f"a topic or address has at most {NAME_BYTES} bytes: {name[:40]!r}...")
            partition = self._unwritten[names] = LogPartition(topic, address)
        return partition

    def find(self, topic: bytes, address: bytes) -> LogPartition | None:
        """The partition if it was ever written to."""
        found = self._written.get((topic, address))
        if type(found) is bytes:
            found = self._written[topic, address] = LogPartition(topic, address, index=unpack_index(found))
        return found  # type: ignore[return-value]

    def names(self) -> list[Names]:
        """Topic and address of all partitions that were ever written to."""
        return list(self._written)

    def written(self) -> list[LogPartition]:
        """All partitions that were ever written to."""
        for names, found in self._written.items():
            if type(found) is bytes:
                self.find(*names)
        return list(self._written.values())  # type: ignore[arg-type]

    def register(self, partition: LogPartition, number: int) -> None:
        """Give a partition its number, with its first append."""
        names = partition.topic, partition.address
        partition.index.number = number
        self.next_number = number + 1
        self._written[names] = partition
        self._unwritten.pop(names, None)

    def drop(self, partition: LogPartition) -> None:
        """Forget a partition; its names stand for a new one from now on."""
        del self._written[partition.topic, partition.address]


def pack_index(number: int, keys: Iterable[bytes]) -> PackedIndex:
    """An index of few chunks as bytes, which cost less memory and nothing to make."""
    return b"".join([number.to_bytes(4, "big"), *keys])


def unpack_index(packed: PackedIndex) -> ChunkIndex:
    """The index that :func:`pack_index` packed; raises ValueError for keys that are damaged."""
    index = ChunkIndex(int.from_bytes(packed[:4], "big"))
    places = range(4, len(packed), CHUNK_KEY_BYTES)
    index.extend([ChunkKey.unpack(packed[place : place + CHUNK_KEY_BYTES]) for place in places])
    return index


def pack_partition(number: int, topic: bytes, address: bytes) -> bytes:
    """The key that registers a partition; names are in the key, so that opening reads no values."""
    return _KEY.pack(PARTITION_TAG, number, len(topic)) + topic + address


def unpack_partition(key: bytes) -> tuple[int, bytes, bytes]:
    """(number, topic, address); raises ValueError for anything that :func:`pack_partition` did not make."""
    if len(key) < _KEY.size:
        raise ValueError(f"a partition's key of {len(key)} bytes")
    _, number, length = _KEY.unpack_from(key)
    topic = key[_KEY.size : _KEY.size + length]
    if len(topic) != length:
        raise ValueError(f"a partition's key whose topic should have {length} bytes and has {len(topic)}")
    return number, topic, key[_KEY.size + length :]


def pack_floor(number: int, sequence: int, offset: int) -> bytes:
    """The key that says what partition ``number`` was trimmed to; there is at most one."""
    return _FLOOR.pack(FLOOR_TAG, number, sequence, offset)


def unpack_floor(key: bytes) -> tuple[int, int, int]:
    """(number, sequence, offset); raises ValueError for anything that :func:`pack_floor` did not make."""
    if len(key) != _FLOOR.size:
        raise ValueError(f"a partition's floor with a key of {len(key)} bytes")
    _, number, sequence, offset = _FLOOR.unpack(key)
    return number, sequence, offset


def pack_dropped(number: int) -> bytes:
    """The key that stands for a deleted partition until the last of its values is gone."""
    return _DROPPED.pack(DROPPED_TAG, number)


def unpack_dropped(key: bytes) -> int:
    """The number; raises ValueError for anything that :func:`pack_dropped` did not make."""
    if len(key) != _DROPPED.size:
        raise ValueError(f"a deleted partition's key of {len(key)} bytes")
    number: int = _DROPPED.unpack(key)[1]
    return number
