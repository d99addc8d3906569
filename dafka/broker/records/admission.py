"""Admission: batches are checked and changed as Kafka and the configuration of their topic say.

Refused here: batches that are too large, whose records are not those that the header counts, records from
the wrong time, records without a key where the topic is compacted. Changed here: timestamps where the broker
gives them, a largest timestamp that is not that of the records, and the compression. A batch that is changed
keeps its records' bytes, apart from compression, so offsets, producer ids and sequences are untouched.

The largest timestamp in a batch's header is what retention goes by. That of a batch whose records have none
(-1) is the time when it came, so that it can go, as Kafka takes the time of the file.

A producer's batch that says LogAppendTime has one time for all its records. As in Kafka it is refused where
the broker gives the times, and taken as any other where producers do: it then says CreateTime.

Every record of a batch is examined (:mod:`dafka.protocol.batch_records`), but for those that were encoded in
this process: at once where that takes a few milliseconds, for all batches of a call together, and else in a
thread beside the hub. There batches are also compressed and decompressed. How much that can be is bounded.
Later batches for the same partition wait, or a small batch would overtake a large one before it.
"""

from __future__ import annotations

import time
from functools import partial

from crc32c import crc32c
from kafka.errors import (
    InvalidRecordError,
    InvalidTimestampError,
    MessageSizeTooLargeError,
    UnsupportedCompressionTypeError,
)

from dafka.broker.interface.broker import Produced
from dafka.broker.records.append import PartitionAppend, Refusal, RefusedError
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
from dafka.protocol.batch_body import Allowance, TooMuchWorkError, Work
from dafka.protocol.batch_records import Examined, examine
from dafka.protocol.compression import compress, decompress

AT_ONCE = 3000  # microseconds, as an Allowance counts, in which batches are examined in the hub
_UNFOLDED_AT_ONCE = 16 * 1024  # octets of a compressed batch that may be unfolded there
_RECORDS_AT_ONCE = 16 * 1024  # of another batch
_MANY = 4096  # records of a batch that is examined there only if nearly all of them are alike
_DEFINED = 0x7F  # bits of the attributes that Kafka keeps when it changes a batch's time
_KEPT = 0x38  # ... when it compresses or decompresses it, beside the codec: delete horizons go, too
_COURTESY = 400  # microseconds of work in a thread before other ones, the hub's among them, have their turns


def admit(settings: TopicSettings, append: PartitionAppend, now: int) -> Refusal | None:
    """Make the batches of an append what is to be stored; how to learn of the refusal if they are not taken.

    ``now``: milliseconds since the epoch.

    Waits as a green thread unless :func:`examine_at_once` has said that it does not: later batches would
    overtake those of the same request.
    """
    try:
        _check_sizes(settings, append)
        if append.examined is None:
            append.examined = [
                _examined(settings, append, content, header)
                for content, header in zip(append.batches, append.headers, strict=True)
            ]
        for position, (header, found) in enumerate(zip(append.headers, append.examined, strict=True)):
            dated = _dated(settings, append, header, found, now)
            if dated is not None:
                append.batches = [*append.batches]
                append.batches[position] = _packed(dated, append.batches[position][HEADER_OCTETS:])
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


def examine_at_once(settings: TopicSettings, append: PartitionAppend, allowance: Allowance) -> bool:
    """Examine the batches of an append, if the allowance suffices; whether :func:`admit` will not wait."""
    if settings.compression != "producer":
        return False
    examined: list[Examined | RefusedError | None] = []
    for content, header in zip(append.batches, append.headers, strict=True):
        found: Examined | RefusedError | None = None
        if len(content) <= settings.max_message_bytes and _has_to_be_examined(settings, append, header):
            if not _may_be_small(header):
                return False
            try:
                found = _examine_here(content, header, allowance)
            except TooMuchWorkError:
                return False
        examined.append(found)
    append.examined = examined
    return True


def _check_sizes(settings: TopicSettings, append: PartitionAppend) -> None:
    for content in append.batches:
        if len(content) > settings.max_message_bytes:
            detail = f"a batch of {len(content)} bytes, max.message.bytes is {settings.max_message_bytes}"
            raise RefusedError(partial(Produced, MessageSizeTooLargeError, detail=detail))


def _has_to_be_examined(settings: TopicSettings, append: PartitionAppend, header: BatchHeader) -> bool:
    if settings.compacted or not append.request.trusted:
        return True
    if settings.log_append_time:
        return False
    return header.base_timestamp > header.max_timestamp or settings.timestamp_before_max_ms != LAST_TIMESTAMP


def _may_be_small(header: BatchHeader) -> bool:
    """Whether to try to examine a batch in the hub."""
    if header.attributes & COMPRESSION_MASK:
        return header.size <= _UNFOLDED_AT_ONCE
    return header.count <= _RECORDS_AT_ONCE


def _examine_here(
    content: bytes, header: BatchHeader, allowance: Allowance
) -> Examined | RefusedError | None:
    """Examine a batch in the hub. Raises TooMuchWorkError, and then all of it is done again in a thread.

    So that it is not much, a batch of many records gets little more than it takes if they are alike.
    """
    if header.count <= _MANY or header.attributes & COMPRESSION_MASK:
        return _outcome(content, header, allowance)
    given = min(allowance.left, 200 + header.count // 16)
    part = Allowance(given)
    try:
        return _outcome(content, header, part)
    finally:
        allowance.left -= given - part.left


class _Courteous(Work):
    """Work in a thread that lets other threads have their turns."""

    __slots__ = ()

    def spend(self, microseconds: int) -> None:
        self.left -= microseconds
        if self.left < 0:
            self.left = _COURTESY
            time.sleep(0)


def _examined(
    settings: TopicSettings, append: PartitionAppend, content: bytes, header: BatchHeader
) -> Examined | RefusedError | None:
    """Examine a batch, in a thread unless it is small."""
    if not _has_to_be_examined(settings, append, header):
        return None
    if _may_be_small(header):
        try:
            return _examine_here(content, header, Allowance(AT_ONCE))
        except TooMuchWorkError:
            pass
    return BATCHES.run(_outcome, bytes(content), header, _Courteous())


def _outcome(content: bytes, header: BatchHeader, work: Work) -> Examined | RefusedError | None:
    """What there is in a batch, why it is refused, or None if its codec is not installed. Raises
    TooMuchWorkError."""
    try:
        return examine(content, header, work)
    except BatchError as error:
        return None if error.cause == "codec" else _refused(error)


def _dated(
    settings: TopicSettings,
    append: PartitionAppend,
    header: BatchHeader,
    found: Examined | RefusedError | None,
    now: int,
) -> BatchHeader | None:
    """The header of a batch that is not as it has to be; None if it is. Raises RefusedError."""
    if isinstance(found, RefusedError):
        raise found
    if found is not None and found.keyless and settings.compacted:
        raise _with_records(settings, append, now, Produced(InvalidRecordError))
    says_append_time = header.attributes & TIMESTAMP_TYPE_BIT
    if says_append_time and no_append_time(settings, header):
        raise _with_records(settings, append, now, Produced(InvalidTimestampError, detail=APPEND_TIME))
    if settings.log_append_time:
        return None
    if found is not None:
        oldest, largest, _ = found
    else:
        oldest, largest = header.base_timestamp, max(header.base_timestamp, header.max_timestamp)
    times = (oldest, largest, header.max_timestamp) if says_append_time else (oldest, largest)
    for timestamp in times:
        wrong = timestamp_error(settings, timestamp, now)
        if wrong:
            raise _with_records(settings, append, now, Produced(InvalidTimestampError, detail=wrong))
    if largest < 0:
        largest = now
    if largest == header.max_timestamp and not says_append_time:
        return None
    attributes = header.attributes & _DEFINED & ~TIMESTAMP_TYPE_BIT
    return header._replace(attributes=attributes, max_timestamp=largest)


def _with_records(
    settings: TopicSettings, append: PartitionAppend, now: int, otherwise: Produced
) -> RefusedError:
    """The refusal of an append that says which of its records are wrong."""

    def named() -> Produced:
        contents = [bytes(content) for content in append.batches]
        return BATCHES.run(refusal, settings, contents, now, otherwise)

    return RefusedError(named)


def _refused(error: BatchError) -> RefusedError:
    """Why a batch is refused that cannot be read. Clients make two of one that is too large."""
    kinds = {"codec": UnsupportedCompressionTypeError, "size": MessageSizeTooLargeError}
    return RefusedError(partial(Produced, kinds.get(error.cause, InvalidRecordError), detail=str(error)))


def _stamped(content: bytes, timestamp: int) -> bytes:
    header = read_header(content)
    attributes = header.attributes & _DEFINED | TIMESTAMP_TYPE_BIT
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
    attributes = header.attributes & _KEPT | CODECS[codec]
    return _packed(header._replace(attributes=attributes), body)


def _converted(old: str | None, new: str | None, body: bytes) -> bytes:
    if old is not None:
        body = decompress(old, body)
    return body if new is None else compress(new, body)


def _packed(header: BatchHeader, body: bytes) -> bytes:
    head = HEADER.pack(*header._replace(length=HEADER_OCTETS - LENGTH_END + len(body)))
    crc = crc32c(body, crc32c(head[CRC_END:]))
    return head[:CRC_START] + crc.to_bytes(4, "big") + head[CRC_END:] + body
