"""The shape of a table's rows, so that a folder from an untrusted source is refused at worst.

A checksum proves that a value is unchanged, not who wrote it. The owner of a table therefore declares which
keys and values it writes (:class:`RowShape`, for :meth:`dafka.log.Log.table`), and all others are damage.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

Check = Callable[[Any], object]
"""Whether a part of a value is what it should be: true if so."""

_NUMBERS = range(-(2**63), 2**63)


class RowShape(NamedTuple):
    """Whether a key can be one of the table's, and what is stored under such a key one of its values."""

    key: Callable[[str], object]
    value: Callable[[str, Any], object]


def rows(key: Callable[[str], object], value: Check) -> RowShape:
    """The shape of rows whose values look the same whatever their keys are."""
    return RowShape(key, lambda _, found: value(found))


def named_rows(**values: Check) -> RowShape:
    """The shape of a table with these keys only."""
    return RowShape(values.__contains__, lambda key, found: values[key](found))


def any_key(key: str) -> bool:
    """Every key."""
    return True


def number(value: Any) -> bool:
    """A whole number of 64 bits."""
    return type(value) is int and value in _NUMBERS


def natural(value: Any) -> bool:
    """The same from 0 on."""
    return type(value) is int and 0 <= value < 2**63


def seconds(value: Any) -> bool:
    """A number, with a fraction or without."""
    return type(value) in (int, float) and abs(value) < 2**63  # which NaN is not either


def text(value: Any) -> bool:
    """Text."""
    return type(value) is str


def flag(value: Any) -> bool:
    """True or False."""
    return type(value) is bool


def nothing(value: Any) -> bool:
    """None."""
    return value is None


def octets(size: Callable[[int], object]) -> Check:
    """Bytes, so many that ``size`` of their number is true."""
    return lambda value: type(value) is bytes and size(len(value))


def row_of(*checks: Check) -> Check:
    """A list of as many items as there are checks, each for its own."""
    return lambda value: (
        type(value) is list
        and len(value) == len(checks)
        and all(check(item) for check, item in zip(checks, value, strict=True))
    )


def list_of(check: Check) -> Check:
    """A list of any number of items."""
    return lambda value: type(value) is list and all(map(check, value))


def mapping_of(check: Check) -> Check:
    """Values by names of any kind."""
    return lambda value: type(value) is dict and all(map(check, value.values()))


def fields(required: Mapping[str, Check], optional: Mapping[str, Check] | None = None) -> Check:
    """Values by these names."""
    known = {**required, **(optional or {})}
    return lambda value: (
        type(value) is dict
        and required.keys() <= value.keys() <= known.keys()
        and all(known[name](item) for name, item in value.items())
    )


def either(*checks: Check) -> Check:
    """The shape that a check accepts."""
    return lambda value: any(check(value) for check in checks)
