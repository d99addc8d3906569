"""Values of the overlay as JSON that other programs read, and JSON as values.

Numbers, strings and booleans are themselves. Addresses, subnets, ports and enumerations are strings as Zeek
writes them; times and spans are seconds with a fraction, as in Zeek's JSON logs. Sets and vectors are
arrays, tables are objects where all their keys are strings, and otherwise arrays of ``{"key", "value"}``.
JSON has no numbers for NaN and the infinities; Spark and Java's parsers read the strings NaN, Infinity and
-Infinity as them. So types are lost: where that matters, the binary form is the one to choose.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

from dafka.overlay.errors import InvalidValue
from dafka.overlay.limits import MOST_NESTED
from dafka.overlay.values import Address, Count, Port, Set, Subnet, Table, Timespan, Timestamp, Value
from dafka.protocol.errors import TooDeepError
from dafka.protocol.json_text import check_depth, read_json

NANOSECONDS = 1_000_000_000
_ENCODER = json.JSONEncoder(
    ensure_ascii=False, separators=(",", ":"), allow_nan=False, check_circular=False
)  # json.dumps would make one for each value
_make = getattr(json.encoder, "c_make_encoder", None)  # which the encoder would call for each value, too
_encode: Callable[[Any, int], Iterable[str]] = (
    (lambda value, level: _ENCODER.iterencode(value))
    if _make is None
    else _make(None, _ENCODER.default, json.encoder.encode_basestring, None, ":", ",", False, False, False)
)
_DECODER = json.JSONDecoder()
_LARGEST_COUNT = 2**64 - 1
_LARGEST, _LEAST = 2**63 - 1, -(2**63)


def to_json(value: Value) -> Any:
    """A value in the form that :func:`json.dumps` writes."""
    form = _FORMS.get(type(value))  # the most frequent ones
    if form is not None:
        return form(value)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, (Timestamp, Timespan)):
        return int(value) / NANOSECONDS
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return real(value)
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, (Address, Subnet, Port)):
        return str(value)
    if isinstance(value, Table):
        if all(type(key) is str for key in value):
            return {clean(str(key)): to_json(one) for key, one in value.entries}
        return [{"key": to_json(key), "value": to_json(one)} for key, one in value.entries]
    if isinstance(value, (Set, tuple, list)):
        return [to_json(one) for one in value]
    raise InvalidValue(f"no data type of Zeek Broker: {type(value).__name__}")


def real(value: float) -> float | str:
    """A number, or the string for one that JSON does not have."""
    if math.isfinite(value):
        return value
    return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"


def clean(text: str) -> str:
    r"""A string that is Unicode: octets that are not stand as ``\xff``, as in Zeek's logs."""
    if type(text) is str and text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    return str(text)


def _array(values: tuple[Value, ...]) -> list[Any]:
    return [to_json(one) for one in values]


_FORMS: dict[type, Callable[[Any], Any]] = {str: clean, int: int, Count: int, float: real, tuple: _array}


def dumps(value: Any) -> bytes:
    """One line of JSON in UTF-8, without blanks."""
    return "".join(_encode(value, 0)).encode()


def from_json(parsed: Any, depth: int = 0) -> Value:
    """The value of what :func:`json.loads` has read: integers, reals, strings, vectors and tables.

    Raises :class:`InvalidValue` for numbers that no type can hold, and for too many levels.
    """
    if parsed is None or isinstance(parsed, (bool, float, str)):
        return parsed
    if isinstance(parsed, int):
        if _LEAST <= parsed <= _LARGEST:
            return parsed
        if 0 <= parsed <= _LARGEST_COUNT:
            return Count(parsed)
        raise InvalidValue(f"the number {parsed!s:.40} does not fit 64 bits")
    if depth >= MOST_NESTED:
        raise InvalidValue(f"JSON that is nested more than {MOST_NESTED} deep")
    if isinstance(parsed, dict):
        return Table([(key, from_json(one, depth + 1)) for key, one in parsed.items()])
    return tuple([from_json(one, depth + 1) for one in parsed])


class NotJson(InvalidValue):
    """It is another text than JSON."""


def loads(octets: bytes) -> Any:
    """The value of a text in JSON.

    Raises :class:`NotJson`, and :class:`InvalidValue` for JSON with too many levels, or numbers of too many
    digits.
    """
    try:
        with suppress(ValueError):
            text = octets.decode()
            check_depth(text)
            return _DECODER.decode(text)
        return read_json(octets)  # which knows other encodings, and says what is wrong
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise NotJson(f"no JSON: {error}") from error
    except TooDeepError as error:
        raise InvalidValue(f"JSON that is nested more than {MOST_NESTED} deep") from error
    except ValueError as error:
        raise InvalidValue(f"JSON with a number that does not fit 64 bits: {error}") from error
