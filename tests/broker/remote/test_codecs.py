"""Produce and fetch in octets, held against kafka-python's classes for every version used."""

from __future__ import annotations

import struct

import pytest
from kafka.errors import MessageSizeTooLargeError, OffsetOutOfRangeError, UnsupportedForMessageFormatError
from kafka.protocol.consumer import FetchRequest, FetchResponse
from kafka.protocol.producer import ProduceRequest, ProduceResponse

from dafka.broker.codec import fetch_response as fetch_codec
from dafka.broker.codec import produce as produce_codec
from dafka.broker.codec.errors import BadRequestError
from dafka.broker.interface.broker import Fetched, FetchFrom, Produced
from dafka.protocol.batch import with_offset
from dafka.protocol.batch_writer import encode_batch

BATCH = encode_batch([(1_700_000_000_000, b"k", b"v", ())])
PRODUCE_VERSIONS = range(produce_codec.LOWEST, produce_codec.HIGHEST + 1)
FETCH_VERSIONS = range(fetch_codec.LOWEST, fetch_codec.HIGHEST + 1)


@pytest.mark.parametrize("version", PRODUCE_VERSIONS)
def test_a_produce_request_reads_as_kafka_pythons(version):
    batches = {("a", 0): BATCH, ("b", 7): BATCH * 2, ("a", 1): BATCH * 3}
    body = b"".join(produce_codec.encode_produce(batches, version, -1, 1500, "tx"))
    request = ProduceRequest.decode(body, version=version)
    assert (request.transactional_id, request.acks, request.timeout_ms) == ("tx", -1, 1500)
    found = {
        (topic.name, one.index): bytes(one.records)
        for topic in request.topic_data
        for one in topic.partition_data
    }
    assert found == batches


@pytest.mark.parametrize("version", PRODUCE_VERSIONS)
def test_a_produce_response_of_kafka_pythons_is_read(version):
    topic_class = ProduceResponse.TopicProduceResponse
    partition_class = topic_class.PartitionProduceResponse
    error = partition_class.BatchIndexAndErrorMessage
    response = ProduceResponse(
        responses=[
            topic_class(
                name="a",
                partition_responses=[
                    partition_class(
                        index=3,
                        error_code=10,
                        base_offset=-1,
                        log_append_time_ms=-1,
                        log_start_offset=-1,
                        record_errors=[error(batch_index=0, batch_index_error_message="too large")],
                        error_message="a record is wrong",
                    ),
                    partition_class(
                        index=4,
                        error_code=0,
                        base_offset=2**40,
                        log_append_time_ms=12,
                        log_start_offset=5,
                        record_errors=[],
                        error_message=None,
                    ),
                ],
            )
        ],
        throttle_time_ms=0,
    )
    outcomes = produce_codec.decode_produce(memoryview(response.encode(version=version)), version)
    detail, wrong = ("a record is wrong", ((0, "too large"),)) if version >= 8 else ("", ())
    assert outcomes == {
        ("a", 3): Produced(MessageSizeTooLargeError, -1, -1, -1, detail, record_errors=wrong),
        ("a", 4): Produced(None, 2**40, 12, 5 if version >= 5 else -1),
    }


@pytest.mark.parametrize("version", FETCH_VERSIONS)
def test_a_fetch_request_reads_as_kafka_pythons(version):
    wanted = {("a", 0): FetchFrom(5, 100, 4, 3), ("b", 1): FetchFrom(2**40, 2**40), ("a", 2): FetchFrom(0, 7)}
    body = b"".join(fetch_codec.encode_fetch(wanted, version, 500, 1, 2**35, True))
    request = FetchRequest.decode(body, version=version)
    assert (request.max_wait_ms, request.min_bytes, request.max_bytes) == (500, 1, 2**31 - 1)
    assert (request.replica_id, request.isolation_level) == (-1, 1)
    if version >= 7:
        assert (request.session_id, request.session_epoch) == (0, -1)
    found = {
        (topic.topic, one.partition): (one.fetch_offset, one.partition_max_bytes)
        for topic in request.topics
        for one in topic.partitions
    }
    assert found == {("a", 0): (5, 100), ("a", 2): (0, 7), ("b", 1): (2**40, 2**31 - 1)}
    epochs = [
        (one.current_leader_epoch, one.last_fetched_epoch)
        for topic in request.topics
        for one in topic.partitions
    ]
    if version >= 12:
        assert epochs == [(4, 3), (-1, -1), (-1, -1)]


def test_where_the_log_diverges_is_read_from_a_fetch_response():
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
    _, found = fetch_codec.decode_fetch(memoryview(response.encode(version=12)), 12)
    assert [found["a", number].diverging for number in (0, 1)] == [None, (2, 11)]


@pytest.mark.parametrize("version", FETCH_VERSIONS)
def test_a_fetch_response_of_kafka_pythons_is_read(version):
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
    error, found = fetch_codec.decode_fetch(memoryview(response.encode(version=version)), version)
    start = 3 if version >= 5 else -1
    assert error is None
    assert found == {
        ("a", 0): Fetched(None, 20, start, batches, 15, [(9, 4)]),
        ("a", 1): Fetched(OffsetOutOfRangeError, 20, start, [], 15, []),
    }


def test_a_batch_that_is_cut_off_is_left_out():
    for cut in range(1, len(BATCH)):
        assert fetch_codec.cut_batches(memoryview(BATCH + BATCH[:cut])) == ([BATCH], True)


def test_records_older_than_magic_2_are_refused_by_name():
    old = bytearray(BATCH)
    old[16] = 1
    assert fetch_codec.cut_batches(memoryview(bytes(old))) == ([], False)
    assert fetch_codec.cut_batches(memoryview(BATCH + bytes(old))) == ([BATCH], True)
    response = _fetch_response(bytes(old))
    _, found = fetch_codec.decode_fetch(memoryview(response), 11)
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
def test_a_response_that_ends_too_early_is_an_error_and_no_loop(version):
    whole = _fetch_response(BATCH, version)
    end = len(whole) if version < fetch_codec.FLEXIBLE else len(whole) - 1  # the last tags say nothing
    for cut in range(end):
        with pytest.raises((ValueError, IndexError, BadRequestError, struct.error)):
            fetch_codec.decode_fetch(memoryview(whole[:cut]), version)
