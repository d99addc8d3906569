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

from itertools import islice
from operator import lt
from typing import NamedTuple

from dafka.protocol.batch import (
    HEADER_OCTETS,
    HEADERS_LIMIT,
    RECORD_OCTETS,
    RECORDS_LIMIT,
    BatchError,
    BatchHeader,
    check_batch,
)
from dafka.protocol.batch_stretch import SHORTEST, find_stretch, stamp_numbers, unpack, values_of
from dafka.protocol.compression import decompress
from dafka.protocol.varint import decode_varint

_NO_HEADERS: list[tuple[str, bytes | None]] = []
_RETRY_GROWTH = 8
_BETWEEN = 8  # times that records between stretches are read one by one, where values alone are read
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


def decode_batch(batch: bytes, *, shared: bool = False) -> Columns:
    """The records of a batch, offsets ascending; all timestamps the same if its type is LogAppendTime.

    With ``shared`` all records without headers have the same empty list, which must not be changed: a list of
    its own for each of millions of records sets off Python's garbage collector again and again.

    Raises :class:`BatchError` for whatever is wrong with it; its cause is ``codec`` if only the codec is
    not installed.
    """
    batch = bytes(batch)  # the same object if it is bytes already
    header = check_batch(batch)
    if header.count > RECORDS_LIMIT:
        raise BatchError("count", f"{header.count} records, at most {RECORDS_LIMIT} are read")
    compression = header.compression
    if compression is None:
        return _read(batch, HEADER_OCTETS, header, shared)
    return _read(decompress(compression, batch[HEADER_OCTETS:]), 0, header, shared)


def decode_plain_values(batch: bytes) -> list[bytes] | None:
    """The values of a batch that has nothing else: no keys, no headers, no compression, and mostly values of
    one length. None for any other, which :func:`decode_batch` reads.

    Raises :class:`BatchError` for a batch whose header is wrong.
    """
    header = check_batch(batch)
    count = header.count
    if header.compression is not None or not SHORTEST <= count <= RECORDS_LIMIT:
        return None
    if header.last_offset_delta + 1 < count:
        return None
    position, between = HEADER_OCTETS, _BETWEEN
    values: list[bytes] = []
    try:
        while (done := len(values)) < count:
            stretch = find_stretch(batch, position, done, count)
            if stretch is not None:
                if stretch.key_length >= 0:
                    return None
                for fields in values_of(batch, stretch):
                    values.extend(fields)
                position = stretch.stop
                continue
            between -= 1
            columns = Columns([], [], [], [], [])
            records = min(SHORTEST, count - done)
            position, _ = _read_records(batch, position, records, 0, HEADERS_LIMIT, columns, True)
            if not between or not _are_plain(columns, done):
                return None
            values.extend(columns.values)  # type: ignore[arg-type]
    except (IndexError, ValueError):
        return None
    return values if position == len(batch) else None


def _are_plain(records: Columns, done: int) -> bool:
    """Whether they are values alone, with the offset deltas from ``done`` on."""
    offsets, _, keys, values, headers = records
    count = len(values)
    if None in values or keys.count(None) < count or any(headers):
        return False
    return offsets == list(range(done, done + count))


def _read(buffer: bytes, position: int, header: BatchHeader, shared: bool) -> Columns:
    count = header.count
    if count * RECORD_OCTETS > len(buffer) - position:
        raise BatchError("count", f"{count} records in {len(buffer) - position} octets")
    columns = Columns([], [], [], [], [])
    retry, headers_left = SHORTEST, HEADERS_LIMIT
    plain = True  # all in stretches, so their offset deltas are 0, 1, 2, ...
    try:
        while (done := len(columns.offsets)) < count:
            after = _read_stretch(buffer, position, done, count, header.base_timestamp, columns, shared)
            if after == position:
                plain = False
                records = min(retry, count - done)
                after, headers_left = _read_records(
                    buffer, position, records, header.base_timestamp, headers_left, columns, shared
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
    buffer: bytes,
    position: int,
    count: int,
    base_timestamp: int,
    headers_left: int,
    columns: Columns,
    shared: bool,
) -> tuple[int, int]:
    """Read ``count`` records of any shape; the position behind them, and how many headers may still come.

    Offsets come as deltas.
    """
    offsets, timestamps, keys, values, all_headers = columns
    varint, zigzag = decode_varint, _ZIGZAG
    none = _NO_HEADERS
    last = len(buffer)
    for _ in range(count):
        # Each field: the octet itself if it is a whole varint, else two octets, else the general way.
        # A negative length puts the end before the beginning, which is noticed behind the last field.
        octet = buffer[position]
        if octet < 0x80:
            end = position + 1 + zigzag[octet]
            position += 2  # the attributes are skipped
        elif (high := buffer[position + 1]) < 0x80:
            end = position + 2 + zigzag[octet & 0x7F | high << 7]
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
            all_headers.append(none if shared else [])
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


def _read_stretch(
    buffer: bytes, position: int, done: int, count: int, base_timestamp: int, columns: Columns, shared: bool
) -> int:
    """Read a stretch of records; the position behind them, which is the same if there is none."""
    stretch = find_stretch(buffer, position, done, count)
    if stretch is None:
        return position
    records, stamps = stretch.records, stretch.stamps
    columns.offsets.extend(range(done, done + records))
    if len(stamps) == 1:
        _read_timestamps(stamps[0][:records], base_timestamp, columns.timestamps)
    elif len(stamps) == 2:
        zigzag = _ZIGZAG
        pairs = zip(stamps[0][:records], stamps[1][:records], strict=True)
        columns.timestamps.extend([base_timestamp + zigzag[low & 0x7F | high << 7] for low, high in pairs])
    else:
        numbers = stamp_numbers(tuple(column[:records] for column in stamps))
        columns.timestamps.extend([base_timestamp + ((number >> 1) ^ -(number & 1)) for number in numbers])
    if stretch.key_length < 0:
        columns.keys.extend([None] * records)
        for fields in values_of(buffer, stretch):
            columns.values.extend(fields)
    else:
        value, value_start, value_length = stretch.value, stretch.value_start, stretch.value_length
        record = f"{stretch.key_start - position}x{stretch.key_length}s{value_start - value}x{value_length}sx"
        for fields in unpack(record, stretch.size, records, buffer, position):
            columns.keys.extend(fields[0::2])
            columns.values.extend(fields[1::2])
    columns.headers.extend([_NO_HEADERS] * records if shared else [[] for _ in range(records)])
    return stretch.stop


def _read_timestamps(deltas: bytes, base: int, timestamps: list[int]) -> None:
    """Add the timestamps of varints of one octet. Records that are sent in a hurry share them."""
    while deltas:
        rest = deltas.lstrip(deltas[:1])
        run = len(deltas) - len(rest)
        if run < SHORTEST:
            timestamps.extend([base + _ZIGZAG[octet] for octet in deltas])
            return
        timestamps.extend([base + _ZIGZAG[deltas[0]]] * run)
        deltas = rest
