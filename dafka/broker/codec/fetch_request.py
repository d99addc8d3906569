"""The Fetch request in bytes: how a broker reads versions 0 to 18, and how a client writes 4 to 12.

From version 13 on topics have ids instead of names. Our client stays below that: a broker interface takes
names, also for a topic that was deleted and created again, and ids would have to be looked up first. It also
uses no fetch sessions, because it names few partitions in a request and has several requests in flight.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import NamedTuple
from uuid import UUID

from dafka.broker.codec.framing import array_size, compact_string, string
from dafka.broker.codec.limits import MAX_WAIT_SECONDS
from dafka.broker.codec.reader import Items, naming_errors, read_count, read_topic, skip_tags
from dafka.broker.interface.broker import NO_EPOCH, FetchFrom, TopicPartition

API_KEY = 1
LOWEST, HIGHEST = 4, 12  # the versions that our client writes
SESSIONS = 7
FLEXIBLE = 12
BY_ID = 13
REPLICA_TAGGED = 15
NO_SESSION = 0
INITIAL, FINAL = 0, -1  # session epochs

_READ_UNCOMMITTED, _READ_COMMITTED = 0, 1
_INT32 = struct.Struct(">i")
_INT64 = struct.Struct(">q")
_TWO_INT32 = struct.Struct(">ii")
_HEAD = struct.Struct(">iiiib")  # replica, max wait, min bytes, max bytes, isolation level
_OUTSIDE_OF_SESSIONS = struct.pack(">ii", NO_SESSION, FINAL)
_OLDEST_PARTITION = struct.Struct(">iqi")  # number, offset, max bytes
_STARTED_PARTITION = struct.Struct(">iqqi")  # number, offset, log start, max bytes
_EPOCH_PARTITION = struct.Struct(">iiqqi")  # number, leader epoch, offset, log start, max bytes
_PARTITION = struct.Struct(">iiqiqi")  # number, leader epoch, offset, fetched epoch, log start, max bytes
_INT_MAX = 2**31 - 1

Place = tuple["str | UUID", int]
"""A partition as a request names it: name or id of the topic, and the partition's number."""

Asked = tuple[Place, FetchFrom]
"""A partition of a request, and from where to read it."""


class FetchRequest(NamedTuple):
    """A Fetch request; times in seconds. ``forgotten``: the partitions to remove from the session.

    ``known_level``: the isolation level is one that there is. ``counts``: how many of the partitions each
    topic of the request has.
    """

    max_wait: float
    min_bytes: int
    max_bytes: int
    read_committed: bool
    session_id: int
    session_epoch: int
    partitions: list[Asked]
    forgotten: list[Place]
    known_level: bool = True
    counts: Sequence[int] = ()


@naming_errors("FetchRequest")
def read_fetch(data: memoryview, position: int, version: int, items: Items) -> FetchRequest:
    """The request whose body begins at ``position``. Raises BadRequestError."""
    if version < REPLICA_TAGGED:
        position += 4
    max_wait, min_bytes = _TWO_INT32.unpack_from(data, position)
    position += 8
    session_id, session_epoch = NO_SESSION, FINAL
    (max_bytes,) = _INT32.unpack_from(data, position)
    isolation = data[position + 4]
    position += 5
    if version >= SESSIONS:
        session_id, session_epoch = _TWO_INT32.unpack_from(data, position)
        position += 8
    counts: list[int] = []
    partitions, position = _read_partitions(data, position, version, items, counts)
    forgotten = _read_forgotten(data, position, version, items) if version >= SESSIONS else []
    # The rest, the rack of the client, is not needed.
    wait = min(max(max_wait, 0) / 1000, MAX_WAIT_SECONDS)
    return FetchRequest(
        wait,
        min_bytes,
        max_bytes,
        isolation == _READ_COMMITTED,
        session_id,
        session_epoch,
        partitions,
        forgotten,
        isolation in (_READ_UNCOMMITTED, _READ_COMMITTED),
        counts,
    )


def _read_partitions(
    data: memoryview, position: int, version: int, items: Items, counts: list[int]
) -> tuple[list[Asked], int]:
    flexible, by_id = version >= FLEXIBLE, version >= BY_ID
    found: list[Asked] = []
    epoch = last_epoch = NO_EPOCH
    topics, position = read_count(data, position, flexible, items)
    for _ in range(topics):
        topic, position = read_topic(data, position, by_id, flexible)
        count, position = read_count(data, position, flexible, items)
        counts.append(count)
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
            if epoch < NO_EPOCH or last_epoch < NO_EPOCH:  # as in Kafka, none
                epoch, last_epoch = max(epoch, NO_EPOCH), max(last_epoch, NO_EPOCH)
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


def encode_fetch(
    partitions: Mapping[TopicPartition, FetchFrom],
    version: int,
    max_wait_ms: int,
    min_bytes: int,
    max_bytes: int,
    read_committed: bool,
) -> list[bytes]:
    """The body of a request without a fetch session, in pieces."""
    flexible = version >= FLEXIBLE
    name_of = compact_string if flexible else string
    tags = b"\0" if flexible else b""
    by_topic: dict[str, list[bytes]] = {}
    for (topic, number), wanted in partitions.items():
        piece = _INT32.pack(number)
        if version >= 9:
            piece += _INT32.pack(wanted.leader_epoch)
        piece += _INT64.pack(wanted.offset)
        if flexible:
            piece += _INT32.pack(wanted.last_epoch)
        if version >= 5:
            piece += b"\xff" * 8  # the log start, which only followers send
        by_topic.setdefault(topic, []).append(piece + _INT32.pack(min(wanted.max_bytes, _INT_MAX)) + tags)
    isolation = _READ_COMMITTED if read_committed else 0
    pieces = [_HEAD.pack(-1, max_wait_ms, min(min_bytes, _INT_MAX), min(max_bytes, _INT_MAX), isolation)]
    if version >= 7:
        pieces.append(_OUTSIDE_OF_SESSIONS)
    pieces.append(array_size(len(by_topic), flexible))
    for topic, some in by_topic.items():
        pieces += (name_of(topic), array_size(len(some), flexible), *some, tags)
    if version >= 7:
        pieces.append(array_size(0, flexible))  # no forgotten topics
    if version >= 11:
        pieces += (name_of(""), tags)  # no rack
    return pieces
