"""Records -> record batch.

A batch is written column by column: lengths, deltas and fields of all records as lists, each made by one
C-level loop or comprehension over a table of varints; then the columns are laid side by side into one list
by slice assignment, and ``bytes.join`` copies everything once. No Python-level call for each record.

Layout of a record (Kafka protocol guide, "Record"), every number a varint::

    length | attributes (0) | timestamp delta | offset delta | key length, key | value length, value |
    count of headers | for each: name length, name, value length, value

A length of -1 is null. Timestamp deltas refer to the first record's timestamp and may be negative.
"""

from __future__ import annotations

import struct
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from functools import lru_cache
from io import SEEK_END, BytesIO
from itertools import chain, repeat
from operator import add, itemgetter
from typing import Any

from crc32c import crc32c

from dafka.protocol.batch import (
    CODECS,
    CRC_END,
    CRC_START,
    HEADER,
    HEADER_OCTETS,
    LENGTH_END,
    MAGIC,
    RECORDS_LIMIT,
    TIMESTAMP_TYPE_BIT,
)
from dafka.protocol.compression import compress
from dafka.protocol.varint import TABLE_SIZE, encode_varint, encode_varints, varint_octets, varint_table

Headers = Sequence[tuple[str, bytes | None]]
BatchRecord = tuple[int, bytes | None, bytes | None, Headers]  # timestamp in ms, key, value, headers

RECORD_OVERHEAD = 21  # most octets of length, attributes and deltas; kafka-python's MAX_RECORD_OVERHEAD
TIMESTAMP_LIMIT = 1 << 62  # so that the difference of two still is a 64-bit number

_EMPTY = "a record batch has at least one record"
_NULL = encode_varint(-1)
_HEADER_ROOM = bytes(HEADER_OCTETS)
_KNOWN_NAME = 100  # characters of a header's name that is kept with its length
_SAMPLE = 16  # records whose lengths say whether it is worth to look at all
_AT_A_TIME = 16  # records for each millisecond that make it pay to look for its last one
_MOST_DELTAS = 13  # octets of the deltas of a timestamp and an offset
_SHARE = 4  # records for each distinct beginning of a record that make these pay
_name_of, _content_of = itemgetter(0), itemgetter(1)
_HEADER_COLUMNS = 8  # records or more with as many headers or fewer have these written as columns


def encode_batch(
    records: Sequence[BatchRecord],
    *,
    base_offset: int = 0,
    compression: str | None = None,
    timestamp_type: int = 0,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    per_millisecond: int = 1,
) -> bytes:
    """One batch of records ``(timestamp in ms, key, value, headers)``, at least one.

    As kafka-python does, a batch that compression does not make smaller is left uncompressed, and offset
    deltas are 0, 1, 2, ...

    Args:
        compression: None, ``gzip``, ``snappy``, ``lz4`` or ``zstd``; each but gzip needs the library that
            kafka-python needs for it.
        timestamp_type: 0 CreateTime, 1 LogAppendTime.
        per_millisecond: how many of the units that timestamps are in are a millisecond.

    Raises:
        ValueError: no records or too many, an unknown codec, or a number that does not fit its field; as
            BatchError with the cause ``codec`` for a codec that is not installed.
        TypeError: a key or value that is neither bytes nor None.
    """
    if not records:
        raise ValueError(_EMPTY)
    fields: list[Any] = []
    for record in records:
        fields += record
    if len(fields) != 4 * len(records):
        raise ValueError("a record has four fields")
    timestamps, keys, values, headers = fields[0::4], fields[1::4], fields[2::4], fields[3::4]
    if per_millisecond != 1:
        timestamps = _in_milliseconds(timestamps, per_millisecond)
    return encode_columns(
        timestamps,
        keys,
        values,
        headers,
        base_offset=base_offset,
        compression=compression,
        timestamp_type=timestamp_type,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
    )


def encode_columns(
    timestamps: list[int],
    keys: list[bytes | None],
    values: list[bytes | None],
    headers: Sequence[Headers],
    *,
    base_offset: int = 0,
    compression: str | None = None,
    timestamp_type: int = 0,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
) -> bytes:
    """:func:`encode_batch` for records as four lists of equal length."""
    count = len(timestamps)
    if not count:
        raise ValueError(_EMPTY)
    if count > RECORDS_LIMIT:
        raise ValueError(f"a record batch has at most {RECORDS_LIMIT} records, not {count}")
    if compression not in CODECS:
        known = ", ".join(filter(None, CODECS))
        raise ValueError(f"compression is one of {known} or None, not {compression!r}")
    if not len(keys) == len(values) == len(headers) == count:
        lengths = (count, len(keys), len(values), len(headers))
        raise ValueError(f"the columns of a record batch have equal lengths, not {lengths}")
    first = timestamps[0]
    in_order = first is timestamps[-1] and timestamps.count(first) == count
    in_order = in_order or timestamps == sorted(timestamps)
    oldest, newest = (timestamps[0], timestamps[-1]) if in_order else (min(timestamps), max(timestamps))
    if not -TIMESTAMP_LIMIT <= oldest <= newest <= TIMESTAMP_LIMIT:
        raise ValueError(f"timestamps are milliseconds between +-2**62, not {oldest} to {newest}")

    given = headers if headers.count(()) < count and any(headers) else None
    pieces = _write_alike(timestamps, keys, values, given) if in_order else None
    if pieces is None:
        pieces = _write(timestamps, keys, values, given)

    attributes = TIMESTAMP_TYPE_BIT if timestamp_type else 0
    if compression is not None:
        body = b"".join(pieces)
        compressed = compress(compression, body)
        if len(compressed) < len(body):
            body = compressed
            attributes |= CODECS[compression]
        pieces = [body]
    pieces.insert(0, _HEADER_ROOM)
    # A BytesIO that alone has the joined octets lets its own be written over: nothing is copied again.
    batch = BytesIO(b"".join(pieces))
    length = batch.seek(0, SEEK_END) - LENGTH_END
    times = (timestamps[0], newest)
    producer = (producer_id, producer_epoch, base_sequence)
    try:
        head = HEADER.pack(base_offset, length, 0, MAGIC, 0, attributes, count - 1, *times, *producer, count)
    except struct.error as error:
        raise ValueError(f"does not fit the header of a record batch: {error}") from error
    with batch.getbuffer() as octets:
        octets[:HEADER_OCTETS] = head
        octets[CRC_START:CRC_END] = crc32c(octets[CRC_END:]).to_bytes(4, "big")
    return batch.getvalue()


def record_size_bound(key: bytes | None, value: bytes | None, headers: Headers = ()) -> int:
    """An upper bound of the octets that a record adds to an uncompressed batch.

    kafka-python's ``DefaultRecordBatchBuilder.estimate_size_in_bytes`` less the batch's header, which is
    what its producer compares with ``batch_size`` and ``max_request_size``.
    """
    size = RECORD_OVERHEAD + 3
    if key is not None:
        size += len(key) + (0 if len(key) < 64 else varint_octets(len(key)) - 1)
    if value is not None:
        size += len(value) + (0 if len(value) < 64 else varint_octets(len(value)) - 1)
    if headers:
        size += varint_octets(len(headers)) - 1
        for name, content in headers:
            octets = len(name.encode())
            size += octets + varint_octets(octets)
            size += 1 if content is None else len(content) + varint_octets(len(content))
    return size


# -- records ------------------------------------------------------------------------------------


def _in_milliseconds(timestamps: list[int], per_millisecond: int) -> list[int]:
    """The timestamps in whole milliseconds. A batch that is filled quickly has few of them."""
    first, last = timestamps[0] // per_millisecond, timestamps[-1] // per_millisecond
    if last - first > len(timestamps) // _AT_A_TIME or timestamps != sorted(timestamps):
        return [timestamp // per_millisecond for timestamp in timestamps]
    if first == last:
        return [first] * len(timestamps)
    whole: list[int] = []
    for millisecond in range(first, last + 1):
        stop = bisect_left(timestamps, (millisecond + 1) * per_millisecond)
        whole += [millisecond] * (stop - len(whole))
    return whole


def _write_alike(
    timestamps: list[int],
    keys: list[bytes | None],
    values: list[bytes | None],
    headers: Sequence[Headers] | None,
) -> list[bytes] | None:
    """Records that are much alike, as those of one program mostly are; None if they are not so.

    Timestamps never fall, as the caller has seen; keys, values and what headers hold are alike
    (:func:`_alike`), and all have the same names of headers. What stands before the offset is then made once
    for each timestamp and each size of a record, so there may be few of these. What is the same in all
    records is one piece.
    """
    count, table = len(values), varint_table()
    if count > TABLE_SIZE:
        return None
    value = _alike(values, table)
    key = None if value is None else _alike(keys, table)
    if key is None or value is None:
        return None
    fields = [key, value]
    end = b"\0"  # of each record
    if headers is not None:
        if headers.count(headers[0]) == count:
            end = _header_field(headers[0], table)
        else:
            some = _alike_headers(headers, table)
            if some is None:
                return None
            fields += some
            end = b""
    fixed, sizes = 1 + len(end), list[int]()  # of the octets of a record: those that all have, and others
    for _, lengths, octets in fields:
        fixed += octets
        if lengths:
            sizes = list(map(add, sizes, lengths)) if sizes else lengths
    leads = _leads(timestamps, sizes, fixed, end)
    if leads is None:
        return None
    columns: list[bytes | Sequence[bytes]] = [leads, table[:count]]
    for column in chain.from_iterable([field[0] for field in fields]):
        last = columns[-1]
        if type(column) is bytes and type(last) is bytes:
            columns[-1] = last + column
        else:
            columns.append(column)
    width = len(columns)
    pieces: list[bytes] = [end] * (width * count + 1)
    for place, column in enumerate(columns):
        pieces[place:-1:width] = [column] * count if isinstance(column, bytes) else column
    return pieces


# A field of all records: its columns side by side, each a list or the octets that all records have; the
# lengths if they differ; and the octets that each record has besides.
_Field = tuple[tuple["bytes | Sequence[bytes]", ...], list[int], int]


def _alike(contents: Sequence[bytes | None], table: list[bytes]) -> _Field | None:
    """Contents and their lengths, if all are null, or all lengths take equally many octets and few differ."""
    if contents[0] is None:
        return ((_NULL,), [], len(_NULL)) if contents.count(None) == len(contents) else None
    try:
        first = len(contents[0])
        if len(contents[-1]) != first and len(set(map(len, contents[:_SAMPLE]))) > _SAMPLE // _SHARE:  # type: ignore[arg-type]
            return None
        lengths = list(map(len, contents))  # type: ignore[arg-type]
    except TypeError:  # a null
        return None
    octets = varint_octets(first)
    if lengths[-1] == first and lengths.count(first) == len(lengths):
        return (_varint(first, table), contents), [], octets + first  # type: ignore[return-value]
    different = set(lengths)
    longest = max(different)
    if longest >= TABLE_SIZE or not varint_octets(min(different)) == octets == varint_octets(longest):
        return None
    return (_picked(table, lengths), contents), lengths, octets  # type: ignore[return-value]


def _picked(table: list[bytes] | dict[int, bytes], places: list[int]) -> Sequence[bytes]:
    """What stands at each of these places; of all ways the fastest."""
    return itemgetter(*places)(table) if len(places) > 1 else [table[place] for place in places]


def _varint(number: int, table: list[bytes]) -> bytes:
    return table[number] if number < TABLE_SIZE else encode_varint(number)


def _alike_headers(headers: Sequence[Headers], table: list[bytes]) -> list[_Field] | None:
    """Headers, if all records have the same few names (:func:`_by_name`) and contents that are alike."""
    columns = _by_name(headers)
    if columns is None:
        return None
    number = encode_varint(len(columns))
    fields: list[_Field] = [((number,), [], len(number))]
    for name, contents in columns:
        field = _alike(contents, table)
        if field is None:
            return None
        fields += ((name,), [], len(name)), field
    return fields


def _leads(timestamps: list[int], sizes: list[int], fixed: int, end: bytes) -> list[bytes] | None:
    """The ``end`` of the record before, and a record up to its timestamp; None if too many differ."""
    count, table = len(timestamps), varint_table()
    most = count // _SHARE
    different = set(sizes)
    if different and fixed + max(different) + _MOST_DELTAS >= TABLE_SIZE:
        return None
    first, start, leads = timestamps[0], 0, list[bytes]()
    while start < count:
        most -= len(different) or 1
        if start and most < 0:
            return None
        timestamp = timestamps[start]
        stop = bisect_right(timestamps, timestamp, start)
        for limit in _OFFSET_LIMITS:
            if start < limit < stop:
                stop = limit
        stamp = _varint(timestamp - first, table)
        own = fixed + len(stamp) + len(table[start])
        if sizes:
            rest = b"\0" + stamp
            lead = {size: end + table[own + size] + rest for size in different}
            leads += _picked(lead, sizes[start:stop])
        else:
            leads += [end + _varint(own, table) + b"\0" + stamp] * (stop - start)
        start = stop
    leads[0] = leads[0][len(end) :]
    return leads


# From these offset deltas on, which take two and three octets.
_OFFSET_LIMITS = (64, 8192)


def _write(
    timestamps: list[int],
    keys: list[bytes | None],
    values: list[bytes | None],
    headers: Sequence[Headers] | None,
) -> list[bytes]:
    count, base = len(timestamps), timestamps[0]
    table = varint_table()
    offsets = table[:count]
    if count > TABLE_SIZE:
        offsets += map(encode_varint, range(TABLE_SIZE, count))
    stamp_of = {stamp: b"\0" + encode_varint(stamp - base) for stamp in set(timestamps)}
    fields: list[Iterable[bytes]] = [map(stamp_of.__getitem__, timestamps), offsets]
    if keys.count(None) == count:
        fields.append(repeat(_NULL))
    else:
        fields += _lengths_and_octets(keys)
    value_heads, contents = _lengths_and_octets(values)
    # From the attributes to the length of the value; values, which may be long, are copied only once.
    heads = list(map(b"".join, zip(*fields, value_heads, strict=False)))
    sizes = map(add, map(len, heads), map(len, contents))
    if headers is None:
        header_fields = [b"\0"] * count
        sizes = map(add, sizes, repeat(1))
    else:
        header_fields = _header_columns(headers) or list(map(_header_field, headers, repeat(table)))
        sizes = map(add, sizes, map(len, header_fields))
    pieces: list[bytes | None] = [None] * (4 * count)
    lengths = list(sizes)
    try:
        pieces[0::4] = map(table.__getitem__, lengths)
    except IndexError:
        pieces[0::4] = encode_varints(lengths)
    pieces[1::4] = heads
    pieces[2::4] = contents
    pieces[3::4] = header_fields
    return pieces  # type: ignore[return-value]


def _lengths_and_octets(column: Sequence[bytes | None]) -> tuple[list[bytes], Sequence[bytes]]:
    """The lengths of keys or values as varints, and their octets; a null has none."""
    try:
        lengths = list(map(len, column))  # type: ignore[arg-type]
        return list(map(varint_table().__getitem__, lengths)), column  # type: ignore[return-value]
    except IndexError:  # longer than the table
        return encode_varints(lengths), column  # type: ignore[return-value]
    except TypeError:
        if None not in column:
            raise
    heads, contents = _lengths_and_octets([b"" if octets is None else octets for octets in column])
    pairs = zip(column, heads, strict=True)
    return [_NULL if octets is None else head for octets, head in pairs], contents


def _header_columns(headers: Sequence[Headers]) -> list[bytes] | None:
    """The headers of each record, if there are many and all have the same few names (:func:`_by_name`)."""
    columns = _by_name(headers) if len(headers) >= _HEADER_COLUMNS else None
    if columns is None:
        return None
    fields: list[Iterable[bytes]] = [repeat(encode_varint(len(columns)))]
    for name, contents in columns:
        fields.append(repeat(name))
        fields += _lengths_and_octets(contents)
    return list(map(b"".join, zip(*fields, strict=False)))


def _by_name(headers: Sequence[Headers]) -> list[tuple[bytes, Sequence[bytes | None]]] | None:
    """Encoded names, each with what it has in every record, if all records have a few headers of the same
    names in the same order, as the records of one program do that adds headers to them; otherwise None."""
    first, count = headers[0], len(headers)
    if not 0 < len(first) <= _HEADER_COLUMNS or list(map(len, headers)).count(len(first)) != count:
        return None
    columns: list[tuple[bytes, Sequence[bytes | None]]] = []
    for position, (name, _) in enumerate(first):
        pairs = list(map(itemgetter(position), headers))
        if list(map(_name_of, pairs)).count(name) != count:
            return None
        columns.append((_name_field(name), list(map(_content_of, pairs))))
    return columns


def _header_field(headers: Headers, table: list[bytes]) -> bytes:
    if not headers:
        return b"\0"
    pieces = [table[len(headers)] if len(headers) < TABLE_SIZE else encode_varint(len(headers))]
    for name, content in headers:
        pieces.append(_known_name(name) if len(name) <= _KNOWN_NAME else _name_field(name))
        if content is None:
            pieces.append(_NULL)
        else:
            octets = len(content)
            pieces.append(table[octets] if octets < TABLE_SIZE else encode_varint(octets))
            pieces.append(content)
    return b"".join(pieces)


def _name_field(name: str) -> bytes:
    encoded = name.encode()
    return encode_varint(len(encoded)) + encoded


_known_name = lru_cache(maxsize=256)(_name_field)  # a program has few names of headers
