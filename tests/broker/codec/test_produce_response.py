"""Produce responses compared with kafka-python's classes for every version that our client reads."""

from __future__ import annotations

import pytest
from kafka.errors import MessageSizeTooLargeError
from kafka.protocol.producer import ProduceResponse

from dafka.broker.codec.produce_request import HIGHEST, LOWEST
from dafka.broker.codec.produce_response import decode_produce
from dafka.broker.interface.broker import Produced

VERSIONS = range(LOWEST, HIGHEST + 1)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_produce_response_of_kafka_python_is_read(version):
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
    outcomes = decode_produce(memoryview(response.encode(version=version)), version)
    detail, wrong = ("a record is wrong", ((0, "too large"),)) if version >= 8 else ("", ())
    assert outcomes == {
        ("a", 3): Produced(MessageSizeTooLargeError, (), -1, -1, detail, record_errors=wrong),
        ("a", 4): Produced(None, (2**40,), 12, 5 if version >= 5 else -1),
    }
