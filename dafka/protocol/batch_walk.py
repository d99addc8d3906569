"""Reading through an untrusted record batch without building objects for its records.

A broker needs from a batch whether every record has a key and which timestamps it has; both are in the first
octets of each record. So records are walked from one to the next by their lengths, values and headers are
skipped, and of what decompression yields one piece at a time is in memory: a batch of kilobytes that unfolds
to hundreds of megabytes, or to millions of headers, takes a few megabytes.

The time is bounded by what is counted: octets and parts (:mod:`dafka.protocol.compression`) and records
(RECORDS_LIMIT). It may still be a second, so a batch of more than SMALL_OCTETS, or one that is compressed, is
for a thread.
"""

from __future__ import annotations

from collections.abc import Iterator

from dafka.protocol.batch import (
    COMPRESSION_MASK,
    HEADER_OCTETS,
    RECORD_OCTETS,
    RECORDS_LIMIT,
    BatchError,
    BatchHeader,
    read_header,
)
from dafka.protocol.compression import decompressed
from dafka.protocol.varint import decode_varint

SMALL_OCTETS = 4096  # of a batch that is walked in less than a millisecond

_FRONT = 48  # more octets than the fields that are looked at can take


def is_small(header: BatchHeader) -> bool:
    """Whether walking the batch takes next to no time, whatever is in it."""
    return header.size <= SMALL_OCTETS and not header.attributes & COMPRESSION_MASK


def check_count(header: BatchHeader) -> None:
    """Raise BatchError if the number of records is impossible for the batch's size, or above the limit."""
    if header.count > RECORDS_LIMIT:
        raise BatchError("count", f"{header.count} records, at most {RECORDS_LIMIT} are read")
    body = header.size - HEADER_OCTETS
    if not header.attributes & COMPRESSION_MASK and header.count * RECORD_OCTETS > body:
        raise BatchError("count", f"{header.count} records in {body} octets")


def walk_records(content: bytes) -> Iterator[tuple[int, int, bool]]:
    """(offset, timestamp in ms, whether it has a key) of each record of a batch, one after the other.

    The timestamps are those that the producer gave, also where the batch says LogAppendTime. Raises
    :class:`BatchError` where something is wrong: its cause is ``codec`` if only the codec is not installed
    and ``size`` for too much. Values and headers are skipped: errors in them are not found here.
    """
    header = read_header(content)
    check_count(header)
    codec = header.compression
    body = bytes(memoryview(content)[HEADER_OCTETS:])
    pieces = iter((body,)) if codec is None else filter(None, decompressed(codec, body))
    try:
        yield from _walk(pieces, header)
    except (IndexError, ValueError) as error:
        if isinstance(error, BatchError):
            raise
        raise BatchError("records", str(error)) from error


def _walk(pieces: Iterator[bytes], header: BatchHeader) -> Iterator[tuple[int, int, bool]]:
    base_offset, base_timestamp = header.base_offset, header.base_timestamp
    varint = decode_varint
    buffer, position = b"", 0
    for _ in range(header.count):
        while len(buffer) - position < _FRONT:
            piece = next(pieces, b"")
            if not piece:
                break
            buffer, position = buffer[position:] + piece, 0
        length, start = varint(buffer, position)
        end = start + length
        timestamp, at = varint(buffer, start + 1)  # behind the attributes
        offset, at = varint(buffer, at)
        key, at = varint(buffer, at)
        if length < 0 or at + max(key, 0) > end:
            raise ValueError(f"the fields of a record end behind its end at octet {end}")
        while end > len(buffer):
            piece = next(pieces, b"")
            if not piece:
                raise ValueError(f"a record ends {end - len(buffer)} octets behind the end of the batch")
            end -= len(buffer)
            buffer = piece
        position = end
        yield base_offset + offset, base_timestamp + timestamp, key >= 0
    left = len(buffer) - position or len(next(pieces, b""))
    if left:
        raise ValueError(f"{left} octets behind the last record")
