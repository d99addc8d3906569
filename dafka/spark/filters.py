"""Filters that Spark pushes down, applied to the ranges that are read.

``topic`` and ``partition`` choose partitions, ``offset`` cuts ranges, ``timestamp`` moves their beginnings.
The first three are carried out here for good; timestamps of records need not ascend, so what is cut off by
them is only what is certainly too old, and Spark looks at the rest.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    IsNull,
    LessThan,
    LessThanOrEqual,
    Not,
    StringContains,
    StringEndsWith,
    StringStartsWith,
)

from dafka.spark.ranges import OffsetRange

_NEVER_NULL = ("topic", "partition", "offset", "timestamp", "timestampType")
_BINARY = (
    EqualTo,
    EqualNullSafe,
    GreaterThan,
    GreaterThanOrEqual,
    LessThan,
    LessThanOrEqual,
    In,
    StringStartsWith,
    StringEndsWith,
    StringContains,
)


class Pushed:
    """The conditions from the filters given to :meth:`take`. Picklable."""

    def __init__(self) -> None:
        self._choosing: list[Filter] = []
        self._nothing = False
        self._first: int | None = None
        self._end: int | None = None
        self.min_timestamp: int | None = None  # ms; earlier records are filtered out

    def take(self, filters: Iterable[Filter]) -> list[Filter]:
        """Take filters, all of which hold; those come back that Spark has to evaluate still."""
        return [one for one in filters if not self._take(one)]

    def apply(self, ranges: Iterable[OffsetRange]) -> list[OffsetRange]:
        """The ranges without what the filters exclude."""
        if self._nothing:
            return []
        kept = []
        for offsets in ranges:
            if all(_holds(one, offsets) for one in self._choosing):
                start = offsets.start if self._first is None else max(offsets.start, self._first)
                end = offsets.end if self._end is None else min(offsets.end, self._end)
                if start < end:
                    kept.append(offsets._replace(start=start, end=end))
        return kept

    def _take(self, one: Filter) -> bool:
        if isinstance(one, (IsNull, IsNotNull)):
            if len(one.attribute) != 1 or one.attribute[0] not in _NEVER_NULL:
                return False
            self._nothing |= isinstance(one, IsNull)
            return True
        inner = one.child if isinstance(one, Not) else one
        if not isinstance(inner, _BINARY) or len(inner.attribute) != 1 or inner.value is None:
            return False
        name = inner.attribute[0]
        if name in ("topic", "partition"):
            if isinstance(inner, In) and None in inner.value:
                return False
            self._choosing.append(one)
            return True
        if isinstance(one, Not):
            return False
        if name == "offset":
            return self._take_offset(one)
        if name == "timestamp" and isinstance(inner.value, datetime):
            self._take_timestamp(one)
        return False

    def _take_offset(self, one: Any) -> bool:
        if isinstance(one, (EqualTo, EqualNullSafe)):
            self._between(one.value, one.value + 1)
        elif isinstance(one, GreaterThan):
            self._between(one.value + 1, None)
        elif isinstance(one, GreaterThanOrEqual):
            self._between(one.value, None)
        elif isinstance(one, LessThan):
            self._between(None, one.value)
        elif isinstance(one, LessThanOrEqual):
            self._between(None, one.value + 1)
        else:
            numbers = [value for value in one.value if value is not None] if isinstance(one, In) else []
            if numbers:
                self._between(min(numbers), max(numbers) + 1)
            return False
        return True

    def _take_timestamp(self, one: Any) -> None:
        if isinstance(one, (EqualTo, EqualNullSafe, GreaterThan, GreaterThanOrEqual)):
            oldest = math.floor(one.value.timestamp() * 1000)
            if oldest >= 0:
                self.min_timestamp = max(oldest, self.min_timestamp or 0)

    def _between(self, first: int | None, end: int | None) -> None:
        if first is not None:
            self._first = first if self._first is None else max(self._first, first)
        if end is not None:
            self._end = end if self._end is None else min(self._end, end)


def _holds(one: Any, offsets: OffsetRange) -> bool:
    if isinstance(one, Not):
        return not _holds(one.child, offsets)
    mine: Any = offsets.topic if one.attribute[0] == "topic" else offsets.partition
    value = one.value
    if isinstance(one, (EqualTo, EqualNullSafe)):
        return bool(mine == value)
    if isinstance(one, In):
        return mine in value
    if isinstance(one, GreaterThan):
        return bool(mine > value)
    if isinstance(one, GreaterThanOrEqual):
        return bool(mine >= value)
    if isinstance(one, LessThan):
        return bool(mine < value)
    if isinstance(one, LessThanOrEqual):
        return bool(mine <= value)
    if isinstance(one, StringStartsWith):
        return str(mine).startswith(value)
    if isinstance(one, StringEndsWith):
        return str(mine).endswith(value)
    return value in str(mine)
