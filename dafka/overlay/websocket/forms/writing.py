"""Values to JSON text.

The forms are libbroker's where those are JSON. Otherwise: control characters are escaped; a real number has
all its digits, and is ``"nan"``, ``"inf"`` or ``"-inf"`` where JSON has no number; an octet of a string
that is not UTF-8 is ``\\udc80`` to ``\\udcff``, as Python's surrogateescape has it, so that nothing is lost.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from json.encoder import encode_basestring
from typing import Any

from dafka.overlay.errors import InvalidValue
from dafka.overlay.limits import MOST_NESTED
from dafka.overlay.values.containers import Set, Table, is_vector, kind_of, octets_of
from dafka.overlay.values.types import Address, Count, Enum, Port, Subnet, Timespan, Timestamp
from dafka.overlay.websocket import limits
from dafka.overlay.websocket.forms.scalars import subnet_text, timespan_text, timestamp_text


class TooManyPieces(Exception):
    """A value with more pieces of text than are to be written at once."""


def written(value: Any, most: int | None = None) -> str:
    """The members ``"@data-type"`` and ``"data"`` of the object that stands for a value, without braces.

    Raises :class:`InvalidValue` for anything but a value, TooManyPieces for more than ``most``.
    """
    out: list[str] = []
    try:
        _write(value, out, 0, most)
    except InvalidValue:
        raise
    except (ValueError, OverflowError, IndexError) as error:
        raise InvalidValue(f"{value!r:.100} is out of the range of its type: {error}") from error
    return "".join(out)


def string(text: str | bytes) -> str:
    """A JSON string. It may hold lone surrogates, see :func:`octets`. Raises InvalidValue for others."""
    if isinstance(text, bytes):
        text = text.decode("utf-8", "surrogateescape")
    elif not text.isascii():
        octets_of(text)
    if len(text) <= limits.ESCAPED_AT_ONCE:
        return encode_basestring(text)
    # Escaping does not let go of the interpreter.
    step = limits.ESCAPED_AT_ONCE
    pieces = [encode_basestring(text[begin : begin + step])[1:-1] for begin in range(0, len(text), step)]
    return f'"{"".join(pieces)}"'


def octets(text: str) -> bytes:
    """JSON text in UTF-8, lone surrogates escaped. They can only be inside of strings."""
    return text.encode("utf-8", "backslashreplace")


def _write(value: Any, out: list[str], depth: int, most: int | None) -> None:
    form = _FORMS.get(type(value))
    if form is not None:
        out.append(form(value))
    else:
        _write_many(value, out, depth, most)


def _write_many(value: Any, out: list[str], depth: int, most: int | None) -> None:
    if depth >= MOST_NESTED:
        raise InvalidValue(f"values are nested more than {MOST_NESTED} deep")
    if isinstance(value, Table):
        _write_table(value, out, depth, most)
    elif isinstance(value, Set):
        _write_list("set", value, out, depth, most)
    elif is_vector(value):
        _write_list("vector", value, out, depth, most)
    elif isinstance(value, Mapping):
        _write_table(Table(value), out, depth, most)
    elif isinstance(value, AbstractSet):
        _write_list("set", Set(value), out, depth, most)
    else:
        out.append(_FORMS[kind_of(value, _FORMS)](value))


def _write_list(kind: str, elements: Any, out: list[str], depth: int, most: int | None) -> None:
    out.append(f'"@data-type":"{kind}","data":[')
    between = "{"
    for element in elements:
        out.append(between)
        _write(element, out, depth + 1, most)
        between = "},{"
        if most is not None and len(out) > most:
            raise TooManyPieces
    out.append("]" if between == "{" else "}]")


def _write_table(table: Table, out: list[str], depth: int, most: int | None) -> None:
    out.append('"@data-type":"table","data":[')
    between = '{"key":{'
    for key, value in table.entries:
        out.append(between)
        _write(key, out, depth + 1, most)
        out.append('},"value":{')
        _write(value, out, depth + 1, most)
        between = '}},{"key":{'
        if most is not None and len(out) > most:
            raise TooManyPieces
    out.append("}}]" if table else "]")


def _real(value: float) -> str:
    if value - value == 0.0:
        return f'"@data-type":"real","data":{float.__repr__(value)}'
    return f'"@data-type":"real","data":"{float.__repr__(value)}"'


def _within(value: int, least: int, beyond: int) -> int:
    number = int(value)
    if not least <= number < beyond:
        raise InvalidValue(f"{number} is out of the range of 64 bits")
    return number


_FORMS: dict[type, Callable[[Any], str]] = {
    type(None): lambda value: '"@data-type":"none","data":{}',
    bool: lambda value: f'"@data-type":"boolean","data":{"true" if value else "false"}',
    Count: lambda value: f'"@data-type":"count","data":{_within(value, 0, 2**64)}',
    int: lambda value: f'"@data-type":"integer","data":{_within(value, -(2**63), 2**63)}',
    float: _real,
    str: lambda value: f'"@data-type":"string","data":{string(value)}',
    bytes: lambda value: f'"@data-type":"string","data":{string(value)}',
    Address: lambda value: f'"@data-type":"address","data":"{value}"',
    Subnet: lambda value: f'"@data-type":"subnet","data":"{subnet_text(value)}"',
    Port: lambda value: f'"@data-type":"port","data":"{value}"',
    Timestamp: lambda value: f'"@data-type":"timestamp","data":"{timestamp_text(value)}"',
    Timespan: lambda value: f'"@data-type":"timespan","data":"{timespan_text(value)}"',
    Enum: lambda value: f'"@data-type":"enum-value","data":{string(str.__str__(value))}',
}
