"""Stretches of records of one shape in a record batch: found and checked with strided slices of the buffer.

Streams often hold records of one shape (keys of one length, values of one length, no headers), and then every
field of a stretch of records stands at a fixed distance from the same field of the next record. Mostly all
records of a batch are of one shape, so that is asked of a column first: stripping it octet by octet, which
tells how many are, takes several times as long.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import unpack_from
from typing import Any, NamedTuple

from dafka.protocol.varint import decode_varint, encode_varint

SHORTEST = 8  # records of one shape that make the short cut worth its while

_BLOCK = 256
_ONE_OCTET = bytes(range(0x80))  # octets that are a whole varint
_MORE_OCTETS = bytes(range(0x80, 0x100))  # octets that begin a longer one
# First and second octet of the varints of 0 to 8191, as columns to compare with, and of varints of 3 octets,
# which repeat after so many.
_FIRST = bytes(range(0, 0x80, 2)) + bytes(range(0x80, 0x100, 2)) * 127
_SECOND = b"".join(bytes((octet,)) * 64 for octet in range(0x80))
_FIRST_OF_THREE = bytes(range(0x80, 0x100, 2)) * 128
_SECOND_OF_THREE = b"".join(bytes((octet,)) * 64 for octet in range(0x80, 0x100))
_SHORT, _BLOCK_OF_TWO, _LIMIT = 64, 8192, 1 << 20  # where offset deltas of one, two and three octets end
_STAMP_OCTETS = 4  # of a timestamp's delta, at most: 18 hours


class Stretch(NamedTuple):
    """Records of one shape from ``position`` up to ``stop``: where the fields are in the first of them."""

    records: int
    size: int
    position: int
    stop: int
    stamps: tuple[
        bytes, ...
    ]  # the first octets of the timestamps' deltas, the second ones if there are any, ...
    key_start: int
    key_length: int
    value: int
    value_start: int
    value_length: int


def find_stretch(buffer: bytes, position: int, done: int, count: int) -> Stretch | None:
    """As many records as have the shape of the one at ``position``.

    None if they are fewer than SHORTEST, the shape is not one that is looked for, or offsets have gaps.
    ``done`` records were read before, of ``count``.
    """
    # The shape: where the fields are, from the first octet of the record on.
    if done >= _LIMIT or count - done < SHORTEST:
        return None
    length, attributes = decode_varint(buffer, position)
    size = attributes - position + length
    head = buffer[position:attributes]
    if not buffer.startswith(head, position + size) or not buffer.startswith(head, position + 2 * size):
        return None
    timestamp = attributes + 1
    offset = timestamp + 1
    while buffer[offset - 1] >= 0x80:
        offset += 1
    delta = encode_varint(done)
    if offset - timestamp > _STAMP_OCTETS or not buffer.startswith(delta, offset):
        return None
    key = offset + len(delta)
    key_length, key_start = decode_varint(buffer, key)
    value = key_start + max(key_length, 0)
    value_length, value_start = decode_varint(buffer, value)
    headers = value_start + value_length
    if headers != position + size - 1 or key_length < -1 or value_length < 0:
        return None

    # How many records repeat it: the fixed octets are equal in all, varints that differ have equal sizes.
    records = min(count - done, (len(buffer) - position) // size, deltas_alike(done))
    fixed = (*range(position, timestamp), *range(key, key_start), *range(value, value_start), headers)
    for place in fixed:
        if records < SHORTEST:
            return None
        column = buffer[place : position + records * size : size]
        if column != column[:1] * records:
            records = len(column) - len(column.lstrip(column[:1]))
    if buffer[headers]:
        return None
    stop = position + records * size
    stamps = tuple(buffer[place:stop:size] for place in range(timestamp, offset))
    records = stamps_alike(stamps)
    if records < SHORTEST:
        return None
    stop = position + records * size
    for place, column in enumerate(delta_columns(done, records), offset):
        if buffer[place:stop:size] != column:
            return None
    return Stretch(
        records, size, position, stop, stamps, key_start, key_length, value, value_start, value_length
    )


def stamps_alike(stamps: tuple[bytes, ...]) -> int:
    """How many records have timestamps' deltas of as many octets as there are columns."""
    *before, last = stamps
    records = len(last)
    if not last.isascii():
        records -= len(last.lstrip(_ONE_OCTET))
    for column in before:
        if column.translate(None, _MORE_OCTETS):
            records = min(records, len(column) - len(column.lstrip(_MORE_OCTETS)))
    return records


def stamp_numbers(stamps: tuple[bytes, ...]) -> list[int]:
    """The numbers, as zigzag has them, whose octets are in these columns."""
    *before, last = stamps
    numbers = [*last]
    for column in reversed(before):
        numbers = [octet & 0x7F | high << 7 for octet, high in zip(column, numbers, strict=True)]
    return numbers


def deltas_alike(done: int) -> int:
    """How many offset deltas from ``done`` on may be compared at once."""
    if done < _SHORT:
        return _SHORT - done
    return _BLOCK_OF_TWO - done % _BLOCK_OF_TWO if done < _LIMIT else 0


def delta_columns(done: int, records: int) -> tuple[bytes, ...]:
    """The octets of so many offset deltas from ``done`` on, at most as :func:`deltas_alike` says: the first
    ones, the second ones if there are any, and so on."""
    place = done % _BLOCK_OF_TWO
    deltas = slice(place, place + records)
    if done < _SHORT:
        return (_FIRST[deltas],)
    if done < _BLOCK_OF_TWO:
        return _FIRST[deltas], _SECOND[deltas]
    return _FIRST_OF_THREE[deltas], _SECOND_OF_THREE[deltas], encode_varint(done)[2:] * records


def values_of(buffer: bytes, stretch: Stretch) -> Iterator[tuple[Any, ...]]:
    """The values of a stretch of records without keys."""
    record = f"{stretch.value_start - stretch.position}x{stretch.value_length}sx"
    return unpack(record, stretch.size, stretch.records, buffer, stretch.position)


def unpack(record: str, size: int, records: int, buffer: bytes, position: int) -> Iterator[tuple[Any, ...]]:
    """The fields of many records at once. They share a ``struct`` format, which is kept there for the next
    stretch of that shape; it takes 32 octets a record, so it is one for _BLOCK records at most."""
    for first in range(0, records, _BLOCK):
        yield unpack_from(record * min(_BLOCK, records - first), buffer, position + first * size)
