"""What a topic's configuration says about batches that are produced to it.

Refused here: batches that are too large, records from the wrong time, records without a key where the
topic is compacted, too few replicas. Changed here: timestamps where the broker gives them, a largest
timestamp that cannot be right, and the compression. What is changed keeps its records' bytes, apart from
compression, so offsets, producer ids and sequences are untouched.

The largest timestamp in a batch's header is what retention goes by. That of a batch whose records have none
(-1) is the time when it came, so that it can go, as Kafka takes the time of the file.

Compressing runs in gevent's threads and takes time. Batches for such topics pass one call at a time, in the
order in which they came, or a small batch would overtake a large one before it.
"""

from __future__ import annotations

import time

import gevent
from crc32c import crc32c
from kafka.errors import (
    InvalidRecordError,
    InvalidTimestampError,
    MessageSizeTooLargeError,
    NotEnoughReplicasError,
    UnsupportedCompressionTypeError,
)

from dafka.broker.configs import TopicSettings
from dafka.broker.interface import Produced
from dafka.broker.leader import Share
from dafka.broker.record_errors import LAST_TIMESTAMP, refusal, timestamp_error
from dafka.mesh.pool import run_in
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
from dafka.protocol.batch_reader import decode_batch
from dafka.protocol.compression import compress, decompress

_INLINE_BYTES = 4096  # a batch up to this is compressed in the hub itself


def admit(settings: TopicSettings, share: Share, acks: int) -> Produced | None:
    """Make a share what is to be stored; what is wrong with it, if it is refused.

    Waits as a green thread if batches have to be compressed.
    """
    if acks == -1 and settings.min_insync_replicas > 1:
        detail = f"min.insync.replicas is {settings.min_insync_replicas}, a broker by itself is 1"
        return Produced(NotEnoughReplicasError, detail=detail)
    now = int(time.time() * 1000)
    for position, content in enumerate(share.batches):
        if not settings.log_append_time:
            header = read_header(content)
            largest = _largest_timestamp(header, content)
            wrong = _time_error(settings, header, largest, content, now)
            if wrong:
                otherwise = Produced(InvalidTimestampError, detail=wrong)
                return refusal(settings, share.batches, now, otherwise)
            if largest != header.max_timestamp or largest < 0:
                dated = header._replace(max_timestamp=largest if largest >= 0 else now)
                share.batches = [*share.batches]
                share.batches[position] = _packed(dated, content[HEADER_OCTETS:])
        if settings.compacted and _lacks_key(content):
            return refusal(settings, share.batches, now, Produced(InvalidRecordError))
    if settings.compression != "producer":
        try:
            share.batches = [_recompressed(settings.compression, content) for content in share.batches]
        except BatchError as error:
            return Produced(UnsupportedCompressionTypeError, detail=str(error))
        share.size = sum(map(len, share.batches))
    for content in share.batches:
        if len(content) > settings.max_message_bytes:
            detail = f"a batch of {len(content)} bytes, max.message.bytes is {settings.max_message_bytes}"
            return Produced(MessageSizeTooLargeError, detail=detail)
    if settings.log_append_time:
        share.timestamp = now
        share.batches = [_stamped(content, now) for content in share.batches]
    return None


def recompresses(settings: TopicSettings) -> bool:
    """Whether :func:`admit` may take its time."""
    return settings.compression != "producer"


def _largest_timestamp(header: BatchHeader, content: bytes) -> int:
    """What the header says, unless it contradicts itself."""
    if header.base_timestamp <= header.max_timestamp:
        return header.max_timestamp
    try:
        return max(decode_batch(content).timestamps)
    except BatchError:
        return header.base_timestamp


def _time_error(settings: TopicSettings, header: BatchHeader, largest: int, content: bytes, now: int) -> str:
    if header.timestamp_type:
        return "the producer says LogAppendTime, and message.timestamp.type is CreateTime"
    wrong = timestamp_error(settings, largest, now)
    if wrong or settings.timestamp_before_max_ms == LAST_TIMESTAMP:
        return wrong
    try:
        oldest = min(decode_batch(content).timestamps)
    except BatchError:
        oldest = header.base_timestamp
    return timestamp_error(settings, oldest, now)


def _lacks_key(content: bytes) -> bool:
    try:
        return None in decode_batch(content).keys
    except BatchError:  # a codec that is not here; compaction keeps what it cannot read
        return False


def _stamped(content: bytes, timestamp: int) -> bytes:
    header = read_header(content)
    attributes = header.attributes | TIMESTAMP_TYPE_BIT
    return _packed(header._replace(attributes=attributes, max_timestamp=timestamp), content[HEADER_OCTETS:])


def _recompressed(wanted: str, content: bytes) -> bytes:
    codec = None if wanted == "uncompressed" else wanted
    header = read_header(content)
    if header.compression == codec:
        return content
    arguments = header.compression, codec, content[HEADER_OCTETS:]
    if len(content) <= _INLINE_BYTES and header.compression is None:
        body = _converted(*arguments)
    else:
        body = run_in(gevent.get_hub().threadpool, _converted, *arguments)
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
