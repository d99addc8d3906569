"""Python's own objects to values of the overlay, and back; every message goes through this.

Types are looked up by class first. Only objects of derived classes are tested one by one, in the order of the
bindings.
"""

from __future__ import annotations

import datetime
import ipaddress
import types
from collections.abc import Callable, Hashable
from typing import Any, TypeAlias

from compat.broker._values import scalars
from compat.broker._values.times import nanoseconds, signed
from compat.broker._values.valued import Valued
from dafka.overlay.errors import InvalidValue
from dafka.overlay.limits import MOST_NESTED
from dafka.overlay.values import (
    Address,
    Count,
    Enum,
    Port,
    Set,
    Subnet,
    Table,
    Timespan,
    Timestamp,
    Value,
    order_key,
)
from dafka.overlay.values.containers import octets_of

Reader: TypeAlias = Callable[[Any], Any]

_V6_BITS = 96  # in front of an IPv4 address
_SECOND = 10**6  # microseconds


def to_value(given: Any, depth: int = 0) -> Value:
    """The value that an object stands for, inside of ``depth`` others.

    Raises TypeError for a class that has no data type, OverflowError for a number of more than 64 bits, and
    :class:`~dafka.overlay.errors.InvalidValue` for objects nested too deep and for text with lone surrogates.
    """
    convert = _TO_VALUE.get(type(given))
    if convert is not None:
        value: Value = convert(given, depth)
        return value
    if isinstance(given, Valued):
        return given._value
    for kind in _DERIVED:
        if isinstance(given, kind):
            value = _TO_VALUE[kind](given, depth)
            return value
    raise TypeError(f"unsupported data type: {type(given)}")


def to_python(value: Value) -> Any:
    """The object for a value. Raises TypeError for a set that holds a set or a table."""
    return _PYTHON[type(value)](value)


def to_immutable(value: Value) -> Any:
    """The object for a value, immutable and with a hash."""
    return _IMMUTABLE[type(value)](value)


class HashableReadOnlyDict(dict[Any, Any]):
    """A ``dict`` that has a hash and cannot be changed."""

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self.items()))

    def _refuse(self, *arguments: Any, **named: Any) -> Any:
        raise TypeError("cannot modify this dict")

    __setitem__ = _refuse
    __delitem__ = _refuse
    __ior__ = _refuse
    pop = _refuse
    popitem = _refuse
    clear = _refuse
    update = _refuse
    setdefault = _refuse
    del _refuse


# -- to values -------------------------------------------------------------------------------------


def _as_it_is(given: Any, depth: int) -> Any:
    return given


def _integer(given: int, depth: int) -> int:
    return signed(int(given), "an integer")


def _text(given: str, depth: int) -> str:
    if not given.isascii():
        octets_of(given)
    return str.__str__(given)


def _octets(given: bytes, depth: int) -> str:
    return given.decode("utf-8", "surrogateescape")


def _timespan(given: datetime.timedelta, depth: int) -> Timespan:
    microseconds = given.microseconds + (given.seconds + given.days * 24 * 3600) * _SECOND
    return Timespan(signed(microseconds * 1000, "a Timespan"))


def _timestamp(given: datetime.datetime, depth: int) -> Timestamp:
    try:
        seconds = given.timestamp()
    except ValueError as error:  # local time of the years 1 and 9999
        raise OverflowError(f"a Timestamp has 64 bits, too few for {given}") from error
    return Timestamp(signed(nanoseconds(seconds), "a Timestamp"))


def _address(given: ipaddress.IPv4Address | ipaddress.IPv6Address, depth: int) -> Address:
    return scalars.Address(given.packed, given.version)._value


def _subnet(given: ipaddress.IPv4Network | ipaddress.IPv6Network, depth: int) -> Subnet:
    more = _V6_BITS if given.version == 4 else 0
    return Subnet(_address(given.network_address, depth), given.prefixlen + more)


def _vector(given: list[Any] | tuple[Any, ...], depth: int) -> tuple[Value, ...]:
    depth = _deeper(depth)
    return tuple([to_value(element, depth) for element in given])


def _set(given: set[Any] | frozenset[Any], depth: int) -> Set:
    depth = _deeper(depth)
    return set_of([to_value(element, depth) for element in given])


def _table(given: dict[Any, Any] | types.MappingProxyType[Any, Any], depth: int) -> Table:
    depth = _deeper(depth)
    return table_of([(to_value(key, depth), to_value(value, depth)) for key, value in given.items()])


def _deeper(depth: int) -> int:
    if depth >= MOST_NESTED:
        raise InvalidValue(f"values are nested more than {MOST_NESTED} deep")
    return depth + 1


def set_of(elements: list[Value]) -> Set:
    """A set of values. Of several that are the same to Broker, such as "a" and b"a", it has the first."""
    try:
        return Set(elements)
    except InvalidValue:
        once: dict[Hashable, Value] = {}
        for element in elements:
            once.setdefault(order_key(element), element)
        return Set(once.values())


def table_of(entries: list[tuple[Value, Value]]) -> Table:
    """A table of keys and values. Of several keys that are the same to Broker the last one's value counts."""
    try:
        return Table(entries)
    except InvalidValue:
        return Table({order_key(key): (key, value) for key, value in entries}.values())


_TO_VALUE: dict[type, Callable[[Any, int], Any]] = {
    type(None): _as_it_is,
    bool: _as_it_is,
    int: _integer,
    float: lambda given, depth: float(given),
    str: _text,
    bytes: _octets,
    datetime.timedelta: _timespan,
    datetime.datetime: _timestamp,
    ipaddress.IPv4Address: _address,
    ipaddress.IPv6Address: _address,
    ipaddress.IPv4Network: _subnet,
    ipaddress.IPv6Network: _subnet,
    list: _vector,
    tuple: _vector,
    set: _set,
    frozenset: _set,
    dict: _table,
    types.MappingProxyType: _table,
}
_DERIVED = tuple(_TO_VALUE)


# -- to Python's objects ----------------------------------------------------------------------------


def _text_or_octets(value: str) -> str | bytes:
    if value.isascii():
        return value
    octets = octets_of(value)
    try:
        octets.decode()
    except UnicodeDecodeError:
        return octets
    return value


def _network(value: Subnet) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
    network, bits = value
    if network.is_v4 and bits >= _V6_BITS:
        return ipaddress.IPv4Network((network[12:], bits - _V6_BITS), strict=False)
    return ipaddress.IPv6Network((bytes(network), bits), strict=False)


_SCALARS: dict[type, Reader] = {
    type(None): lambda value: None,
    bool: lambda value: value,
    int: lambda value: value,
    float: lambda value: value,
    str: _text_or_octets,
    Count: scalars.Count._of,
    Enum: scalars.Enum._of,
    Port: scalars.Port._of,
    Address: lambda value: value.ip,
    Subnet: _network,
    Timespan: lambda value: datetime.timedelta(seconds=value / 1e9),
    Timestamp: lambda value: datetime.datetime.fromtimestamp(value / 1e9, datetime.timezone.utc),
}


def _readers(set_class: type, table_class: type[dict[Any, Any]]) -> dict[type, Reader]:
    """How values are read into objects, with these classes for sets and tables."""
    readers = dict(_SCALARS)

    def read_set(values: Set) -> Any:
        return set_class([readers[type(value)](value) for value in values])

    def read_table(table: Table) -> dict[Any, Any]:
        return table_class(
            [(readers[type(key)](key), readers[type(value)](value)) for key, value in table.entries]
        )

    def read_vector(values: tuple[Value, ...]) -> tuple[Any, ...]:
        return tuple([readers[type(value)](value) for value in values])

    readers.update({Set: read_set, Table: read_table, tuple: read_vector})
    return readers


_PYTHON = _readers(set, dict)
_IMMUTABLE = _readers(frozenset, HashableReadOnlyDict)
