"""One Dafka partition in the log: the messages of one producer on one topic."""

from __future__ import annotations

import struct

from dafka.log.chunk import KIND_NAMES
from dafka.log.index import ChunkIndex

PARTITION_TAG = b"p"
_KEY = struct.Struct(">cIB")


class LogPartition:
    """What the log holds of one partition. Read-only for everybody but the log.

    ``number`` is the partition's number in this folder, for good, or -1 before its first commit.
    The ranges are those of committed messages: ``first_sequence`` is the first message that exists and
    ``next_sequence`` the one to be appended next; offsets likewise. All are 0 while there is nothing.
    """

    __slots__ = ("__weakref__", "address", "index", "merge_floor", "topic")

    def __init__(self, topic: bytes, address: bytes, number: int = -1) -> None:
        self.topic = topic
        self.address = address
        self.index = ChunkIndex(number)
        self.merge_floor = 0  # chunks below this sequence stay as they are: one of them is damaged

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
        """What its stored values take, in bytes."""
        return self.index.bytes

    def __repr__(self) -> str:
        return (
            f"<LogPartition {self.topic!r} of {self.address!r}: {self.kind}, "
            f"sequences {self.first_sequence} to {self.next_sequence - 1}>"
        )


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
