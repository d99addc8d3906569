"""Fetch, by hand: batches go from the log into the response as they are.

Versions 4 to 18. There are no fetch sessions: every answer has session id 0, which tells the client to name
all its partitions each time. That is legal (KIP-227: a broker need not create a session), and who continues a
session is told that there is none. From version 13 on topics have ids.
"""

from __future__ import annotations

import struct
from typing import Any, NamedTuple
from uuid import UUID

from kafka.errors import (
    FetchSessionIdNotFoundError,
    InvalidFetchSessionEpochError,
    InvalidRequestError,
    UnknownLeaderEpochError,
    UnknownTopicIdError,
    UnsupportedCompressionTypeError,
    UnsupportedVersionError,
)

from dafka.broker.interface import NO_OFFSET, BrokerInterface, Error, Fetched, FetchFrom, TopicPartition
from dafka.broker.wire.errors import BadRequestError
from dafka.broker.wire.framing import Buffers, compact_string, string, varint
from dafka.broker.wire.limits import MAX_WAIT_SECONDS
from dafka.broker.wire.metadata import LEADER_EPOCH
from dafka.broker.wire.naming import code, topic_names
from dafka.broker.wire.reader import read_compact_string, read_string, read_varint, skip_tags
from dafka.protocol.batch import CODECS, COMPRESSION_MASK

OLDEST = 4
SESSIONS = 7
ZSTD = 10
FLEXIBLE = 12
BY_ID = 13
REPLICA_TAGGED = 15
NO_SESSION = 0
INITIAL, FINAL = 0, -1  # session epochs
_ATTRIBUTES = 22  # where in a batch the octet with the codec is

_INT32 = struct.Struct(">i")
_ERROR = struct.Struct(">hi")  # error, session id
_WAIT = struct.Struct(">ii")
_ABORTED = struct.Struct(">qq")
_OLDEST_PARTITION = struct.Struct(">iqi")  # number, offset, max bytes
_STARTED_PARTITION = struct.Struct(">iqqi")  # number, offset, log start, max bytes
_EPOCH_PARTITION = struct.Struct(">iiqqi")  # number, leader epoch, offset, log start, max bytes
_PARTITION = struct.Struct(">iiqiqi")  # number, leader epoch, offset, fetched epoch, log start, max bytes
_ANSWER = struct.Struct(">ihqqq")  # number, error, high watermark, last stable offset, log start


class FetchRequest(NamedTuple):
    """A request; times in seconds. The partitions of topics are (number, leader epoch, where from)."""

    max_wait: float
    min_bytes: int
    max_bytes: int
    read_committed: bool
    session_id: int
    session_epoch: int
    topics: list[tuple[str | UUID, list[tuple[int, int, FetchFrom]]]]


class FetchAnswer(NamedTuple):
    """What is answered: an error of the whole request, or partitions by topic."""

    error: Error | None
    topics: dict[str | UUID, list[tuple[int, Fetched]]]


def read_fetch(data: memoryview, position: int, version: int) -> FetchRequest:
    """The request whose body begins at ``position``. Raises BadRequestError."""
    try:
        return _read(data, position, version)
    except (struct.error, IndexError) as error:
        raise BadRequestError("short", "FetchRequest ends too early") from error
    except UnicodeDecodeError as error:
        raise BadRequestError("text", f"FetchRequest: {error}") from error


def _read(data: memoryview, position: int, version: int) -> FetchRequest:
    flexible = version >= FLEXIBLE
    text = read_compact_string if flexible else read_string
    if version < REPLICA_TAGGED:
        position += 4
    max_wait, min_bytes = _WAIT.unpack_from(data, position)
    position += 8
    max_bytes, isolation, session_id, session_epoch = 2**31 - 1, 0, NO_SESSION, FINAL
    if version >= 3:
        (max_bytes,) = _INT32.unpack_from(data, position)
        position += 4
    if version >= 4:
        isolation = data[position]
        position += 1
    if version >= SESSIONS:
        session_id, session_epoch = _WAIT.unpack_from(data, position)
        position += 8
    count, position = _count(data, position, flexible)
    topics: list[tuple[str | UUID, list[tuple[int, int, FetchFrom]]]] = []
    for _ in range(count):
        topic: str | UUID | None
        if version >= BY_ID:
            octets = bytes(data[position : position + 16])
            position += 16
            if len(octets) < 16:
                raise IndexError
            topic = UUID(bytes=octets)
        else:
            topic, position = text(data, position)
            if topic is None:
                raise BadRequestError("null", "a topic's name is null")
        partitions, position = _read_partitions(data, position, version)
        topics.append((topic, partitions))
        if flexible:
            position = skip_tags(data, position)
    # What follows says what to take out of a session, where the client is, and nothing that is wanted.
    wait = min(max(max_wait, 0) / 1000, MAX_WAIT_SECONDS)
    return FetchRequest(wait, min_bytes, max_bytes, isolation == 1, session_id, session_epoch, topics)


def _read_partitions(
    data: memoryview, position: int, version: int
) -> tuple[list[tuple[int, int, FetchFrom]], int]:
    count, position = _count(data, position, version >= FLEXIBLE)
    partitions = []
    epoch = -1
    for _ in range(count):
        if version >= FLEXIBLE:
            number, epoch, offset, _, _, size = _PARTITION.unpack_from(data, position)
            position = skip_tags(data, position + _PARTITION.size)
        elif version >= 9:
            number, epoch, offset, _, size = _EPOCH_PARTITION.unpack_from(data, position)
            position += _EPOCH_PARTITION.size
        elif version >= 5:
            number, offset, _, size = _STARTED_PARTITION.unpack_from(data, position)
            position += _STARTED_PARTITION.size
        else:
            number, offset, size = _OLDEST_PARTITION.unpack_from(data, position)
            position += _OLDEST_PARTITION.size
        partitions.append((number, epoch, FetchFrom(offset, max(size, 0))))
    return partitions, position


def _count(data: memoryview, position: int, flexible: bool) -> tuple[int, int]:
    if flexible:
        count, position = read_varint(data, position)
        count -= 1
    else:
        (count,) = _INT32.unpack_from(data, position)
        position += 4
    if count < 0:
        raise BadRequestError("null", "an array of FetchRequest is null")
    return count, position


def fetch(broker: BrokerInterface, request: FetchRequest, version: int, room: int) -> FetchAnswer:
    """Read from the broker, at most ``room`` bytes; waits as the request says."""
    if request.session_epoch not in (INITIAL, FINAL):
        known = request.session_id != NO_SESSION
        return FetchAnswer(FetchSessionIdNotFoundError if known else InvalidFetchSessionEpochError, {})
    names = topic_names(broker, [one for one, _ in request.topics if isinstance(one, UUID)])
    wanted: dict[TopicPartition, FetchFrom] = {}
    asked: dict[str | UUID, list[tuple[int, Any]]] = {}
    for topic, partitions in request.topics:
        name = names.get(topic) if isinstance(topic, UUID) else topic
        places = asked.setdefault(topic, [])
        for number, epoch, from_ in partitions:
            error = None
            if version < OLDEST:
                error = UnsupportedVersionError
            elif name is None:
                error = UnknownTopicIdError
            elif epoch > LEADER_EPOCH:
                error = UnknownLeaderEpochError
            elif (name, number) in wanted:
                error = InvalidRequestError
            else:
                wanted[name, number] = from_
            places.append((number, (name, number) if error is None else _refused(error)))
    refused = sum(map(len, asked.values())) > len(wanted)
    found = _fetch(broker, request, wanted, min(request.max_bytes, room), wait=not refused)
    answers = {
        topic: [(number, one if isinstance(one, Fetched) else found[one]) for number, one in places]
        for topic, places in asked.items()
    }
    if version < ZSTD:
        answers = {
            topic: [(number, _without_zstd(one)) for number, one in partitions]
            for topic, partitions in answers.items()
        }
    return FetchAnswer(None, answers)


def _fetch(
    broker: BrokerInterface,
    request: FetchRequest,
    wanted: dict[TopicPartition, FetchFrom],
    max_bytes: int,
    wait: bool,
) -> dict[TopicPartition, Fetched]:
    if not wanted:
        return {}
    options = {"read_committed": True} if request.read_committed else {}
    found = broker.fetch(
        wanted,
        max_wait=request.max_wait if wait else 0.0,
        min_bytes=request.min_bytes,
        max_bytes=max_bytes,
        **options,
    )
    if len(found) < len(wanted):
        # A response without session names every partition; those that have nothing come with their limits.
        rest = {key: from_._replace(max_bytes=0) for key, from_ in wanted.items() if key not in found}
        found = {**broker.fetch(rest, max_wait=0.0, min_bytes=0, max_bytes=0, **options), **found}
    return found


def _refused(error: Error) -> Fetched:
    return Fetched(error, NO_OFFSET, NO_OFFSET, [])


def _without_zstd(fetched: Fetched) -> Fetched:
    """Clients before version 10 do not know zstd."""
    if any(batch[_ATTRIBUTES] & COMPRESSION_MASK == CODECS["zstd"] for batch in fetched.batches):
        return fetched._replace(error=UnsupportedCompressionTypeError, batches=[])
    return fetched


def write_fetch(answer: FetchAnswer, version: int, read_committed: bool) -> Buffers:
    """The body of the response, as buffers: batches are not copied."""
    flexible = version >= FLEXIBLE
    name_of = compact_string if flexible else string
    buffers: Buffers = []
    out = bytearray()
    if version >= 1:
        out += b"\0\0\0\0"  # not throttled
    if version >= SESSIONS:
        out += _ERROR.pack(code(answer.error), NO_SESSION)
    out += varint(len(answer.topics) + 1) if flexible else _INT32.pack(len(answer.topics))
    for topic, partitions in answer.topics.items():
        out += topic.bytes if isinstance(topic, UUID) else name_of(topic)
        out += varint(len(partitions) + 1) if flexible else _INT32.pack(len(partitions))
        for number, one in partitions:
            stable = one.last_stable_offset if one.last_stable_offset >= 0 else one.high_watermark
            fixed = _ANSWER.pack(number, code(one.error), one.high_watermark, stable, one.log_start_offset)
            out += fixed if version >= 5 else fixed[:22] if version >= 4 else fixed[:14]
            if version >= 4:
                _write_aborted(out, one, flexible, read_committed)
            if version >= 11:
                out += b"\xff\xff\xff\xff"  # no other replica to read from
            size = sum(map(len, one.batches))
            out += varint(size + 1) if flexible else _INT32.pack(size)
            if size:
                buffers.append(out)
                buffers += one.batches
                out = bytearray()
            if flexible:
                out += b"\0"
        if flexible:
            out += b"\0"
    if flexible:
        out += b"\0"
    buffers.append(out)
    return buffers


def _write_aborted(out: bytearray, fetched: Fetched, flexible: bool, read_committed: bool) -> None:
    if not read_committed:
        out += b"\0" if flexible else b"\xff\xff\xff\xff"
        return
    out += varint(len(fetched.aborted) + 1) if flexible else _INT32.pack(len(fetched.aborted))
    for producer_id, first in fetched.aborted:
        out += _ABORTED.pack(producer_id, first)
        if flexible:
            out += b"\0"
