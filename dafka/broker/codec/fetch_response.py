"""The Fetch response in bytes: how a broker writes versions 0 to 18, and how a client reads 4 to 12.

Batches are not decoded: they go from the log into the response, and from the response to the consumer.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import NamedTuple
from uuid import UUID

from kafka.errors import (
    TopicAuthorizationFailedError,
    UnknownTopicIdError,
    UnknownTopicOrPartitionError,
    UnsupportedForMessageFormatError,
)

from dafka.broker.codec.errors import error_code, error_of
from dafka.broker.codec.fetch_request import FLEXIBLE, NO_SESSION, SESSIONS, Place
from dafka.broker.codec.framing import Buffers, array_size, compact_string, string
from dafka.broker.codec.reader import read_compact_string, read_size, read_string, read_varint, skip_tags
from dafka.broker.interface.broker import Error, Fetched, TopicPartition
from dafka.protocol.batch import HEADER_OCTETS, LENGTH_END, MAGIC

_INT16 = struct.Struct(">h")
_INT32 = struct.Struct(">i")
_INT64 = struct.Struct(">q")
_ERROR = struct.Struct(">hi")  # error, session id
_WRITTEN = struct.Struct(">ihqqq")  # number, error, high watermark, last stable offset, log start
_READ = struct.Struct(">ihqq")  # number, error, high watermark, last stable offset
_ABORTED = struct.Struct(">qq")
_DIVERGING_TAG = 0
_DIVERGING = struct.Struct(">iq")
_REFUSED = frozenset({TopicAuthorizationFailedError, UnknownTopicIdError, UnknownTopicOrPartitionError})
_TAGGED_DIVERGING = struct.Struct(">BBBiqB")  # one tagged field, its tag and size; epoch, end offset, no tags


class FetchAnswer(NamedTuple):
    """A Fetch response: the error of the whole request, or session id and partitions.

    ``topics``: the partitions by topic, where a topic may come several times.
    """

    error: Error | None
    session_id: int = NO_SESSION
    partitions: Sequence[tuple[Place, Fetched]] = ()
    topics: Sequence[tuple[str | UUID, Sequence[tuple[int, Fetched]]]] | None = None


def write_fetch(answer: FetchAnswer, version: int, read_committed: bool) -> Buffers:
    """The body of the response in buffers, without copying the batches."""
    flexible = version >= FLEXIBLE
    name_of = compact_string if flexible else string
    buffers: Buffers = []
    out = bytearray()
    if version >= 1:
        out += b"\0\0\0\0"  # throttle time
    if version >= SESSIONS:
        out += _ERROR.pack(error_code(answer.error), answer.session_id)
    topics = answer.topics
    if topics is None:
        grouped: dict[str | UUID, list[tuple[int, Fetched]]] = {}
        for (topic, number), one in answer.partitions:
            grouped.setdefault(topic, []).append((number, one))
        topics = list(grouped.items())
    out += array_size(len(topics), flexible)
    for topic, partitions in topics:
        out += topic.bytes if isinstance(topic, UUID) else name_of(topic)
        out += array_size(len(partitions), flexible)
        for number, one in partitions:
            if one.error is None:
                stable = one.last_stable_offset if one.last_stable_offset >= 0 else one.high_watermark
                fixed = _WRITTEN.pack(number, 0, one.high_watermark, stable, one.log_start_offset)
            else:
                fixed = _WRITTEN.pack(number, error_code(one.error), -1, -1, -1)
            out += fixed if version >= 5 else fixed[:22] if version >= 4 else fixed[:14]
            if version >= 4:
                _write_aborted(out, one, flexible, read_committed)
            if version >= 11:
                out += b"\xff\xff\xff\xff"  # no preferred replica
            size = sum(map(len, one.batches))
            out += array_size(size, flexible)
            if size:
                buffers.append(out)
                buffers += one.batches
                out = bytearray()
            if flexible:
                out += b"\0" if one.diverging is None else _TAGGED_DIVERGING.pack(1, 0, 13, *one.diverging, 0)
        if flexible:
            out += b"\0"
    if flexible:
        out += b"\0"
    buffers.append(out)
    return buffers


def _write_aborted(out: bytearray, fetched: Fetched, flexible: bool, read_committed: bool) -> None:
    """As in Kafka null says that nobody has looked for them, but for partitions that are refused before."""
    if fetched.error is not None:
        read_committed = fetched.error in _REFUSED
    if not read_committed:
        out += b"\0" if flexible else b"\xff\xff\xff\xff"
        return
    out += array_size(len(fetched.aborted), flexible)
    for producer_id, first in fetched.aborted:
        out += _ABORTED.pack(producer_id, first)
        if flexible:
            out += b"\0"


def decode_fetch(answer: memoryview, version: int) -> tuple[Error | None, dict[TopicPartition, Fetched]]:
    """The error of the whole response, and its partitions.

    Raises ValueError, IndexError, struct.error or BadRequestError for a malformed response.
    """
    flexible = version >= FLEXIBLE
    read_name = read_compact_string if flexible else read_string
    fetched: dict[TopicPartition, Fetched] = {}
    position = 4  # throttle time
    code = 0
    if version >= 7:
        code = _INT16.unpack_from(answer, position)[0]
        position += 6  # and the session
    topics, position = read_size(answer, position, flexible)
    for _ in range(topics):
        topic, position = read_name(answer, position)
        partitions, position = read_size(answer, position, flexible)
        for _ in range(partitions):
            number, one, position = _partition(answer, position, version)
            fetched[topic or "", number] = one
        if flexible:
            position = skip_tags(answer, position)
    return error_of(code), fetched


def _partition(answer: memoryview, position: int, version: int) -> tuple[int, Fetched, int]:
    number, code, high_watermark, stable = _READ.unpack_from(answer, position)
    position += _READ.size
    log_start = -1
    if version >= 5:
        log_start = _INT64.unpack_from(answer, position)[0]
        position += 8
    count, position = read_size(answer, position, version >= FLEXIBLE)
    aborted = []
    for _ in range(count):
        aborted.append(_ABORTED.unpack_from(answer, position))
        position += _ABORTED.size
        if version >= FLEXIBLE:
            position = skip_tags(answer, position)
    if version >= 11:
        position += 4  # the preferred replica, which is set only for clients with a rack
    size, position = read_size(answer, position, version >= FLEXIBLE)
    end = position + max(size, 0)
    if end > len(answer):
        raise ValueError(f"{size} octets of batches are announced, {len(answer) - position} are left")
    error: Error | None = error_of(code)
    batches: list[bytes] = []
    if error is None:
        batches, readable = cut_batches(answer[position:end])
        if not readable:
            error = UnsupportedForMessageFormatError
    diverging = None
    if version >= FLEXIBLE:
        diverging, end = _diverging(answer, end)
    return number, Fetched(error, high_watermark, log_start, batches, stable, aborted, diverging), end


def _diverging(answer: memoryview, position: int) -> tuple[tuple[int, int] | None, int]:
    """Epoch and end offset from the tagged fields of a partition, None if they are not among them."""
    end = skip_tags(answer, position)
    count, position = read_varint(answer, position)
    for _ in range(count):
        tag, position = read_varint(answer, position)
        size, position = read_varint(answer, position)
        if tag == _DIVERGING_TAG:
            return _DIVERGING.unpack_from(answer, position), end
        position += size
    return None, end


def cut_batches(records: memoryview) -> tuple[list[bytes], bool]:
    """The complete batches of a record set; a truncated last batch is left out.

    The second value is False if the set begins with records of a format older than magic 2.
    """
    batches: list[bytes] = []
    position, end = 0, len(records)
    while end - position >= HEADER_OCTETS:
        size = _INT32.unpack_from(records, position + 8)[0] + LENGTH_END
        if records[position + 16] != MAGIC or size < HEADER_OCTETS:
            return batches, bool(batches)
        if position + size > end:
            break
        batches.append(bytes(records[position : position + size]))
        position += size
    return batches, True
