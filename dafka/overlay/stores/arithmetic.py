"""Adding to a value and subtracting. Both raise :class:`TypeClash` and leave the value as it was."""

from __future__ import annotations

from collections.abc import Callable

from dafka.overlay.stores.errors import TypeClash
from dafka.overlay.values import Count, Set, Table, Timespan, Timestamp, Value, encode, types

_ZEROS: dict[int, Value] = {
    types.COUNT: Count(0),
    types.INTEGER: 0,
    types.REAL: 0.0,
    types.STRING: "",
    types.TIMESTAMP: Timestamp(0),
    types.TIMESPAN: Timespan(0),
    types.SET: Set(),
    types.TABLE: Table(),
    types.VECTOR: (),
}


def zero(tag: int) -> Value:
    """The value that the first addition begins with."""
    if tag not in _ZEROS:
        raise TypeClash(f"nothing can be added to a value with the tag {tag}")
    return _ZEROS[tag]


def add(value: Value, amount: Value) -> Value:
    """Numbers and timespans grow, strings and vectors get longer, sets and tables get an element.

    The amount for a table is a vector of the key and the value.
    """
    if isinstance(value, tuple) and type(value) is tuple:
        return (*value, amount)
    if isinstance(value, Set):
        return value if amount in value else Set([*value, amount])
    if isinstance(value, Table):
        if type(amount) is not tuple or len(amount) != 2:
            raise TypeClash("what is added to a table is a vector of key and value")
        key = encode(amount[0])
        return Table([*[entry for entry in value.entries if encode(entry[0]) != key], amount])
    if type(value) is str and isinstance(amount, str) and type(amount) is str:
        return value + amount
    return _calculate(value, amount, 1)


def subtract(value: Value, amount: Value) -> Value:
    """Numbers and timespans shrink, vectors lose the last element, sets and tables the one with this key."""
    if isinstance(value, tuple) and type(value) is tuple:
        return value[:-1]
    if isinstance(value, Set):
        return Set([element for element in value if encode(element) != encode(amount)])
    if isinstance(value, Table):
        return Table([entry for entry in value.entries if encode(entry[0]) != encode(amount)])
    return _calculate(value, amount, -1)


def _calculate(value: Value, amount: Value, sign: int) -> Value:
    kind = type(value)
    wanted = Timespan if kind is Timestamp else kind
    if kind not in _RESULTS or type(amount) is not wanted:
        raise TypeClash(f"{type(amount).__name__} cannot be added to {kind.__name__}, or taken from it")
    result = value + sign * amount  # type: ignore[operator]
    return _RESULTS[kind](result)


def _wrapped(number: int) -> int:
    """As 64-bit numbers are added: beyond the largest comes the smallest."""
    return (number + 2**63) % 2**64 - 2**63


_RESULTS: dict[type, Callable[..., Value]] = {
    Count: lambda number: Count(number % 2**64),
    int: lambda number: _wrapped(number),
    float: lambda number: number,
    Timestamp: lambda number: Timestamp(_wrapped(number)),
    Timespan: lambda number: Timespan(_wrapped(number)),
}
