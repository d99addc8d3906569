"""Checks that a batch has as many records as its header says, without reading them.

Kafka refuses a batch whose body is not exactly that many records, because clients could not read it. Here
records are walked by their lengths. Streams often hold records of one size, and then the length of each
stands at a fixed distance from that of the next one: strided slices check a stretch of them at once, for some
nanoseconds each. Where sizes differ a step takes 40 to 80 ns, and the short cut is tried again at growing
distances. It looks only as far ahead as it was right before, so that the time grows with the records,
whatever their sizes are.

The count of a compressed batch is trusted, because checking it would need decompression.
"""

from __future__ import annotations

from dafka.protocol.batch import COMPRESSION_MASK, HEADER_OCTETS, BatchError, BatchHeader, read_header
from dafka.protocol.varint import decode_varint

_STRETCH = 8  # records of one size that make the short cut worth its while
_GROWTH = 8
_AHEAD = 256  # records that the short cut looks at first
_FEW = 8  # records for which a copy of a batch, of 10 MB perhaps, would cost more than it saves


def check_records(content: bytes, header: BatchHeader | None = None) -> None:
    """Raise BatchError unless the body of a batch that is not compressed is as many records as it says.

    ``header``: that of the batch, if it was read before.
    """
    if header is None:
        header = read_header(content)
    if header.attributes & COMPRESSION_MASK:
        return
    # Each octet of bytes is found faster than in a view, but a copy has to pay.
    octets = content if type(content) is bytes else None
    position, end, left = HEADER_OCTETS, len(content), header.count
    ahead, retry = _AHEAD, _STRETCH
    try:
        while left > 0 and position < end:
            records, size = _stretch(content if octets is None else octets, position, min(left, ahead))
            if records:
                position += records * size
                ahead = ahead * _GROWTH if records == ahead else _AHEAD
                retry = _STRETCH
            else:
                records = min(retry, left)
                if octets is None and left > _FEW:
                    octets = bytes(content)
                position = _walk(content if octets is None else octets, position, records)
                ahead, retry = _AHEAD, retry * _GROWTH
            left -= records
    except (IndexError, ValueError) as error:
        raise BatchError("records", f"{left} of {header.count} records are not there whole") from error
    if left or position != end:
        what = "are not there" if left else f"are there, and {end - position} octets behind the last one"
        raise BatchError("records", f"{left or header.count} of {header.count} records {what}")


def _stretch(content: bytes, position: int, ahead: int) -> tuple[int, int]:
    """How many of the next records have the same size, and that; (0, 0) if it does not pay."""
    length, start = decode_varint(content, position)
    size = start - position + length
    records = min(ahead, (len(content) - position) // size) if length > 0 else 0
    stop = position + records * size
    for place in range(position, start):
        if records < _STRETCH:
            return 0, 0
        column = bytes(content[place:stop:size])
        records = min(records, len(column) - len(column.lstrip(column[:1])))
    return (records, size) if records >= _STRETCH else (0, 0)


def _walk(content: bytes, position: int, records: int) -> int:
    """The position behind so many records, which need not be within the batch."""
    for _ in range(records):
        octet = content[position]
        if octet < 0x80:
            if octet & 1:
                raise ValueError("a record of a negative length")
            position += 1 + (octet >> 1)
        elif (high := content[position + 1]) < 0x80 and not octet & 1:
            position += 2 + ((octet & 0x7F | high << 7) >> 1)
        else:
            length, position = decode_varint(content, position)
            if length < 0:
                raise ValueError("a record of a negative length")
            position += length
    return position
