"""Reading a Fetch request, by hand, versions 0 to 18. From version 13 on topics have ids."""

from __future__ import annotations

import struct
from typing import NamedTuple
from uuid import UUID

from dafka.broker.codec.limits import MAX_WAIT_SECONDS
from dafka.broker.codec.reader import Items, naming_errors, read_count, read_topic, skip_tags
from dafka.broker.interface.broker import NO_EPOCH, FetchFrom

SESSIONS = 7
FLEXIBLE = 12
BY_ID = 13
REPLICA_TAGGED = 15
NO_SESSION = 0
INITIAL, FINAL = 0, -1  # session epochs

_INT32 = struct.Struct(">i")
_TWO_INT32 = struct.Struct(">ii")
_OLDEST_PARTITION = struct.Struct(">iqi")  # number, offset, max bytes
_STARTED_PARTITION = struct.Struct(">iqqi")  # number, offset, log start, max bytes
_EPOCH_PARTITION = struct.Struct(">iiqqi")  # number, leader epoch, offset, log start, max bytes
_PARTITION = struct.Struct(">iiqiqi")  # number, leader epoch, offset, fetched epoch, log start, max bytes

Place = tuple["str | UUID", int]
"""A partition as requests name it: its topic's name or id, and its number."""


Asked = tuple[Place, FetchFrom]
"""What is asked of one partition."""


class FetchRequest(NamedTuple):
    """A request; times in seconds. ``forgotten`` are partitions to be taken out of the session."""

    max_wait: float
    min_bytes: int
    max_bytes: int
    read_committed: bool
    session_id: int
    session_epoch: int
    partitions: list[Asked]
    forgotten: list[Place]


@naming_errors("FetchRequest")
def read_fetch(data: memoryview, position: int, version: int, items: Items) -> FetchRequest:
    """The request whose body begins at ``position``. Raises BadRequestError."""
    if version < REPLICA_TAGGED:
        position += 4
    max_wait, min_bytes = _TWO_INT32.unpack_from(data, position)
    position += 8
    max_bytes, isolation, session_id, session_epoch = 2**31 - 1, 0, NO_SESSION, FINAL
    if version >= 3:
        (max_bytes,) = _INT32.unpack_from(data, position)
        position += 4
    if version >= 4:
        isolation = data[position]
        position += 1
    if version >= SESSIONS:
        session_id, session_epoch = _TWO_INT32.unpack_from(data, position)
        position += 8
    partitions, position = _read_partitions(data, position, version, items)
    forgotten = _read_forgotten(data, position, version, items) if version >= SESSIONS else []
    # What follows says where the client is, and nothing that is wanted.
    wait = min(max(max_wait, 0) / 1000, MAX_WAIT_SECONDS)
    return FetchRequest(
        wait, min_bytes, max_bytes, isolation == 1, session_id, session_epoch, partitions, forgotten
    )


def _read_partitions(data: memoryview, position: int, version: int, items: Items) -> tuple[list[Asked], int]:
    flexible, by_id = version >= FLEXIBLE, version >= BY_ID
    found: list[Asked] = []
    epoch = last_epoch = NO_EPOCH
    topics, position = read_count(data, position, flexible, items)
    for _ in range(topics):
        topic, position = read_topic(data, position, by_id, flexible)
        count, position = read_count(data, position, flexible, items)
        for _ in range(count):
            if flexible:
                number, epoch, offset, last_epoch, _, size = _PARTITION.unpack_from(data, position)
                position = skip_tags(data, position + _PARTITION.size, items)
            elif version >= 9:
                number, epoch, offset, _, size = _EPOCH_PARTITION.unpack_from(data, position)
                position += _EPOCH_PARTITION.size
            elif version >= 5:
                number, offset, _, size = _STARTED_PARTITION.unpack_from(data, position)
                position += _STARTED_PARTITION.size
            else:
                number, offset, size = _OLDEST_PARTITION.unpack_from(data, position)
                position += _OLDEST_PARTITION.size
            found.append(((topic, number), FetchFrom(offset, max(size, 0), epoch, last_epoch)))
        if flexible:
            position = skip_tags(data, position, items)
    return found, position


def _read_forgotten(data: memoryview, position: int, version: int, items: Items) -> list[Place]:
    flexible, by_id = version >= FLEXIBLE, version >= BY_ID
    found: list[Place] = []
    topics, position = read_count(data, position, flexible, items)
    for _ in range(topics):
        topic, position = read_topic(data, position, by_id, flexible)
        count, position = read_count(data, position, flexible, items)
        for _ in range(count):
            found.append((topic, _INT32.unpack_from(data, position)[0]))
            position += 4
        if flexible:
            position = skip_tags(data, position, items)
    return found
