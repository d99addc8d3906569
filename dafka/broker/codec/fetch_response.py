"""Fetch requests and responses, the client's side, versions 4 to 12: batches pass through as they are.

What is above has ids for the topics' names. A broker interface is asked by name, and takes a topic that was
made anew for the same one; ids would only have to be looked up, and looked up again when they are unknown.
There are no sessions: requests name few partitions, and several of them are under way at the same time.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping

from kafka.errors import UnsupportedForMessageFormatError, for_code

from dafka.broker.codec.framing import array_size, compact_string, string
from dafka.broker.codec.reader import read_compact_string, read_size, read_string, read_varint, skip_tags
from dafka.broker.interface.broker import Error, Fetched, FetchFrom, TopicPartition
from dafka.protocol.batch import HEADER_OCTETS, LENGTH_END, MAGIC

API_KEY = 1
LOWEST, HIGHEST = 4, 12
FLEXIBLE = 12

_READ_COMMITTED = 1
_HEAD = struct.Struct(">iiiib")  # replica, max wait, min bytes, max bytes, isolation level
_NO_SESSION = struct.pack(">ii", 0, -1)
_INT = struct.Struct(">i")
_SHORT = struct.Struct(">h")
_PARTITION = struct.Struct(">ihqq")  # number, error, high watermark, last stable offset
_LONG = struct.Struct(">q")
_DIVERGING_TAG = 0
_DIVERGING = struct.Struct(">iq")
_ABORTED = struct.Struct(">qq")
_INT_MAX = 2**31 - 1


def encode_fetch(
    partitions: Mapping[TopicPartition, FetchFrom],
    version: int,
    max_wait_ms: int,
    min_bytes: int,
    max_bytes: int,
    read_committed: bool,
) -> list[bytes]:
    """The request's body as pieces, outside of any fetch session."""
    flexible = version >= FLEXIBLE
    name_of = compact_string if flexible else string
    tags = b"\0" if flexible else b""
    by_topic: dict[str, list[bytes]] = {}
    for (topic, number), wanted in partitions.items():
        piece = _INT.pack(number)
        if version >= 9:
            piece += _INT.pack(wanted.leader_epoch)
        piece += _LONG.pack(wanted.offset)
        if flexible:
            piece += _INT.pack(wanted.last_epoch)
        if version >= 5:
            piece += b"\xff" * 8  # no log start: that is for followers
        by_topic.setdefault(topic, []).append(piece + _INT.pack(min(wanted.max_bytes, _INT_MAX)) + tags)
    isolation = _READ_COMMITTED if read_committed else 0
    pieces = [_HEAD.pack(-1, max_wait_ms, min(min_bytes, _INT_MAX), min(max_bytes, _INT_MAX), isolation)]
    if version >= 7:
        pieces.append(_NO_SESSION)
    pieces.append(array_size(len(by_topic), flexible))
    for topic, some in by_topic.items():
        pieces += (name_of(topic), array_size(len(some), flexible), *some, tags)
    if version >= 7:
        pieces.append(array_size(0, flexible))  # nothing to forget
    if version >= 11:
        pieces += (name_of(""), tags)  # no rack
    return pieces


def decode_fetch(answer: memoryview, version: int) -> tuple[Error | None, dict[TopicPartition, Fetched]]:
    """The error of the whole response, and each partition. Raises ValueError, IndexError,
    struct.error or BadRequestError for what is no response."""
    flexible = version >= FLEXIBLE
    read_name = read_compact_string if flexible else read_string
    fetched: dict[TopicPartition, Fetched] = {}
    position = 4  # throttle time
    code = 0
    if version >= 7:
        code = _SHORT.unpack_from(answer, position)[0]
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
    return for_code(code) if code else None, fetched


def _partition(answer: memoryview, position: int, version: int) -> tuple[int, Fetched, int]:
    number, code, high_watermark, stable = _PARTITION.unpack_from(answer, position)
    position += _PARTITION.size
    log_start = -1
    if version >= 5:
        log_start = _LONG.unpack_from(answer, position)[0]
        position += 8
    count, position = read_size(answer, position, version >= FLEXIBLE)
    aborted = []
    for _ in range(count):
        aborted.append(_ABORTED.unpack_from(answer, position))
        position += _ABORTED.size
        if version >= FLEXIBLE:
            position = skip_tags(answer, position)
    if version >= 11:
        position += 4  # the preferred replica, which only a rack would bring
    size, position = read_size(answer, position, version >= FLEXIBLE)
    end = position + max(size, 0)
    if end > len(answer):
        raise ValueError(f"{size} octets of batches, {len(answer) - position} are left")
    error: Error | None = for_code(code) if code else None
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
    """Epoch and end offset from a partition's tagged fields, if they are among them."""
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
    """The whole batches of a record set; its last one may be cut off, and is left out then.

    False with it if the set begins with records of an older format than magic 2.
    """
    batches: list[bytes] = []
    position, end = 0, len(records)
    while end - position >= HEADER_OCTETS:
        size = _INT.unpack_from(records, position + 8)[0] + LENGTH_END
        if records[position + 16] != MAGIC or size < HEADER_OCTETS:
            return batches, bool(batches)
        if position + size > end:
            break
        batches.append(bytes(records[position : position + size]))
        position += size
    return batches, True
