"""Markers as Kafka writes them, and batches that are made those of an idempotent producer."""

from __future__ import annotations

import pytest
from kafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder

from dafka.protocol.batch import BatchError, check_batch, with_producer
from dafka.protocol.batch_control import commits, encode_marker
from dafka.protocol.batch_reader import decode_batch
from dafka.protocol.batch_writer import encode_batch


@pytest.mark.parametrize("commit", [True, False])
def test_a_marker_is_a_whole_batch_of_one_control_record(commit):
    marker = encode_marker(1234, 77, 5, commit=commit, coordinator_epoch=9)
    header = check_batch(marker)
    assert header.is_control and header.is_transactional
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (77, 5, -1)
    assert (header.count, header.max_timestamp) == (1, 1234)
    columns = decode_batch(marker)
    assert columns.keys == [b"\0\0\0\1" if commit else b"\0\0\0\0"]
    assert columns.values == [b"\0\0\0\0\0\x09"]
    assert commits(marker) is commit


@pytest.mark.parametrize("commit", [True, False])
def test_kafka_python_reads_a_marker(commit):
    theirs = DefaultRecordBatch(encode_marker(1234, 77, 5, commit=commit))
    assert theirs.validate_crc() and theirs.is_control_batch and theirs.is_transactional
    (record,) = theirs
    assert (record.commit, record.abort) == (commit, not commit)


def test_anything_but_a_marker_is_refused():
    with pytest.raises(BatchError):
        commits(encode_batch([(0, b"\0\0\0\7", b"", ())]))
    with pytest.raises(BatchError):
        commits(encode_batch([(0, None, b"", ())]))


@pytest.mark.parametrize("transactional", [True, False])
@pytest.mark.parametrize("compression", [None, "gzip"])
def test_a_batch_becomes_one_of_a_producer_and_keeps_its_records(transactional, compression):
    records = [(5, None, b"x" * 100, ()), (6, b"k", b"y" * 100, [("h", b"1")])]
    plain = encode_batch(records, compression=compression, base_offset=3)
    changed = with_producer(plain, 2**40, 3, 2**31 - 1, transactional=transactional)
    header = check_batch(changed)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (2**40, 3, 2**31 - 1)
    assert header.is_transactional is transactional and not header.is_control
    assert header.base_offset == 3 and header.compression == compression
    assert decode_batch(changed) == decode_batch(plain)
    assert with_producer(changed, -1, -1, -1) == plain


def test_a_producers_batch_is_what_kafka_python_writes():
    builder = DefaultRecordBatchBuilder(
        magic=2,
        compression_type=0,
        is_transactional=True,
        producer_id=7,
        producer_epoch=1,
        base_sequence=9,
        batch_size=1000,
    )
    builder.append(0, timestamp=5, key=b"k", value=b"v", headers=[])
    ours = with_producer(encode_batch([(5, b"k", b"v", ())]), 7, 1, 9, transactional=True)
    assert bytes(builder.build())[17:] == ours[17:]
