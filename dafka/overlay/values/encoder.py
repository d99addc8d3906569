"""Values to octets: a tag, then what belongs to it. Sets and tables are written in order."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from functools import partial
from typing import Any

from dafka.overlay.errors import InvalidValue
from dafka.overlay.limits import MOST_NESTED
from dafka.overlay.values import types
from dafka.overlay.values.containers import Set, Table, Value, is_vector, kind_of, octets_of
from dafka.overlay.values.types import Address, Count, Enum, Port, Subnet, Timespan, Timestamp

_COUNT = struct.Struct(">BQ")
_SIGNED = struct.Struct(">Bq")
_REAL = struct.Struct(">Bd")
_PORT = struct.Struct(">BHB")

# Zeek Broker writes the signs of the infinities the other way round than IEEE 754.
_SPECIAL = {float("inf"): b"\x04\xff\xf0" + bytes(6), float("-inf"): b"\x04\x7f\xf0" + bytes(6)}
_NAN = b"\x04" + b"\xff" * 8

_ADDRESS_OCTETS = 16
_ADDRESS_BITS = 128


def encode(value: Value) -> bytes:
    """The octets of a value. Raises :class:`InvalidValue` for what Broker's data types cannot express.

    A list stands for a vector, ``set`` and ``frozenset`` for a set, a ``dict`` for a table, ``bytes`` for a
    string of these octets.
    """
    out = bytearray()
    write(value, out)
    return bytes(out)


def write(value: Any, out: bytearray, depth: int = 0) -> None:
    """Append the octets of a value, which stands inside of ``depth`` others."""
    kind = type(value)
    writer = _WRITERS.get(kind)
    try:
        if writer is not None:
            out += writer(value)
        else:
            _write_many(value, kind, out, depth)
    except struct.error as error:
        raise InvalidValue(f"{value!r} is out of the range of its type: {error}") from error


def encode_behind(head: bytes, vector: Any, depth: int) -> bytes:
    """``head`` and the octets of a vector, which stands inside of ``depth`` others."""
    if type(vector) is tuple and len(vector) < 0x80:
        parts = [head, _VECTORS[len(vector)]]
        try:
            for element in vector:
                parts.append(_WRITERS[type(element)](element))
            return b"".join(parts)
        except KeyError:
            pass  # values inside of values
        except struct.error as error:
            raise InvalidValue(f"{vector!r} has a number out of the range of its type: {error}") from error
    out = bytearray(head)
    write(vector, out, depth)
    return bytes(out)


def write_counted(count: int, out: bytearray) -> None:
    """Append a length or a number of elements (varbyte)."""
    while count > 0x7F:
        out.append(count & 0x7F | 0x80)
        count >>= 7
    out.append(count)


def _write_many(value: Any, kind: type, out: bytearray, depth: int) -> None:
    if depth >= MOST_NESTED:
        raise InvalidValue(f"values are nested more than {MOST_NESTED} deep")
    depth += 1
    if kind is tuple or kind is list:
        count = len(value)
        if count < 0x80:
            out += _VECTORS[count]
        else:
            out.append(types.VECTOR)
            write_counted(count, out)
        find = _WRITERS.get
        for element in value:
            writer = find(type(element))
            if writer is not None:
                out += writer(element)
            else:
                _write_many(element, type(element), out, depth)
    elif kind is Set:
        out.append(types.SET)
        write_counted(len(value), out)
        for element in value:
            write(element, out, depth)
    elif kind is Table:
        out.append(types.TABLE)
        write_counted(len(value), out)
        for key, element in value.entries:
            write(key, out, depth)
            write(element, out, depth)
    else:
        _write_relative(value, out, depth - 1)


def _write_relative(value: Any, out: bytearray, depth: int) -> None:
    """A value whose class is derived from one of ours, or does what one of ours does."""
    if isinstance(value, Mapping):
        _write_many(Table(value), Table, out, depth)
    elif isinstance(value, AbstractSet):
        _write_many(Set(value), Set, out, depth)
    elif is_vector(value):
        _write_many(tuple(value), tuple, out, depth)
    else:
        out += _WRITERS[kind_of(value, _WRITERS)](value)


_HEADS = {
    tag: [bytes((tag, count)) for count in range(0x80)] for tag in (types.STRING, types.ENUM, types.VECTOR)
}
_TEXTS, _VECTORS = _HEADS[types.STRING], _HEADS[types.VECTOR]


def _string(value: str | bytes, tag: int = types.STRING) -> bytes:
    octets = octets_of(value)
    count = len(octets)
    if count < 0x80:
        return _HEADS[tag][count] + octets
    out = bytearray((tag,))
    write_counted(count, out)
    return bytes(out) + octets


def _text(value: str) -> bytes:
    try:
        octets = value.encode()
    except UnicodeEncodeError:
        return _string(value)
    count = len(octets)
    return _TEXTS[count] + octets if count < 0x80 else _string(octets)


def _real(value: float) -> bytes:
    if value - value == 0.0:
        return _REAL.pack(types.REAL, value)
    return _NAN if value != value else _SPECIAL[value]


def _address(value: Address) -> bytes:
    if len(value) != _ADDRESS_OCTETS:
        raise InvalidValue(f"an address has {_ADDRESS_OCTETS} octets, not {len(value)}")
    return b"\x06" + value


def _subnet(value: Subnet) -> bytes:
    network, bits = value
    if len(network) != _ADDRESS_OCTETS or not 0 <= bits <= _ADDRESS_BITS:
        raise InvalidValue(f"no subnet: {network!r}, {bits} bits")
    return b"\x07" + network + bytes((bits,))


def _port(value: Port) -> bytes:
    if not types.UNKNOWN <= value.protocol <= types.ICMP:
        raise InvalidValue(f"no protocol of a port: {value.protocol}")
    return _PORT.pack(types.PORT, *value)


_WRITERS: dict[type, Callable[[Any], bytes]] = {
    type(None): lambda value: b"\x00",
    bool: lambda value: b"\x01\x01" if value else b"\x01\x00",
    Count: partial(_COUNT.pack, types.COUNT),
    int: partial(_SIGNED.pack, types.INTEGER),
    float: _real,
    str: _text,
    bytes: _string,
    Address: _address,
    Subnet: _subnet,
    Port: _port,
    Timestamp: partial(_SIGNED.pack, types.TIMESTAMP),
    Timespan: partial(_SIGNED.pack, types.TIMESPAN),
    Enum: lambda value: _string(value, types.ENUM),
}
