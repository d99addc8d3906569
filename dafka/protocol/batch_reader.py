"""Record batch -> columns. Callers make rows of them with C-level functions (``map``, ``zip``).

Records are read in one loop without a function call for each. Ahead of it goes a short cut: streams often
hold records of one shape (keys of one length, values of one length, no headers), and then every field of a
stretch of records stands at a fixed distance from the same field of the next record. Such a stretch is
found and checked with strided slices of the buffer, a few calls for all of its records. Where records
differ in shape the short cut is tried again at growing distances, so its cost is not noticed.

Nothing in a batch is trusted: counts are compared with the octets that are there before anything is made
of them, each field must end where its record ends, and all failures are :class:`BatchError`.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from operator import lt
from struct import unpack_from
from typing import Any, NamedTuple

from dafka.protocol.batch import (
    HEADER_OCTETS,
    HEADERS_LIMIT,
    RECORD_OCTETS,
    RECORDS_LIMIT,
    BatchError,
    BatchHeader,
    check_batch,
)
from dafka.protocol.compression import decompress
from dafka.protocol.varint import decode_varint, encode_varint

_STRETCH = 8  # records of one shape that make the short cut worth its while
_RETRY_GROWTH = 8
_BLOCK = 256
_ZIGZAG = [0] * (1 << 14)  # the numbers of one or two octets: 0, -1, 1, -2, ...
_ZIGZAG[0::2] = range(1 << 13)
_ZIGZAG[1::2] = range(-1, -(1 << 13) - 1, -1)


class Columns(NamedTuple):
    """The records of a batch as five lists of equal length; timestamps in ms, missing headers as ``[]``."""

    offsets: list[int]
    timestamps: list[int]
    keys: list[bytes | None]
    values: list[bytes | None]
    headers: list[list[tuple[str, bytes | None]]]

    def part(self, first: int, last: int) -> Columns:
        """The records from index ``first`` up to ``last``."""
        offsets, timestamps, keys, values, headers = self
        return Columns(
            offsets[first:last],
            timestamps[first:last],
            keys[first:last],
            values[first:last],
            headers[first:last],
        )


def decode_batch(batch: bytes) -> Columns:
    """The records of a batch, offsets ascending; all timestamps the same if its type is LogAppendTime.

    Raises :class:`BatchError` for whatever is wrong with it; its cause is ``codec`` if only the codec is
    not installed.
    """
    batch = bytes(batch)  # the same object if it is bytes already
    header = check_batch(batch)
    if header.count > RECORDS_LIMIT:
        raise BatchError("count", f"{header.count} records, at most {RECORDS_LIMIT} are read")
    compression = header.compression
    if compression is None:
        return _read(batch, HEADER_OCTETS, header)
    return _read(decompress(compression, batch[HEADER_OCTETS:]), 0, header)


def _read(buffer: bytes, position: int, header: BatchHeader) -> Columns:
    count = header.count
    if count * RECORD_OCTETS > len(buffer) - position:
        raise BatchError("count", f"{count} records in {len(buffer) - position} octets")
    columns = Columns([], [], [], [], [])
    retry, headers_left = _STRETCH, HEADERS_LIMIT
    plain = True  # all in stretches, so their offset deltas are 0, 1, 2, ...
    try:
        while (done := len(columns.offsets)) < count:
            after = _read_stretch(buffer, position, done, count, header.base_timestamp, columns)
            if after == position:
                plain = False
                records = min(retry, count - done)
                after, headers_left = _read_records(
                    buffer, position, records, header.base_timestamp, headers_left, columns
                )
                retry *= _RETRY_GROWTH
            position = after
    except (IndexError, ValueError) as error:
        raise BatchError("records", str(error)) from error
    if position != len(buffer):
        raise BatchError("records", f"{len(buffer) - position} octets behind the last record")
    timestamps = columns.timestamps
    if header.timestamp_type:
        timestamps = [header.max_timestamp] * count
    offsets = _offsets(columns.offsets, header, plain)
    return Columns(offsets, timestamps, columns.keys, columns.values, columns.headers)


def _offsets(deltas: list[int], header: BatchHeader, plain: bool) -> list[int]:
    """Offsets from offset deltas, which must ascend and stay within the batch (gaps: compaction)."""
    base = header.base_offset
    if plain or deltas == list(range(len(deltas))):
        return list(range(base, base + len(deltas)))
    first, last, most = deltas[0], deltas[-1], header.last_offset_delta
    if first < 0 or last > most or not all(map(lt, deltas, islice(deltas, 1, None))):
        raise BatchError("offsets", f"deltas {first} to {last} do not ascend from 0 to {most}")
    return [base + delta for delta in deltas]


# -- record by record ---------------------------------------------------------------------------


def _read_records(
    buffer: bytes, position: int, count: int, base_timestamp: int, headers_left: int, columns: Columns
) -> tuple[int, int]:
    """Read ``count`` records of any shape; the position behind them, and how many headers may still come.

    Offsets come as deltas.
    """
    offsets, timestamps, keys, values, all_headers = columns
    varint, zigzag = decode_varint, _ZIGZAG
    last = len(buffer)
    for _ in range(count):
        # Each field: the octet itself if it is a whole varint, else two octets, else the general way.
        octet = buffer[position]
        if octet < 0x80:
            end = position + 1 + (octet >> 1)
            position += 2  # the attributes are skipped
        elif (high := buffer[position + 1]) < 0x80:
            end = position + 2 + ((octet & 0x7F | high << 7) >> 1)
            position += 3
        else:
            length, position = varint(buffer, position)
            end = position + length
            position += 1
        if end > last:
            raise ValueError(f"a record ends at octet {end} of {last}")
        octet = buffer[position]
        if octet < 0x80:
            timestamps.append(base_timestamp + zigzag[octet])
            position += 1
        elif (high := buffer[position + 1]) < 0x80:
            timestamps.append(base_timestamp + zigzag[octet & 0x7F | high << 7])
            position += 2
        else:
            delta, position = varint(buffer, position)
            timestamps.append(base_timestamp + delta)
        octet = buffer[position]
        if octet < 0x80:
            offsets.append(zigzag[octet])
            position += 1
        elif (high := buffer[position + 1]) < 0x80:
            offsets.append(zigzag[octet & 0x7F | high << 7])
            position += 2
        else:
            delta, position = varint(buffer, position)
            offsets.append(delta)
        octet = buffer[position]
        if octet == 1:
            keys.append(None)
            position += 1
        else:
            if octet < 0x80 and not octet & 1:
                start = position + 1
                position = start + (octet >> 1)
            else:
                length, start = varint(buffer, position)
                position = start + length
                if length < 0:
                    raise ValueError(f"a key of {length} octets")
            keys.append(buffer[start:position])
        octet = buffer[position]
        if octet == 1:
            values.append(None)
            position += 1
        else:
            if octet & 1:
                raise ValueError("a value of a negative length")
            if octet < 0x80:
                start = position + 1
                position = start + (octet >> 1)
            elif (high := buffer[position + 1]) < 0x80:
                start = position + 2
                position = start + ((octet & 0x7F | high << 7) >> 1)
            else:
                length, start = varint(buffer, position)
                position = start + length
            values.append(buffer[start:position])
        if not buffer[position]:
            all_headers.append([])
            position += 1
        else:
            headers, position = _read_headers(buffer, position, headers_left)
            headers_left -= len(headers)
            all_headers.append(headers)
        if position != end:
            raise ValueError(f"the fields of a record end at octet {position} and not at {end}")
    return position, headers_left


def _read_headers(buffer: bytes, position: int, left: int) -> tuple[list[tuple[str, bytes | None]], int]:
    """The headers of a record, which may be ``left`` at most, and the position behind them."""
    octet = buffer[position]
    if octet < 0x80 and not octet & 1:
        count, position = octet >> 1, position + 1
    else:
        count, position = decode_varint(buffer, position)
    if not 0 <= count <= (len(buffer) - position) // 2:
        raise ValueError(f"{count} headers in {len(buffer) - position} octets")
    if count > left:
        raise ValueError(f"more than {HEADERS_LIMIT} headers")
    headers: list[tuple[str, bytes | None]] = []
    for _ in range(count):
        octet = buffer[position]
        if octet < 0x80 and not octet & 1:
            start = position + 1
            position = start + (octet >> 1)
        else:
            length, start = decode_varint(buffer, position)
            position = start + length
            if length < 0:
                raise ValueError(f"a header name of {length} octets")
        name = buffer[start:position].decode()
        octet = buffer[position]
        if octet == 1:
            headers.append((name, None))
            position += 1
            continue
        if octet < 0x80 and not octet & 1:
            start = position + 1
            position = start + (octet >> 1)
        else:
            length, start = decode_varint(buffer, position)
            position = start + length
            if length < 0:
                raise ValueError(f"a header of {length} octets")
        headers.append((name, buffer[start:position]))
    return headers, position


# -- stretches of one shape ---------------------------------------------------------------------

_ONE_OCTET = bytes(range(0x80))  # octets that are a whole varint
_MORE_OCTETS = bytes(range(0x80, 0x100))  # octets that begin a longer one
# First and second octet of the varints of 0 to 8191, as columns to compare with.
_FIRST = bytes(range(0, 0x80, 2)) + bytes(range(0x80, 0x100, 2)) * 127
_SECOND = b"".join(bytes((octet,)) * 64 for octet in range(0x80))


def _read_stretch(
    buffer: bytes, position: int, done: int, count: int, base_timestamp: int, columns: Columns
) -> int:
    """Read as many records as have the shape of the one at ``position``; the position behind them.

    The same position comes back if they are fewer than _STRETCH, the shape is not one that is looked for,
    or offsets have gaps. ``done`` records were read before, of ``count``.
    """
    # The shape: where the fields are, from the first octet of the record on.
    if done >= 8192 or count - done < _STRETCH:
        return position
    length, attributes = decode_varint(buffer, position)
    size = attributes - position + length
    head = buffer[position:attributes]
    if not buffer.startswith(head, position + size) or not buffer.startswith(head, position + 2 * size):
        return position
    timestamp = attributes + 1
    offset = timestamp + (1 if buffer[timestamp] < 0x80 else 2)
    delta = encode_varint(done)
    if buffer[offset - 1] >= 0x80 or not buffer.startswith(delta, offset):
        return position
    key = offset + len(delta)
    key_length, key_start = decode_varint(buffer, key)
    value = key_start + max(key_length, 0)
    value_length, value_start = decode_varint(buffer, value)
    headers = value_start + value_length
    if headers != position + size - 1 or key_length < -1 or value_length < 0:
        return position

    # How many records repeat it: the fixed octets are equal in all, varints that differ have equal sizes.
    records = min(count - done, (len(buffer) - position) // size, (64 if done < 64 else 8192) - done)
    fixed = (*range(position, timestamp), *range(key, key_start), *range(value, value_start), headers)
    for place in fixed:
        if records < _STRETCH:
            return position
        column = buffer[place : position + records * size : size]
        records = len(column) - len(column.lstrip(column[:1]))
    if buffer[headers]:
        return position
    stop = position + records * size
    stamps = buffer[timestamp:stop:size]
    if offset - timestamp == 1:
        records -= len(stamps.lstrip(_ONE_OCTET))
    else:
        upper = buffer[timestamp + 1 : stop : size]
        records -= max(len(stamps.lstrip(_MORE_OCTETS)), len(upper.lstrip(_ONE_OCTET)))
    if records < _STRETCH:
        return position
    stop = position + records * size
    if buffer[offset:stop:size] != _FIRST[done : done + records]:
        return position
    if key - offset == 2 and buffer[offset + 1 : stop : size] != _SECOND[done : done + records]:
        return position

    # The fields.
    columns.offsets.extend(range(done, done + records))
    if offset - timestamp == 1:
        _read_timestamps(stamps[:records], base_timestamp, columns.timestamps)
    else:
        zigzag = _ZIGZAG
        pairs = zip(stamps[:records], upper[:records], strict=True)
        columns.timestamps.extend([base_timestamp + zigzag[low & 0x7F | high << 7] for low, high in pairs])
    if key_length < 0:
        columns.keys.extend([None] * records)
        record = f"{value_start - position}x{value_length}sx"
        for fields in _unpack(record, size, records, buffer, position):
            columns.values.extend(fields)
    else:
        record = f"{key_start - position}x{key_length}s{value_start - value}x{value_length}sx"
        for fields in _unpack(record, size, records, buffer, position):
            columns.keys.extend(fields[0::2])
            columns.values.extend(fields[1::2])
    columns.headers.extend([[] for _ in range(records)])
    return stop


def _unpack(record: str, size: int, records: int, buffer: bytes, position: int) -> Iterator[tuple[Any, ...]]:
    """The fields of many records at once. They share a ``struct`` format, which is kept there for the next
    stretch of that shape; it takes 32 octets a record, so it is one for _BLOCK records at most."""
    for first in range(0, records, _BLOCK):
        yield unpack_from(record * min(_BLOCK, records - first), buffer, position + first * size)


def _read_timestamps(deltas: bytes, base: int, timestamps: list[int]) -> None:
    """Add the timestamps of varints of one octet. Records that are sent in a hurry share them."""
    while deltas:
        rest = deltas.lstrip(deltas[:1])
        run = len(deltas) - len(rest)
        if run < _STRETCH:
            timestamps.extend([base + _ZIGZAG[octet] for octet in deltas])
            return
        timestamps.extend([base + _ZIGZAG[deltas[0]]] * run)
        deltas = rest
