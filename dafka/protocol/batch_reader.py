"""Record batch -> columns. Callers make rows of them with C-level functions (``map``, ``zip``)."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import NamedTuple

from kafka import codec

from dafka.protocol.batch import HEADER_OCTETS, BatchError, BatchHeader, check_batch
from dafka.protocol.varint import decode_varint

DECOMPRESSED_LIMIT = 256 * 1024 * 1024  # octets that one batch may grow to
HEADERS_LIMIT = 65536  # headers of one record


class Columns(NamedTuple):
    """The records of a batch as five lists of equal length; timestamps in ms, missing headers as ``[]``."""

    offsets: list[int]
    timestamps: list[int]
    keys: list[bytes | None]
    values: list[bytes | None]
    headers: list[list[tuple[str, bytes | None]]]


def decode_batch(batch: bytes) -> Columns:
    """The records of a batch. Raises :class:`BatchError` for whatever is wrong with it."""
    header = check_batch(batch)
    compression = header.compression
    if compression is None:
        return _read(batch, HEADER_OCTETS, header)
    try:
        body = _DECODERS[compression](batch[HEADER_OCTETS:])
    except BatchError:
        raise
    except Exception as error:
        raise BatchError("compression", f"{compression}: {error}") from error
    return _read(body, 0, header)


def _read(buffer: bytes, position: int, header: BatchHeader) -> Columns:
    if header.count * 7 > len(buffer) - position:
        raise BatchError("count", f"{header.count} records in {len(buffer) - position} octets")
    try:
        columns, end = _read_records(buffer, position, header)
    except (IndexError, ValueError) as error:
        raise BatchError("records", str(error)) from error
    if end != len(buffer):
        raise BatchError("records", f"{len(buffer) - end} octets behind the last record")
    if header.timestamp_type:
        return columns._replace(timestamps=[header.max_timestamp] * header.count)
    return columns


def _read_records(buffer: bytes, position: int, header: BatchHeader) -> tuple[Columns, int]:
    base_offset, base_timestamp = header.base_offset, header.base_timestamp
    offsets: list[int] = []
    timestamps: list[int] = []
    keys: list[bytes | None] = []
    values: list[bytes | None] = []
    all_headers: list[list[tuple[str, bytes | None]]] = []
    add_offset, add_timestamp, add_key = offsets.append, timestamps.append, keys.append
    add_value, add_headers = values.append, all_headers.append
    varint = decode_varint
    last = len(buffer)
    for _ in range(header.count):
        # Each field: the octet itself if it is a whole varint, else two octets, else the general way.
        octet = buffer[position]
        if octet < 0x80:
            length = octet >> 1
            position += 1
        elif (high := buffer[position + 1]) < 0x80:
            length = (octet & 0x7F | high << 7) >> 1
            position += 2
        else:
            length, position = varint(buffer, position)
        end = position + length
        if end > last or length < 6:
            raise ValueError(f"a record of {length} octets, {last - position} are left")
        position += 1  # attributes
        octet = buffer[position]
        if octet < 0x80:
            add_timestamp(base_timestamp + ((octet >> 1) ^ -(octet & 1)))
            position += 1
        else:
            delta, position = varint(buffer, position)
            add_timestamp(base_timestamp + delta)
        octet = buffer[position]
        if octet < 0x80:
            add_offset(base_offset + (octet >> 1))
            position += 1
        elif (high := buffer[position + 1]) < 0x80:
            add_offset(base_offset + ((octet & 0x7F | high << 7) >> 1))
            position += 2
        else:
            delta, position = varint(buffer, position)
            add_offset(base_offset + delta)
        octet = buffer[position]
        position += 1
        if octet == 1:
            add_key(None)
        else:
            if octet < 0x80:
                length = octet >> 1
            else:
                length, position = varint(buffer, position - 1)
            if length < 0:
                raise ValueError(f"a key of {length} octets")
            add_key(buffer[position : position + length])
            position += length
        octet = buffer[position]
        if octet == 1:
            add_value(None)
            position += 1
        else:
            if octet < 0x80:
                length = octet >> 1
                position += 1
            elif (high := buffer[position + 1]) < 0x80:
                length = (octet & 0x7F | high << 7) >> 1
                position += 2
            else:
                length, position = varint(buffer, position)
            if length < 0:
                raise ValueError(f"a value of {length} octets")
            add_value(buffer[position : position + length])
            position += length
        if position < end and not buffer[position]:
            position += 1
            add_headers([])
        else:
            headers, position = _read_headers(buffer, position)
            add_headers(headers)
        if position != end:
            raise ValueError(f"a record ends at octet {position}, not at {end}")
    return Columns(offsets, timestamps, keys, values, all_headers), position


def _read_headers(buffer: bytes, position: int) -> tuple[list[tuple[str, bytes | None]], int]:
    count, position = decode_varint(buffer, position)
    if not 0 <= count <= HEADERS_LIMIT:
        raise ValueError(f"{count} headers")
    headers: list[tuple[str, bytes | None]] = []
    for _ in range(count):
        length, position = decode_varint(buffer, position)
        if length < 0:
            raise ValueError(f"a header name of {length} octets")
        name = buffer[position : position + length].decode()
        length, position = decode_varint(buffer, position + length)
        if length == -1:
            headers.append((name, None))
            continue
        if length < 0:
            raise ValueError(f"a header of {length} octets")
        headers.append((name, buffer[position : position + length]))
        position += length
    return headers, position


def _gunzip(body: bytes) -> bytes:
    inflater = zlib.decompressobj(wbits=31)
    plain = inflater.decompress(body, DECOMPRESSED_LIMIT)
    if inflater.unconsumed_tail:
        raise BatchError("compression", f"more than {DECOMPRESSED_LIMIT} octets")
    if not inflater.eof:
        raise BatchError("compression", "gzip: the data ends too early")
    return plain


def _unlz4(body: bytes) -> bytes:
    from lz4.frame import LZ4FrameDecompressor

    decompressor = LZ4FrameDecompressor()
    plain = bytes(decompressor.decompress(body, DECOMPRESSED_LIMIT))
    if not decompressor.eof:
        raise BatchError("compression", "lz4: the data ends too early or is too large")
    return plain


def _unzstd(body: bytes) -> bytes:
    import zstandard

    with zstandard.ZstdDecompressor().stream_reader(body) as stream:
        plain = bytes(stream.read(DECOMPRESSED_LIMIT + 1))
    if len(plain) > DECOMPRESSED_LIMIT:
        raise BatchError("compression", f"more than {DECOMPRESSED_LIMIT} octets")
    return plain


# Snappy's blocks say their size beforehand and compress at most 1:21, so kafka-python's decoder is safe;
# its others would inflate whatever they are given.
_DECODERS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": _gunzip,
    "snappy": codec.snappy_decode,
    "lz4": _unlz4,
    "zstd": _unzstd,
}
