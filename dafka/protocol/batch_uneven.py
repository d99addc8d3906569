"""Records of one make but of many sizes in a record batch: many of them are looked at together.

Where keys or values differ in length, only a loop finds the records, size by size. It does nothing else. What
is checked are columns: octets at the same distance from the places where one record ends and the next one
begins, or where values begin. A few calls take them out of a thousand records.

The make: records whose attributes are 0, with timestamps of the same number of octets, keys shorter than 64
octets or none, values shorter than 8 KiB, and headers whose names and values have the lengths that they have
in the first record. Nothing is refused here. A record of another make, or a wrong one, ends what is found,
and is for whoever reads it field by field.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from functools import lru_cache
from operator import add, itemgetter, ne, sub
from typing import NamedTuple

from dafka.protocol.batch_stretch import delta_columns, stamps_alike
from dafka.protocol.varint import decode_varint, encode_varint

FEWEST = 128  # records that are looked for, or it is not worth its while

_FEWEST_FOUND = 64
_STAMP_OCTETS = 4
_TAIL_OCTETS = 512  # of headers

_NONE = 1  # the octet of a length of -1
_LENGTHS = bytes(range(0, 0x80, 2))  # octets that are a length
_KEY_LENGTHS = bytes((_NONE,)) + _LENGTHS
_KEY_OCTETS = [octet >> 1 for octet in range(0x80)]  # by the octet of a key's length
_ONE_OCTET = bytes(range(0x80))  # octets that are a whole varint
_IS_ONE_OCTET = bytes((1,)) * 0x80 + bytes(0x80)
_GOES_ON = bytes(0x80) + bytes((0xFF,)) * 0x80  # a mask of octets that another one follows

# How far it is from a record to the next one, by the two octets that it begins with: its size, or its size
# and its attributes, 0. Too far for every buffer if the size is negative, or of more octets.
_FAR = 1 << 40
_BY_FIRST = [
    _FAR if octet & 1 else 1 + (octet >> 1) if octet < 0x80 else 2 + (octet >> 1 & 0x3F)
    for octet in range(0x100)
]
_BY_SECOND = [octet << 6 if octet < 0x80 else _FAR for octet in range(0x100)]

# The octets of a value's length, by how many octets it takes together with the value: none takes 0 or 65. The
# second octet is 0 where there is none.
_SHORT, _LONG = 1 << 6, 1 << 13  # where lengths of one and of two octets end
_FIRST_OCTETS = [None, *_LENGTHS, None, *[length << 1 & 0x7F | 0x80 for length in range(_SHORT, _LONG)]]
_SECOND_OCTETS = [0] * (_SHORT + 2) + [length >> 6 for length in range(_SHORT, _LONG)]
_LENGTHENED = 4  # at most one size of so many
_LED_OUT = 128  # more octets than a key can lead out of its record


class Uneven(NamedTuple):
    """Records of one make up to ``stop``: the columns of their timestamps' deltas, whether one lacks a key,
    and how many headers each of them has."""

    records: int
    stop: int
    stamps: tuple[bytes, ...]
    keyless: bool
    headers: int


class _Make(NamedTuple):
    """What is fixed, and how long the first record's key is."""

    stamp_octets: int
    key_octets: int
    tail: bytes  # the headers, from their number on
    lengths: list[int]  # the places of their number and of their lengths in it


def find_uneven(buffer: bytes, position: int, done: int, most: int) -> Uneven | None:
    """Some of the records of the make of the one at ``position``, which is number ``done``.

    ``most``: no more than :func:`deltas_alike` says. None if they are few. Raises IndexError if the first or
    the second one is not in the buffer as a whole, and ValueError if it has a number of more than 64 bits.
    """
    ends, make = _walk(buffer, position, most), _make(buffer, position)
    second = None if make is None else _make(buffer, ends[0])
    if make is None or second is None or second.lengths != make.lengths:
        return None
    # Where the fields are, behind the size: attributes and the timestamp come before the offset delta.
    delta = 1 + make.stamp_octets
    key = delta + len(encode_varint(done))
    value = key + 1 + make.key_octets
    borders = _Borders(buffer, position, ends, make.tail, value + 2)

    stamps = tuple(borders.column(place) for place in range(1, delta))
    keys = borders.column(key)
    records = min(stamps_alike(stamps), len(keys) - len(keys.lstrip(_KEY_LENGTHS)))
    fixed = [(borders.column(0), bytes(records))]  # the attributes
    fixed += [(borders.column(delta + n), column) for n, column in enumerate(delta_columns(done, records))]
    fixed += [(borders.tail_column(place), make.tail[place : place + 1] * records) for place in make.lengths]
    for found, wanted in fixed:
        records = _equal(found, wanted, records)
    if records < _FEWEST_FOUND:
        return None

    keys = keys[:records]
    begins, place = borders.begins[:records], value  # where values are, behind the sizes that begin there
    firsts, seconds = borders.column(value), borders.column(value + 1)
    if keys != keys[:1] * records:
        begins, place = [*map(add, begins, itemgetter(*keys)(_KEY_OCTETS))], key + 1
        firsts, seconds = _pairs(buffer, begins, borders.size_octets + place)
    octets = [*map(sub, borders.ends, begins)]
    others = borders.size_octets + place + len(make.tail)
    records = _equal_lengths(octets, others, firsts[:records], seconds[:records])
    if records < _FEWEST_FOUND:
        return None
    stamps = tuple(column[:records] for column in stamps)
    return Uneven(records, borders.ends[records - 1], stamps, _NONE in keys[:records], make.tail[0] >> 1)


def _make(buffer: bytes, position: int) -> _Make | None:
    """The make of the record at a position; None if it is not one that is looked for."""
    length, start = decode_varint(buffer, position)
    _, at = decode_varint(buffer, start + 1)
    stamp_octets = at - start - 1
    _, at = decode_varint(buffer, at)
    key_octets, at = decode_varint(buffer, at)
    key_octets = max(key_octets, 0)
    value_octets, at = decode_varint(buffer, at + key_octets)
    tail = buffer[at + max(value_octets, 0) : start + length]
    lengths = _lengths_in(tail)
    if lengths is None or buffer[start] or stamp_octets > _STAMP_OCTETS or key_octets >= _SHORT:
        return None
    return _Make(stamp_octets, key_octets, tail, lengths)


def _lengths_in(tail: bytes) -> list[int] | None:
    """Where in the octets of headers their number and their lengths are. None if one of these takes more than
    one octet, or if they are wrong."""
    if not 0 < len(tail) <= _TAIL_OCTETS or tail[0] not in _LENGTHS:
        return None
    places, at = [0], 1
    for field in range(tail[0]):  # twice the number of headers
        if at >= len(tail) or tail[at] not in (_KEY_LENGTHS if field & 1 else _LENGTHS):
            return None
        places.append(at)
        at += 1 + (tail[at] >> 1)
    return places if at == len(tail) else None


def _walk(buffer: bytes, position: int, most: int) -> list[int]:
    """Where each record ends and the next one begins."""
    ends: list[int] = []
    end, by_first, by_second = ends.append, _BY_FIRST, _BY_SECOND
    try:
        for _ in range(most):
            position += by_first[buffer[position]] + by_second[buffer[position + 1]]
            end(position)
    except IndexError:
        pass
    return ends


class _Borders:
    """The octets around the places where one record ends and the next one begins: the headers of the one,
    which are as many as in ``tail``, and the size and ``octets`` more of the other.

    Records that are not followed by so many are left out. Where sizes of one octet are among longer ones, an
    octet is put in front of them, so that all take two; if these are many, all records are left out.
    """

    def __init__(self, buffer: bytes, position: int, ends: list[int], tail: bytes, octets: int) -> None:
        before, behind = len(tail), 2 + octets
        del ends[bisect_right(ends, len(buffer) - behind) :]
        self.begins, self.ends = [position, *ends[:-1]], ends
        self._tail, self._step = before, before + behind
        borders = [tail + buffer[position : position + behind]]
        borders += [buffer[end - before : end + behind] for end in ends]
        self._octets = b"".join(borders)
        sizes = self._octets[before :: self._step][: len(ends)]
        short = len(sizes) - len(sizes.translate(None, _ONE_OCTET))
        self.size_octets = 1 if short == len(sizes) else 2
        if 0 < short <= len(sizes) // _LENGTHENED:
            self._lengthen(borders, sizes.translate(_IS_ONE_OCTET))
        elif self.size_octets == 2 and short:
            ends.clear()

    def _lengthen(self, borders: list[bytes], are_short: bytes) -> None:
        tail = self._tail
        place = are_short.find(1)
        while place >= 0:
            border = borders[place]
            borders[place] = border[:tail] + b"\0" + border[tail:-1]
            self.begins[place] -= 1
            place = are_short.find(1, place + 1)
        self._octets = b"".join(borders)

    def column(self, place: int) -> bytes:
        """The octets of all records that are so far behind the size."""
        return self._octets[self._tail + self.size_octets + place :: self._step][: len(self.ends)]

    def tail_column(self, place: int) -> bytes:
        """The octets of all records that are so far behind the beginning of the headers."""
        return self._octets[self._step + place :: self._step]


def _pairs(buffer: bytes, begins: list[int], place: int) -> tuple[bytes, bytes]:
    """The octets that are so far behind these places, and the next ones."""
    pairs = b"".join([buffer[begin + place : begin + place + 2] for begin in begins])
    whole = len(pairs) == 2 * len(begins)  # else some lie behind the end of the buffer
    return (pairs[0::2], pairs[1::2]) if whole else (b"", b"")


def _equal_lengths(octets: list[int], others: int, firsts: bytes, seconds: bytes) -> int:
    """How many records have values of as many octets as their lengths say.

    ``octets``: of each from its beginning on, of which ``others`` are neither value nor length.
    """
    of_records = itemgetter(*octets)
    first_octets, second_octets = _length_octets(others)
    records = _equal(tuple(firsts), of_records(first_octets), len(octets))
    mask = int.from_bytes(firsts.translate(_GOES_ON), "little")
    found = int.from_bytes(seconds, "little") & mask
    return _equal(found.to_bytes(len(seconds), "little"), bytes(of_records(second_octets)), records)


@lru_cache(maxsize=16)
def _length_octets(others: int) -> tuple[list[int | None], list[int]]:
    """The octets of a value's length, by how many octets it takes together with the value and ``others``.

    A negative number of octets leads to the end of a list, where there is none either.
    """
    firsts = [*[None] * others, *_FIRST_OCTETS, *[None] * _LED_OUT]
    return firsts, [*[0] * others, *_SECOND_OCTETS, *[0] * _LED_OUT]


def _equal(found: Sequence[int], wanted: Sequence[int | None], records: int) -> int:
    """How many of so many records have the wanted octets in a column."""
    if found == wanted:
        return records
    different = bytes(map(ne, found, wanted))
    first = different.find(1)
    return min(records, len(different) if first < 0 else first)
