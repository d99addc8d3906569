"""Batches as Arrow columns: the same records that the reader of the protocol layer finds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dafka.protocol.batch import BatchError, with_producer
from dafka.protocol.batch_reader import decode_batch
from dafka.protocol.batch_writer import encode_batch
from dafka.spark.columns import read_columns

END = 1 << 62

octets = st.binary(max_size=200)
names = st.text(max_size=5)
headers = st.lists(st.tuples(names, st.none() | st.binary(max_size=5)), max_size=3)
stamps = st.integers(0, 1 << 41) | st.integers(1_700_000_000_000, 1_700_000_000_100)
one = st.tuples(stamps, st.none() | octets, st.none() | octets, headers)
# Long stretches of records of one shape, with others in between.
stretches = st.lists(st.tuples(one, st.integers(1, 90)), min_size=1, max_size=5).map(
    lambda parts: [record for record, times in parts for _ in range(times)]
)


def as_rows(batch, first=0, end=END):
    columns = read_columns(batch, first, end, with_headers=True)
    if columns is None:
        return []
    some = columns.headers or [None] * len(columns.offsets)
    return list(
        zip(
            columns.offsets.tolist(),
            columns.timestamps.tolist(),
            columns.keys.to_pylist(),
            columns.values.to_pylist(),
            [[] if headers is None else headers for headers in some],
            strict=True,
        )
    )


@given(stretches, st.sampled_from([None, "gzip"]), st.integers(0, 1 << 40), st.sampled_from([0, 1]))
def test_columns_hold_the_records_of_the_batch(records, compression, base, timestamp_type):
    batch = encode_batch(records, compression=compression, base_offset=base, timestamp_type=timestamp_type)
    assert as_rows(batch) == list(zip(*decode_batch(batch), strict=True))
    columns = read_columns(batch, 0, END)
    assert columns.timestamp_type == timestamp_type
    assert columns.headers is None


@given(stretches, st.integers(0, 500), st.integers(0, 500))
def test_only_the_offsets_asked_for_come(records, first, end):
    batch = encode_batch(records, base_offset=100)
    rows = zip(*decode_batch(batch), strict=True)
    assert as_rows(batch, first, end) == [row for row in rows if first <= row[0] < end]


def test_a_stretch_goes_on_where_offsets_and_lengths_take_another_octet():
    records = [(number, b"%04d" % number, bytes(100), ()) for number in range(9000)]
    batch = encode_batch(records)
    assert as_rows(batch) == list(zip(*decode_batch(batch), strict=True))


@given(stretches, st.data())
def test_damage_is_a_batch_error_or_goes_unnoticed_by_both_readers(records, data):
    batch = bytearray(encode_batch(records))
    place = data.draw(st.integers(61, len(batch) - 1))
    batch[place] ^= data.draw(st.integers(1, 255))
    damaged = with_producer(bytes(batch), -1, -1, -1)  # with a checksum that is right again
    try:
        expected = list(zip(*decode_batch(damaged), strict=True))
    except BatchError:
        expected = None
    try:
        found = as_rows(damaged)
    except BatchError:
        found = None
    if expected is not None and found is not None:
        assert found == expected


def test_a_wrong_checksum_is_a_batch_error():
    batch = bytearray(encode_batch([(0, None, b"x", ())] * 20))
    batch[-3] ^= 1
    with pytest.raises(BatchError, match="crc"):
        read_columns(bytes(batch), 0, END)
