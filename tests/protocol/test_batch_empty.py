"""Batches without records, for offsets that hold nothing any more."""

from __future__ import annotations

import pytest
from kafka.record.default_records import DefaultRecordBatch

from dafka.protocol.batch import check_batch
from dafka.protocol.batch_empty import encode_empty
from dafka.protocol.batch_reader import decode_batch


def test_it_is_a_whole_batch_for_its_offsets_and_has_no_records():
    content = encode_empty(7, 12)
    header = check_batch(content)
    assert (header.base_offset, header.next_offset, header.count) == (7, 12, 0)
    assert (header.base_timestamp, header.max_timestamp) == (-1, -1)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (-1, -1, -1)
    assert not header.is_control and not header.is_transactional and header.compression is None
    assert decode_batch(content).values == []


def test_kafka_python_reads_it():
    theirs = DefaultRecordBatch(encode_empty(7, 12))
    assert theirs.validate_crc()
    assert (theirs.base_offset, theirs.next_offset, list(theirs)) == (7, 12, [])


def test_more_offsets_than_fit_one_batch_take_several():
    first = check_batch(encode_empty(5, 2**32))
    assert (first.base_offset, first.next_offset) == (5, 5 + 2**31)
    second = check_batch(encode_empty(first.next_offset, 2**32))
    assert second.next_offset == 2**32


@pytest.mark.parametrize(("first", "end"), [(3, 3), (4, 3), (-1, 3)])
def test_it_stands_for_at_least_one_offset(first, end):
    with pytest.raises(ValueError, match=f"not for {first} up to {end}"):
        encode_empty(first, end)
