"""What pushed filters leave to be read, and what is left for Spark."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from itertools import chain, combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st
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


# -- whatever the filters are, no row is lost and none is read that Spark does not look at again ------

EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
ROWS = [
    (offsets.topic, offsets.partition, offset, EPOCH + timedelta(milliseconds=offset * 7919 % 30))
    for offsets in RANGES
    for offset in range(offsets.start, offsets.end)
]
FIELDS = ("topic", "partition", "offset", "timestamp")
COMPARISONS = (EqualTo, EqualNullSafe, GreaterThan, GreaterThanOrEqual, LessThan, LessThanOrEqual)


def holds(one, row):
    """A filter as SQL has it: True, False, or None for unknown. No column of a row is null."""
    if isinstance(one, Not):
        child = holds(one.child, row)
        return None if child is None else not child
    mine = row[FIELDS.index(one.attribute[0])]
    if isinstance(one, (IsNull, IsNotNull)):
        return isinstance(one, IsNotNull)
    if isinstance(one, In):
        return True if mine in one.value else None if None in one.value else False
    if one.value is None:
        return False if isinstance(one, EqualNullSafe) else None
    return {
        EqualTo: lambda: mine == one.value,
        EqualNullSafe: lambda: mine == one.value,
        GreaterThan: lambda: mine > one.value,
        GreaterThanOrEqual: lambda: mine >= one.value,
        LessThan: lambda: mine < one.value,
        LessThanOrEqual: lambda: mine <= one.value,
        StringStartsWith: lambda: mine.startswith(one.value),
        StringEndsWith: lambda: mine.endswith(one.value),
        StringContains: lambda: one.value in mine,
    }[type(one)]()


def filters_on(field, values, *others):
    values = [*values, None]
    plain = [kind((field,), value) for kind in COMPARISONS + others for value in values]
    plain += [In((field,), some) for some in combinations(values, 2)]
    plain += [IsNull((field,)), IsNotNull((field,))]
    return [*plain, *map(Not, plain)]


FILTERS = [
    filters_on("topic", ["cat", "dog", "c", "", "g"], StringStartsWith, StringEndsWith, StringContains),
    filters_on("partition", [-1, 0, 1, 2]),
    filters_on("offset", [-1, 0, 4, 5, 7, 19, 20, 30]),
    filters_on("timestamp", [EPOCH + timedelta(microseconds=us) for us in (-1, 0, 7000, 7001, 18999, 19000)]),
]


def check(filters):
    pushed = Pushed()
    rest = pushed.take(filters)
    assert all(any(one is other for other in filters) for one in rest)
    ranges = pushed.apply(RANGES)
    oldest = None if pushed.min_timestamp is None else EPOCH + timedelta(milliseconds=pushed.min_timestamp)
    read = [
        row
        for row in ROWS
        if any(row[:2] == place[:2] and place.start <= row[2] < place.end for place in ranges)
        and (oldest is None or row[3] >= oldest)  # at most so much is passed over
    ]
    assert [row for row in read if all(holds(one, row) is True for one in rest)] == [
        row for row in ROWS if all(holds(one, row) is True for one in filters)
    ]


def test_pushed_filters_give_the_rows_that_spark_would_keep():
    for one in chain.from_iterable(FILTERS):
        check([one])


@given(st.lists(st.sampled_from(FILTERS).flatmap(st.sampled_from), min_size=2, max_size=4))
def test_and_what_filters_say_together(filters):
    check(filters)
