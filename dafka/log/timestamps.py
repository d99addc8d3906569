"""Finding the first record of a chunk with a given timestamp or a later one."""

from __future__ import annotations

from dafka.log.chunk import RAW, Chunk
from dafka.protocol.batch import BatchError, read_header
from dafka.protocol.batch_walk import walk_records


def first_record_since(chunk: Chunk, timestamp: int, floor: int = 0) -> tuple[int, int] | None:
    """(offset, timestamp) of the first record with a timestamp of at least ``timestamp`` (ms), or None.

    Records with offsets below ``floor`` do not count.
    """
    if chunk.kind == RAW:
        offset = chunk.first
        for count, time in chunk.stamps:
            if time >= timestamp and offset + count > floor:
                return max(offset, floor), time
            offset += count
        return None
    for content in chunk.contents:
        header = read_header(content)
        if header.max_timestamp >= timestamp and header.next_offset > floor:
            found = _in_batch(content, timestamp, floor)
            if found is not None:
                return found
    return None


def _in_batch(content: bytes, timestamp: int, floor: int) -> tuple[int, int] | None:
    header = read_header(content)
    if not header.count:  # compaction has removed all its records
        return None
    first = max(header.base_offset, floor)
    if header.timestamp_type == 1:  # LogAppendTime: every record has the batch's
        return first, header.max_timestamp
    try:
        for offset, time, _ in walk_records(content):
            if time >= timestamp and offset >= floor:
                return offset, time
    except BatchError:
        # Its records cannot be told apart (a codec that is not installed here): the batch's beginning is
        # the safe answer, no record of that time lies before it.
        return first, header.max_timestamp
    return None
