"""Which partition a key goes to: the same as with kafka-python's partitioner."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st
from kafka.partitioner.default import murmur2 as reference

from dafka.spark.partitioning import by_key, murmur2

keys = st.lists(st.binary(max_size=40), min_size=1, max_size=50)


@given(keys)
def test_hashes_are_kafkas(some):
    assert [int(one) for one in murmur2(pa.array(some, pa.binary()))] == [
        reference(key) & 0xFFFFFFFF for key in some
    ]


@given(keys, st.integers(1, 20), st.integers(0, 3))
def test_partitions_are_kafkas(some, partitions, skipped):
    expected = [(reference(key) & 0x7FFFFFFF) % partitions for key in some]
    assert by_key(pa.array(some, pa.binary()), partitions).tolist() == expected
    part = pa.array(some, pa.binary())[skipped:]
    assert by_key(part, partitions).tolist() == expected[skipped:]


def test_a_missing_key_chooses_none():
    assert by_key(pa.array([None, b"a", None], pa.binary()), 1).tolist() == [-1, 0, -1]
    assert by_key(pa.array([None, None], pa.binary()), 3).tolist() == [-1, -1]
