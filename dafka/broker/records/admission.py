"""Admission: batches are checked and changed as the configuration of their topic says.

Refused here: batches that are too large, records from the wrong time, records without a key where the
topic is compacted, too few replicas. Changed here: timestamps where the broker gives them, a largest
timestamp that cannot be right, and the compression. A batch that is changed keeps its records' bytes, apart
from compression, so offsets, producer ids and sequences are untouched.

The largest timestamp in a batch's header is what retention goes by. That of a batch whose records have none
(-1) is the time when it came, so that it can go, as Kafka takes the time of the file.

A producer's batch that says LogAppendTime has one time for all its records. As in Kafka it is refused where
the broker gives the times, and taken as any other where producers do: it then says CreateTime.

A batch is compressed, decompressed and walked through in a thread beside the hub, unless it is small, and
takes its time there; how much is bounded (:mod:`dafka.protocol.batch_walk`). Later batches for the same
partition wait, or a small batch would overtake a large one before it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from crc32c import crc32c
from kafka.errors import (
    InvalidRecordError,
    InvalidTimestampError,
    MessageSizeTooLargeError,
    UnsupportedCompressionTypeError,
)

from dafka.broker.interface.broker import Produced
from dafka.broker.records.append import PartitionAppend
from dafka.broker.records.record_errors import (
    APPEND_TIME,
    LAST_TIMESTAMP,
    no_append_time,
    refusal,
    timestamp_error,
)
from dafka.broker.topics.configs import TopicSettings
from dafka.hub.pool import BATCHES
from dafka.protocol.batch import (
    CODECS,
    COMPRESSION_MASK,
    CRC_END,
    CRC_START,
    HEADER,
    HEADER_OCTETS,
    LENGTH_END,
    TIMESTAMP_TYPE_BIT,
    BatchError,
    BatchHeader,
    read_header,
)
from dafka.protocol.batch_records import check_records
from dafka.protocol.batch_walk import is_small, walk_records
from dafka.protocol.compression import compress, decompress
from dafka.protocol.errors import DafkaError

_COUNTED = 16384  # records of a batch that are counted in the hub: 1.5 ms at most
_COURTESY = 1024  # records walked before other Python threads, the hub's among them, have their turn


Refusal = Callable[[], Produced]
"""Makes the answer to an append that is refused. It may look for the records that are wrong, and then waits
as a green thread."""


class RefusedError(DafkaError):
    """A batch is not taken."""

    def __init__(self, refusal: Refusal) -> None:
        self.refusal = refusal
        super().__init__()


class Found(NamedTuple):
    """The limits of a batch's timestamps, and whether a record in it lacks a key."""

    oldest: int
    largest: int
    keyless: bool


def admit(settings: TopicSettings, append: PartitionAppend, now: int) -> Refusal | None:
    """Make the batches of an append what is to be stored; how to learn of the refusal if they are not taken.

    ``now``: milliseconds since the epoch.

    Waits as a green thread if it :func:`takes_time`, and only then: later batches would overtake those of the
    same request.
    """
    try:
        _check_sizes(settings, append)
        for position, (content, header) in enumerate(zip(append.batches, append.headers, strict=True)):
            dated = _examined(settings, append, content, header, now)
            if dated is not None:
                append.batches = [*append.batches]
                append.batches[position] = dated
        if settings.compression != "producer":
            append.batches = [_recompressed(settings.compression, content) for content in append.batches]
            append.size = sum(map(len, append.batches))
            _check_sizes(settings, append)
    except RefusedError as refused:
        return refused.refusal
    if settings.log_append_time:
        append.timestamp = now
        append.batches = [_stamped(content, now) for content in append.batches]
    return None


def takes_time(settings: TopicSettings, append: PartitionAppend) -> bool:
    """Whether :func:`admit` may take its time."""
    if settings.compression != "producer":
        return True
    for header in append.headers:
        if not is_small(header) and (header.count > _COUNTED or _has_to_be_walked(settings, header)):
            return True
    return False


def _check_sizes(settings: TopicSettings, append: PartitionAppend) -> None:
    for content in append.batches:
        if len(content) > settings.max_message_bytes:
            detail = f"a batch of {len(content)} bytes, max.message.bytes is {settings.max_message_bytes}"
            raise RefusedError(partial(Produced, MessageSizeTooLargeError, detail=detail))


def _has_to_be_walked(settings: TopicSettings, header: BatchHeader) -> bool:
    if settings.compacted:
        return True
    if settings.log_append_time:
        return False
    return header.base_timestamp > header.max_timestamp or settings.timestamp_before_max_ms != LAST_TIMESTAMP


def _examined(
    settings: TopicSettings, append: PartitionAppend, content: bytes, header: BatchHeader, now: int
) -> bytes | None:
    """The batch if its largest timestamp has to be put right, None if it stays. Raises RefusedError."""
    found = None
    if _has_to_be_walked(settings, header):
        found = _found(content, header)
    else:
        _check_records(content, header)
    if found is not None and found.keyless and settings.compacted:
        raise _with_records(settings, append, now, Produced(InvalidRecordError))
    if no_append_time(settings, header):
        raise _with_records(settings, append, now, Produced(InvalidTimestampError, detail=APPEND_TIME))
    if settings.log_append_time:
        return None
    largest = header.max_timestamp
    if header.base_timestamp > largest:
        largest = header.base_timestamp if found is None else found.largest
    oldest = header.base_timestamp if found is None else found.oldest
    wrong = timestamp_error(settings, largest, now) or timestamp_error(settings, oldest, now)
    if wrong:
        raise _with_records(settings, append, now, Produced(InvalidTimestampError, detail=wrong))
    if largest == header.max_timestamp and largest >= 0 and not header.timestamp_type:
        return None
    attributes = header.attributes & ~TIMESTAMP_TYPE_BIT
    dated = header._replace(attributes=attributes, max_timestamp=largest if largest >= 0 else now)
    return _packed(dated, content[HEADER_OCTETS:])


def _with_records(
    settings: TopicSettings, append: PartitionAppend, now: int, otherwise: Produced
) -> RefusedError:
    """The refusal of an append that says which of its records are wrong."""

    def named() -> Produced:
        contents = [bytes(content) for content in append.batches]
        return BATCHES.run(refusal, settings, contents, now, otherwise)

    return RefusedError(named)


def _check_records(content: bytes, header: BatchHeader) -> None:
    """Raise RefusedError for a batch that has more or fewer records than it says."""
    try:
        if header.count <= _COUNTED:
            check_records(content, header)
        else:
            BATCHES.run(check_records, bytes(content), header)
    except BatchError as error:
        raise _refused(error) from error


def _found(content: bytes, header: BatchHeader) -> Found | None:
    """Walk through a batch; None if its codec is not installed. Raises RefusedError."""
    try:
        return _walk(content) if is_small(header) else BATCHES.run(_walk, bytes(content))
    except BatchError as error:
        if error.cause == "codec":
            return None
        raise _refused(error) from error


def _walk(content: bytes) -> Found:
    oldest, largest, keyless = LAST_TIMESTAMP, -LAST_TIMESTAMP, False
    for count, (_, timestamp, has_key) in enumerate(walk_records(content), 1):
        if timestamp < oldest:
            oldest = timestamp
        if timestamp > largest:
            largest = timestamp
        if not has_key:
            keyless = True
        if not count % _COURTESY:
            time.sleep(0)
    return Found(oldest, largest, keyless)


def _refused(error: BatchError) -> RefusedError:
    """Why a batch is refused that cannot be read. Clients make two of one that is too large."""
    kinds = {"codec": UnsupportedCompressionTypeError, "size": MessageSizeTooLargeError}
    return RefusedError(partial(Produced, kinds.get(error.cause, InvalidRecordError), detail=str(error)))


def _stamped(content: bytes, timestamp: int) -> bytes:
    header = read_header(content)
    attributes = header.attributes | TIMESTAMP_TYPE_BIT
    return _packed(header._replace(attributes=attributes, max_timestamp=timestamp), content[HEADER_OCTETS:])


def _recompressed(wanted: str, content: bytes) -> bytes:
    codec = None if wanted == "uncompressed" else wanted
    header = read_header(content)
    if header.compression == codec:
        return content
    try:
        body = BATCHES.run(_converted, header.compression, codec, bytes(content[HEADER_OCTETS:]))
    except BatchError as error:
        raise _refused(error) from error
    attributes = header.attributes & ~COMPRESSION_MASK | CODECS[codec]
    return _packed(header._replace(attributes=attributes), body)


def _converted(old: str | None, new: str | None, body: bytes) -> bytes:
    if old is not None:
        body = decompress(old, body)
    return body if new is None else compress(new, body)


def _packed(header: BatchHeader, body: bytes) -> bytes:
    head = HEADER.pack(*header._replace(length=HEADER_OCTETS - LENGTH_END + len(body)))
    crc = crc32c(body, crc32c(head[CRC_END:]))
    return head[:CRC_START] + crc.to_bytes(4, "big") + head[CRC_END:] + body
