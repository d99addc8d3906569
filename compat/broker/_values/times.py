"""Spans and points of time, in nanoseconds of 64 bits."""

from __future__ import annotations

import time
from math import inf
from typing import overload

from compat.broker._values.valued import Comparable
from dafka.overlay import values

_MOST = 2**63 - 1
_NANOSECONDS = 10**9


def signed(number: int, what: str) -> int:
    """The number itself. Raises OverflowError for one of more than 64 bits."""
    if not -_MOST - 1 <= number <= _MOST:
        raise OverflowError(f"{what} has 64 bits, too few for {number}")
    return number


def nanoseconds(seconds: float) -> int:
    """Seconds as nanoseconds, without the fraction of one. Raises ValueError for NaN, OverflowError for
    infinity."""
    if seconds != seconds:
        raise ValueError(f"a time is a number of seconds, not {seconds}")
    if seconds in (inf, -inf):
        raise OverflowError(f"a time has 64 bits, too few for {seconds}")
    return int(seconds * float(_NANOSECONDS))


class Timespan(Comparable):
    """A span of nanoseconds (an int) or seconds (a float)."""

    __slots__ = ()
    _family = "Timespan"
    _value: values.Timespan

    def __init__(self, length: int | float = 0) -> None:
        if not isinstance(length, (int, float)):
            raise TypeError(f"a Timespan is made of an int or a float, not of {type(length).__name__}")
        count = int(length) if isinstance(length, int) else nanoseconds(length)
        self._value = values.Timespan(signed(count, "a Timespan"))

    def count(self) -> int:
        """Nanoseconds."""
        return int(self._value)

    def __add__(self, other: object) -> Timespan:
        return Timespan(self.count() + other.count()) if isinstance(other, Timespan) else NotImplemented

    def __sub__(self, other: object) -> Timespan:
        return Timespan(self.count() - other.count()) if isinstance(other, Timespan) else NotImplemented

    def __mul__(self, factor: object) -> Timespan:
        return Timespan(self.count() * factor) if isinstance(factor, int) else NotImplemented

    __rmul__ = __mul__

    @overload
    def __truediv__(self, divisor: Timespan) -> int: ...
    @overload
    def __truediv__(self, divisor: int) -> Timespan: ...
    def __truediv__(self, divisor: object) -> Timespan | int:
        """How often a span is in this one, or a part of this one; without the rest."""
        if isinstance(divisor, Timespan):
            return _quotient(self.count(), divisor.count())
        return Timespan(_quotient(self.count(), divisor)) if isinstance(divisor, int) else NotImplemented

    def __mod__(self, divisor: object) -> Timespan:
        """The rest of a division, which has the sign of this span."""
        by = divisor.count() if isinstance(divisor, Timespan) else divisor
        if not isinstance(by, int):
            return NotImplemented
        return Timespan(self.count() - by * _quotient(self.count(), by))

    def __repr__(self) -> str:
        return f"{self.count()}ns"


class Timestamp(Comparable):
    """A time: a :class:`Timespan` since 1970-01-01 UTC, or seconds."""

    __slots__ = ()
    _family = "Timestamp"
    _value: values.Timestamp

    def __init__(self, since: Timespan | float = 0) -> None:
        if isinstance(since, Timespan):
            count = since.count()
        elif isinstance(since, (int, float)):
            count = nanoseconds(since)
        else:
            raise TypeError(f"a Timestamp is made of a Timespan or a float, not of {type(since).__name__}")
        self._value = values.Timestamp(signed(count, "a Timestamp"))

    def time_since_epoch(self) -> Timespan:
        return Timespan(int(self._value))

    def __repr__(self) -> str:
        return str(int(self._value))


def now() -> Timestamp:
    """The time of day."""
    return Timestamp(Timespan(time.time_ns()))


def _quotient(dividend: int, divisor: int) -> int:
    """Rounded towards zero, as in C++."""
    quotient = abs(dividend) // abs(divisor)
    return quotient if (dividend < 0) == (divisor < 0) else -quotient
