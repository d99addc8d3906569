"""Fetch responses compared with kafka-python's classes for every version that our client reads."""

from __future__ import annotations

import struct

import pytest
from kafka.errors import OffsetOutOfRangeError, UnsupportedForMessageFormatError
from kafka.protocol.consumer import FetchResponse

from dafka.broker.codec.errors import BadRequestError
from dafka.broker.codec.fetch_request import FLEXIBLE, HIGHEST, LOWEST
from dafka.broker.codec.fetch_response import cut_batches, decode_fetch
from dafka.broker.interface.broker import Fetched
from dafka.protocol.batch import with_offset
from dafka.protocol.batch_writer import encode_batch

BATCH = encode_batch([(1_700_000_000_000, b"k", b"v", ())])
VERSIONS = range(LOWEST, HIGHEST + 1)


def test_the_diverging_epoch_is_read_from_the_tagged_fields():
    topic_class = FetchResponse.FetchableTopicResponse
    partition_class = topic_class.PartitionData
    partitions = [
        partition_class(
            partition_index=number,
            error_code=0,
            high_watermark=20,
            last_stable_offset=20,
            log_start_offset=0,
            aborted_transactions=None,
            preferred_read_replica=-1,
            records=None,
            diverging_epoch=partition_class.EpochEndOffset(epoch=2, end_offset=11) if number else None,
        )
        for number in (0, 1)
    ]
    response = FetchResponse(
        throttle_time_ms=0,
        error_code=0,
        session_id=0,
        responses=[topic_class(topic="a", partitions=partitions)],
    )
    _, found = decode_fetch(memoryview(response.encode(version=12)), 12)
    assert [found["a", number].diverging for number in (0, 1)] == [None, (2, 11)]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_fetch_response_of_kafka_python_is_read(version):
    topic_class = FetchResponse.FetchableTopicResponse
    partition_class = topic_class.PartitionData

    def partition(number, code, records, aborted):
        return partition_class(
            partition_index=number,
            error_code=code,
            high_watermark=20,
            last_stable_offset=15,
            log_start_offset=3,
            aborted_transactions=aborted,
            preferred_read_replica=-1,
            records=records,
        )

    aborted = [partition_class.AbortedTransaction(producer_id=9, first_offset=4)]
    batches = [with_offset(BATCH, 4), with_offset(BATCH, 5)]
    response = FetchResponse(
        throttle_time_ms=0,
        error_code=0,
        session_id=0,
        responses=[
            topic_class(
                topic="a",
                partitions=[partition(0, 0, b"".join(batches), aborted), partition(1, 1, None, None)],
            )
        ],
    )
    error, found = decode_fetch(memoryview(response.encode(version=version)), version)
    start = 3 if version >= 5 else -1
    assert error is None
    assert found == {
        ("a", 0): Fetched(None, 20, start, batches, 15, [(9, 4)]),
        ("a", 1): Fetched(OffsetOutOfRangeError, 20, start, [], 15, []),
    }


def test_a_truncated_last_batch_is_left_out():
    for cut in range(1, len(BATCH)):
        assert cut_batches(memoryview(BATCH + BATCH[:cut])) == ([BATCH], True)


def test_records_older_than_magic_2_are_refused():
    old = bytearray(BATCH)
    old[16] = 1
    assert cut_batches(memoryview(bytes(old))) == ([], False)
    assert cut_batches(memoryview(BATCH + bytes(old))) == ([BATCH], True)
    response = _fetch_response(bytes(old))
    _, found = decode_fetch(memoryview(response), 11)
    assert found["a", 0].error is UnsupportedForMessageFormatError


def _fetch_response(records: bytes, version: int = 11) -> bytes:
    topic_class = FetchResponse.FetchableTopicResponse
    partition = topic_class.PartitionData(
        partition_index=0,
        error_code=0,
        high_watermark=1,
        last_stable_offset=1,
        log_start_offset=0,
        aborted_transactions=None,
        preferred_read_replica=-1,
        records=records,
    )
    response = FetchResponse(
        throttle_time_ms=0,
        error_code=0,
        session_id=0,
        responses=[topic_class(topic="a", partitions=[partition])],
    )
    return response.encode(version=version)


@pytest.mark.parametrize("version", [11, 12])
def test_a_truncated_response_is_an_error(version):
    whole = _fetch_response(BATCH, version)
    end = len(whole) if version < FLEXIBLE else len(whole) - 1  # the last tags say nothing
    for cut in range(end):
        with pytest.raises((ValueError, IndexError, BadRequestError, struct.error)):
            decode_fetch(memoryview(whole[:cut]), version)
