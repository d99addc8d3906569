"""What pushed filters leave to be read, and what is left for Spark."""

from __future__ import annotations

from datetime import datetime, timezone

import pytest
from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
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

from dafka.spark.filters import Pushed
from dafka.spark.ranges import OffsetRange

TOPIC, PARTITION, OFFSET, TIMESTAMP, VALUE = (
    (name,) for name in ("topic", "partition", "offset", "timestamp", "value")
)
RANGES = [OffsetRange("cat", 0, 0, 10), OffsetRange("cat", 1, 5, 20), OffsetRange("dog", 0, 0, 30)]


def left(*filters):
    """What is read, and the filters that Spark evaluates."""
    pushed = Pushed()
    rest = pushed.take(filters)
    return [tuple(one) for one in pushed.apply(RANGES)], rest


CAT_0, CAT_1, DOG = (tuple(one) for one in RANGES)


@pytest.mark.parametrize(
    ("one", "read"),
    [
        (EqualTo(TOPIC, "dog"), [DOG]),
        (EqualNullSafe(TOPIC, "dog"), [DOG]),
        (In(TOPIC, ("dog", "bird")), [DOG]),
        (Not(EqualTo(TOPIC, "dog")), [CAT_0, CAT_1]),
        (Not(In(TOPIC, ("dog",))), [CAT_0, CAT_1]),
        (StringStartsWith(TOPIC, "c"), [CAT_0, CAT_1]),
        (StringEndsWith(TOPIC, "g"), [DOG]),
        (StringContains(TOPIC, "a"), [CAT_0, CAT_1]),
        (GreaterThan(TOPIC, "cat"), [DOG]),
        (EqualTo(PARTITION, 1), [CAT_1]),
        (LessThan(PARTITION, 1), [CAT_0, DOG]),
        (LessThanOrEqual(PARTITION, 1), [CAT_0, CAT_1, DOG]),
        (GreaterThanOrEqual(PARTITION, 1), [CAT_1]),
        (EqualTo(OFFSET, 7), [("cat", 0, 7, 8), ("cat", 1, 7, 8), ("dog", 0, 7, 8)]),
        (GreaterThan(OFFSET, 15), [("cat", 1, 16, 20), ("dog", 0, 16, 30)]),
        (GreaterThanOrEqual(OFFSET, 15), [("cat", 1, 15, 20), ("dog", 0, 15, 30)]),
        (LessThan(OFFSET, 5), [("cat", 0, 0, 5), ("dog", 0, 0, 5)]),
        (LessThanOrEqual(OFFSET, 5), [("cat", 0, 0, 6), ("cat", 1, 5, 6), ("dog", 0, 0, 6)]),
        (IsNotNull(TOPIC), [CAT_0, CAT_1, DOG]),
        (IsNull(PARTITION), []),
    ],
)
def test_filters_that_are_carried_out_by_what_is_read(one, read):
    assert left(one) == (read, [])


@pytest.mark.parametrize(
    "one",
    [
        EqualTo(VALUE, b"x"),
        IsNull(VALUE),
        IsNotNull(("key",)),
        Not(EqualTo(OFFSET, 7)),
        EqualTo(TOPIC, None),
        In(TOPIC, ("dog", None)),
        EqualTo(("headers", "key"), "x"),
        LessThan(TIMESTAMP, datetime(2024, 1, 1, tzinfo=timezone.utc)),
    ],
)
def test_filters_that_are_left_to_spark(one):
    assert left(one) == ([CAT_0, CAT_1, DOG], [one])


def test_some_filters_shorten_what_is_read_and_are_evaluated_again():
    one = In(OFFSET, (8, 3, None))
    assert left(one) == ([("cat", 0, 3, 9), ("cat", 1, 5, 9), ("dog", 0, 3, 9)], [one])
    pushed = Pushed()
    new_year = GreaterThanOrEqual(TIMESTAMP, datetime(2024, 1, 1, tzinfo=timezone.utc))
    assert pushed.take([new_year]) == [new_year]
    assert pushed.min_timestamp == 1_704_067_200_000


def test_filters_hold_together():
    read, rest = left(
        EqualTo(TOPIC, "cat"), GreaterThan(OFFSET, 3), LessThan(OFFSET, 8), EqualTo(VALUE, b"x")
    )
    assert read == [("cat", 0, 4, 8), ("cat", 1, 5, 8)]
    assert rest == [EqualTo(VALUE, b"x")]
