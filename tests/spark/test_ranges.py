"""Ranges of offsets and how they are cut."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dafka.spark.errors import OptionError
from dafka.spark.ranges import RANGES_LIMIT, OffsetRange, split

ranges = st.lists(
    st.tuples(st.integers(0, 5), st.integers(0, 1000), st.integers(0, 300)),
    max_size=5,
    unique_by=lambda r: r[0],
).map(lambda some: [OffsetRange("t", number, start, start + size) for number, start, size in some])


def offsets(some):
    return sorted((one.partition, offset) for one in some for offset in range(one.start, one.end))


@given(ranges, st.none() | st.integers(1, 40), st.none() | st.integers(1, 50))
def test_pieces_are_the_whole_within_the_bounds(some, min_partitions, max_records):
    pieces = split(some, min_partitions, max_records)
    assert offsets(pieces) == offsets(some)
    assert all(piece.size for piece in pieces)
    if max_records is not None:
        assert all(piece.size <= max_records for piece in pieces)
    if min_partitions is not None:
        assert len(pieces) >= min(min_partitions, len(offsets(some)))


def test_a_large_range_is_cut_more_often_than_a_small_one():
    pieces = split([OffsetRange("t", 0, 0, 900), OffsetRange("t", 1, 0, 100)], min_partitions=10)
    assert [piece.partition for piece in pieces].count(0) == 9


def test_too_many_tasks_are_refused():
    with pytest.raises(OptionError, match="maxRecordsPerPartition=1"):
        split([OffsetRange("t", 0, 0, RANGES_LIMIT + 1)], max_records=1)
    with pytest.raises(OptionError, match="minPartitions"):
        split([OffsetRange("t", 0, 0, 10 * RANGES_LIMIT)], min_partitions=RANGES_LIMIT + 1)
