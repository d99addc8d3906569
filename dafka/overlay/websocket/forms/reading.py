"""JSON objects to values. Other forms than libbroker's are refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dafka.overlay.errors import InvalidValue
from dafka.overlay.limits import MOST_NESTED
from dafka.overlay.values.containers import Set, Table, Value, octets_of
from dafka.overlay.values.types import NAN, Count, Enum
from dafka.overlay.websocket.errors import DuplicateElement, InvalidForm
from dafka.overlay.websocket.forms import scalars

_SPECIAL = {"nan": NAN, "inf": float("inf"), "-inf": float("-inf")}


def value_of(form: Any, depth: int = 0) -> Value:
    """The value that an object with the members ``@data-type`` and ``data`` stands for.

    Others are not looked at. Raises InvalidForm.
    """
    if type(form) is not dict:
        raise InvalidForm(f"a value is an object with @data-type and data, no {type(form).__name__}")
    kind = form.get("@data-type")
    if kind == "none":
        return None
    if type(kind) is not str or "data" not in form:
        raise InvalidForm("an object without @data-type or data")
    data = form["data"]
    scalar = _SCALARS.get(kind)
    if scalar is not None:
        wanted, make = scalar
        if type(data) is not wanted:
            raise InvalidForm(f"a {kind} that is a {type(data).__name__}")
        value: Value = make(data)
        return value
    if kind == "real":
        return _real(data)
    many = _MANY.get(kind)
    if many is None:
        raise InvalidForm(f"no data type: {kind[:60]!r}")
    if type(data) is not list:
        raise InvalidForm(f"a {kind} that is not an array")
    if depth >= MOST_NESTED:
        raise InvalidForm(f"values are nested more than {MOST_NESTED} deep")
    return many(data, depth + 1)


def text_of(string: str) -> str:
    """A string that Broker can hold: no half of a surrogate pair but those for octets that are not UTF-8."""
    if not string.isascii():
        try:
            octets_of(string)
        except InvalidValue as error:
            raise InvalidForm(str(error)) from error
    return string


def _real(data: Any) -> float:
    if type(data) is float:
        if data - data != 0.0:
            raise InvalidForm("a real that is larger than a double can be")
        return data
    if type(data) is str and data in _SPECIAL:
        return _SPECIAL[data]
    raise InvalidForm("a real that is not a number with a decimal point or an exponent")


def _count(data: int) -> Count:
    if not 0 <= data < 2**64:
        raise InvalidForm("a count that is out of the range of 64 bits")
    return Count(data)


def _integer(data: int) -> int:
    if not -(2**63) <= data < 2**63:
        raise InvalidForm("an integer that is out of the range of 64 bits")
    return data


def _vector(data: list[Any], depth: int) -> Value:
    return tuple([value_of(element, depth) for element in data])


def _set(data: list[Any], depth: int) -> Value:
    elements = [value_of(element, depth) for element in data]
    try:
        return Set(elements)
    except InvalidValue as error:
        raise DuplicateElement(str(error)) from error


def _table(data: list[Any], depth: int) -> Value:
    entries = []
    for entry in data:
        if type(entry) is not dict or "key" not in entry or "value" not in entry:
            raise InvalidForm("a table is an array of objects with key and value")
        entries.append((value_of(entry["key"], depth), value_of(entry["value"], depth)))
    try:
        return Table(entries)
    except InvalidValue as error:
        raise DuplicateElement(str(error)) from error


_SCALARS: dict[str, tuple[type, Callable[[Any], Any]]] = {
    "boolean": (bool, bool),
    "count": (int, _count),
    "integer": (int, _integer),
    "string": (str, text_of),
    "enum-value": (str, lambda data: Enum(text_of(data))),
    "address": (str, scalars.address_of),
    "subnet": (str, scalars.subnet_of),
    "port": (str, scalars.port_of),
    "timestamp": (str, scalars.timestamp_of),
    "timespan": (str, scalars.timespan_of),
}

_MANY: dict[str, Callable[[list[Any], int], Value]] = {"vector": _vector, "set": _set, "table": _table}
