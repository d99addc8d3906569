"""Octets to values.

Work and memory are bounded by the octets: an element takes at least one, so a number of elements that is
larger than what is left is refused before anything is made; nesting ends at a bound; a string is taken out at
once. Sets and tables come in any order and are sorted, unless they are in order already.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

from dafka.overlay.errors import InvalidValue
from dafka.overlay.limits import MOST_NESTED
from dafka.overlay.values import types
from dafka.overlay.values.containers import Set, Table, Value
from dafka.overlay.values.types import NAN, Address, Count, Enum, Port, Subnet, Timespan, Timestamp
from dafka.protocol.errors import MalformedMessage

_count_at = struct.Struct(">Q").unpack_from
_signed_at = struct.Struct(">q").unpack_from
_real_at = struct.Struct(">d").unpack_from

_MOST_NAMED = 0xFFFFFFFF
_VARBYTE_BITS = 35  # five octets; a reader keeps 32 bits
_SPECIAL = {0xFFF0 << 48: float("inf"), 0x7FF0 << 48: float("-inf"), (1 << 64) - 1: NAN}


def decode(octets: bytes) -> Value:
    """The value that takes exactly these octets. Raises :class:`MalformedMessage`."""
    value, position = read(octets, 0)
    if position != len(octets):
        raise MalformedMessage("trailing-octets", f"{len(octets) - position} octets behind a value")
    return value


def read(octets: bytes, position: int, depth: int = 0) -> tuple[Value, int]:
    """The value at a position, inside of ``depth`` others, and the position behind it.

    Raises :class:`MalformedMessage`.
    """
    try:
        return _read(octets, position, depth)
    except (IndexError, struct.error) as error:
        raise MalformedMessage("truncated-value", f"{len(octets)} octets end inside a value") from error
    except InvalidValue as error:
        raise MalformedMessage("duplicate-element", str(error)) from error


def read_counted(octets: bytes, position: int) -> tuple[int, int]:
    """A length or a number of elements (varbyte). Raises IndexError where the octets end too early."""
    octet = octets[position]
    position += 1
    if octet < 0x80:
        return octet, position
    count, shift = octet & 0x7F, 7
    while octet > 0x7F:
        if shift >= _VARBYTE_BITS:
            raise MalformedMessage("varbyte", "a length of more than five octets")
        octet = octets[position]
        position += 1
        count |= (octet & 0x7F) << shift
        shift += 7
    return count & _MOST_NAMED, position


def text_of(octets: bytes) -> str:
    """Octets that are not UTF-8 are kept as surrogateescape does it."""
    try:
        return octets.decode()
    except UnicodeDecodeError:
        return octets.decode("utf-8", "surrogateescape")


def _read(octets: bytes, position: int, depth: int) -> tuple[Any, int]:
    tag = octets[position]
    if tag > types.VECTOR:
        raise MalformedMessage("unknown-tag", f"{tag} is the tag of no data type")
    return _READERS[tag](octets, position + 1, depth)


def _read_none(octets: bytes, position: int, depth: int) -> tuple[None, int]:
    return None, position


def _read_boolean(octets: bytes, position: int, depth: int) -> tuple[bool, int]:
    return octets[position] != 0, position + 1


def _read_count(octets: bytes, position: int, depth: int) -> tuple[Count, int]:
    return Count(_count_at(octets, position)[0]), position + 8


def _read_integer(octets: bytes, position: int, depth: int) -> tuple[int, int]:
    return _signed_at(octets, position)[0], position + 8


def _read_timestamp(octets: bytes, position: int, depth: int) -> tuple[Timestamp, int]:
    return Timestamp(_signed_at(octets, position)[0]), position + 8


def _read_timespan(octets: bytes, position: int, depth: int) -> tuple[Timespan, int]:
    return Timespan(_signed_at(octets, position)[0]), position + 8


def _read_real(octets: bytes, position: int, depth: int) -> tuple[float, int]:
    value: float = _real_at(octets, position)[0]
    if value - value != 0.0:
        pattern = _count_at(octets, position)[0]
        if pattern not in _SPECIAL:
            raise MalformedMessage("real", f"{pattern:016x} is not a number, nor what Broker writes for NaN")
        value = _SPECIAL[pattern]
    return value, position + 8


def _read_string(octets: bytes, position: int, depth: int) -> tuple[str, int]:
    count, position = read_counted(octets, position)
    end = position + count
    if end > len(octets):
        raise MalformedMessage("length", f"a string of {count} octets, {len(octets) - position} are left")
    return text_of(octets[position:end]), end


def _read_enum(octets: bytes, position: int, depth: int) -> tuple[Enum, int]:
    name, position = _read_string(octets, position, depth)
    return Enum(name), position


def _read_address(octets: bytes, position: int, depth: int) -> tuple[Address, int]:
    end = position + 16
    if end > len(octets):
        raise IndexError
    return Address(octets[position:end]), end


def _read_subnet(octets: bytes, position: int, depth: int) -> tuple[Subnet, int]:
    network, end = _read_address(octets, position, depth)
    bits = octets[end]
    if bits > 128:
        raise MalformedMessage("subnet", f"an address has 128 bits, not {bits}")
    return Subnet(network, bits), end + 1


def _read_port(octets: bytes, position: int, depth: int) -> tuple[Port, int]:
    protocol = octets[position + 2]
    if protocol > types.ICMP:
        raise MalformedMessage("port", f"{protocol} is not a protocol of a port")
    return Port(octets[position] << 8 | octets[position + 1], protocol), position + 3


def _read_vector(octets: bytes, position: int, depth: int) -> tuple[tuple[Any, ...], int]:
    count, position = _start(octets, position, depth, 1)
    return read_elements(octets, position, depth + 1, count)


def read_elements(octets: bytes, position: int, depth: int, count: int) -> tuple[tuple[Any, ...], int]:
    """So many values one behind the other, inside of ``depth`` others, and the position behind them.

    Raises what :func:`read` turns into :class:`MalformedMessage`.
    """
    elements: list[Any] = []
    append, size = elements.append, len(octets)
    # The most frequent types of Zeek's events are read here: a call for each element would take as long as
    # the rest.
    for _ in range(count):
        tag = octets[position]
        if tag == 5:  # a string
            length = octets[position + 1]
            begin = position + 2
            end = begin + length
            if length < 0x80 and end <= size:
                try:
                    append(octets[begin:end].decode())
                except UnicodeDecodeError:
                    append(text_of(octets[begin:end]))
                position = end
                continue
        elif tag == 2:  # a count
            append(Count(_count_at(octets, position + 1)[0]))
            position += 9
            continue
        elif tag == 3:  # an integer
            append(_signed_at(octets, position + 1)[0])
            position += 9
            continue
        elif tag > 14:
            raise MalformedMessage("unknown-tag", f"{tag} is the tag of no data type")
        element, position = _READERS[tag](octets, position + 1, depth)
        append(element)
    return tuple(elements), position


def _read_set(octets: bytes, position: int, depth: int) -> tuple[Set, int]:
    count, position = _start(octets, position, depth, 1)
    elements = []
    for _ in range(count):
        element, position = _read(octets, position, depth + 1)
        elements.append(element)
    return Set(elements), position


def _read_table(octets: bytes, position: int, depth: int) -> tuple[Table, int]:
    count, position = _start(octets, position, depth, 2)
    entries = []
    for _ in range(count):
        key, position = _read(octets, position, depth + 1)
        value, position = _read(octets, position, depth + 1)
        entries.append((key, value))
    return Table(entries), position


def _start(octets: bytes, position: int, depth: int, least: int) -> tuple[int, int]:
    """How many elements of at least so many octets a value has, and where the first one begins."""
    if depth >= MOST_NESTED:
        raise MalformedMessage("nesting", f"values are nested more than {MOST_NESTED} deep")
    count, position = read_counted(octets, position)
    if count * least > len(octets) - position:
        raise MalformedMessage("length", f"{count} elements, where {len(octets) - position} octets are left")
    return count, position


_READERS: list[Callable[[bytes, int, int], tuple[Any, int]]] = [
    _read_none,
    _read_boolean,
    _read_count,
    _read_integer,
    _read_real,
    _read_string,
    _read_address,
    _read_subnet,
    _read_port,
    _read_timestamp,
    _read_timespan,
    _read_enum,
    _read_set,
    _read_table,
    _read_vector,
]
