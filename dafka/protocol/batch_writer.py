"""Records -> record batch. One loop, a table of varints, no function call for each record."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain, repeat
from typing import Any

from crc32c import crc32c
from kafka.codec import gzip_encode, lz4_encode, snappy_encode, zstd_encode

from dafka.protocol.batch import CODECS, HEADER, HEADER_OCTETS, MAGIC, TIMESTAMP_TYPE_BIT
from dafka.protocol.varint import TABLE_SIZE, VARINT, encode_varint

Headers = Sequence[tuple[str, bytes | None]]
BatchRecord = tuple[int, bytes | None, bytes | None, Headers]  # timestamp in ms, key, value, headers

RECORD_OVERHEAD = 21  # most octets that length, attributes, deltas and counts of a record take
_NULL = encode_varint(-1)
_ENCODERS: dict[str, Any] = {
    "gzip": gzip_encode,
    "snappy": snappy_encode,
    "lz4": lz4_encode,
    "zstd": zstd_encode,
}


def encode_batch(
    records: Sequence[BatchRecord],
    *,
    base_offset: int = 0,
    compression: str | None = None,
    timestamp_type: int = 0,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
) -> bytes:
    """One batch of at least one record ``(timestamp in ms, key, value, headers)``.

    ``compression``: None or a codec that kafka-python has installed (its ``kafka.codec`` raises if not).
    Raises ValueError for no records or an unknown codec.
    """
    if not records:
        raise ValueError("a record batch has at least one record")
    if compression not in CODECS:
        raise ValueError(f"compression is one of {sorted(filter(None, CODECS))} or None, not {compression!r}")
    timestamps, keys, values, headers = zip(*records, strict=True)
    base_timestamp, max_timestamp = timestamps[0], max(timestamps)
    body = None
    if not any(headers) and None not in values:
        body = _write_plain(timestamps, keys, values)
    if body is None:
        body = _write_any(records)
    if compression is not None:
        body = _ENCODERS[compression](body)
    attributes = CODECS[compression] | (TIMESTAMP_TYPE_BIT if timestamp_type else 0)
    count = len(records)
    fields = (
        base_offset,
        HEADER_OCTETS - 12 + len(body),
        0,
        MAGIC,
        0,
        attributes,
        count - 1,
        base_timestamp,
        max_timestamp,
        producer_id,
        producer_epoch,
        base_sequence,
        count,
    )
    unsigned = HEADER.pack(*fields)
    crc = crc32c(body, crc32c(unsigned[21:]))
    return b"".join((unsigned[:17], crc.to_bytes(4, "big"), unsigned[21:], body))


def record_size_bound(key: bytes | None, value: bytes | None, headers: Headers = ()) -> int:
    """An upper bound of the octets that a record takes in a batch, uncompressed."""
    size = RECORD_OVERHEAD + (len(key) if key else 0) + (len(value) if value else 0)
    for name, content in headers:
        size += 10 + len(name.encode()) + (len(content) if content else 0)
    return size


def _write_plain(
    timestamps: Sequence[int], keys: Sequence[bytes | None], values: Sequence[bytes]
) -> bytes | None:
    """Records with a value and no headers, in C-level loops; None if a number is off the table."""
    count = len(values)
    base = timestamps[0]
    table = VARINT
    lengths = list(map(len, values))
    if count > TABLE_SIZE or max(lengths) > TABLE_SIZE - 32 or not min(timestamps) - base >= 0:
        return None
    if max(timestamps) == base:
        deltas: Iterable[bytes] = repeat(b"\0\0")  # attributes and a delta of 0
        delta_octets: Iterable[int] = repeat(2)
    elif max(timestamps) - base < TABLE_SIZE:
        deltas = [b"\0" + table[timestamp - base] for timestamp in timestamps]
        delta_octets = map(len, deltas)
    else:
        return None
    if not any(keys) and b"" not in keys:
        key_fields: Iterable[bytes] = repeat(_NULL)
        # the key's length, and the count of headers at the end
        totals = [2 + a + b + c for a, b, c in zip(delta_octets, _OFFSET_OCTETS, lengths)]  # noqa: B905
    else:
        if max(len(key) for key in keys if key is not None) > TABLE_SIZE - 32:
            return None
        key_fields = [_NULL if key is None else table[len(key)] + key for key in keys]
        totals = [
            1 + a + b + c + d
            for a, b, c, d in zip(delta_octets, _OFFSET_OCTETS, lengths, map(len, key_fields))  # noqa: B905
        ]
    value_fields = [table[length] for length in lengths]
    totals = [total + len(field) for total, field in zip(totals, value_fields, strict=True)]
    if max(totals) >= TABLE_SIZE:
        return None
    heads = [table[total] for total in totals]
    rows = zip(heads, deltas, table, key_fields, value_fields, values, repeat(b"\0"))
    return b"".join(chain.from_iterable(rows))


_OFFSET_OCTETS = [len(octets) for octets in VARINT]


def _write_any(records: Sequence[BatchRecord]) -> bytes:
    base = records[0][0]
    table, size, varint = VARINT, TABLE_SIZE, encode_varint
    parts: list[bytes] = []
    for delta, (timestamp, key, value, headers) in enumerate(records):
        shift = timestamp - base
        body = [b"\0", table[shift] if 0 <= shift < size else varint(shift)]
        body.append(table[delta] if delta < size else varint(delta))
        for octets in (key, value):
            if octets is None:
                body.append(_NULL)
            else:
                body.append(table[len(octets)] if len(octets) < size else varint(len(octets)))
                body.append(octets)
        body.append(varint(len(headers)))
        for name, content in headers:
            encoded = name.encode()
            body += (varint(len(encoded)), encoded)
            body += (_NULL,) if content is None else (varint(len(content)), content)
        record = b"".join(body)
        parts += (table[len(record)] if len(record) < size else varint(len(record)), record)
    return b"".join(parts)
