"""Fetch requests compared with kafka-python's classes for every version that our client writes."""

from __future__ import annotations

import pytest
from kafka.protocol.consumer import FetchRequest

from dafka.broker.codec import fetch_request as codec
from dafka.broker.interface.broker import FetchFrom

VERSIONS = range(codec.LOWEST, codec.HIGHEST + 1)


@pytest.mark.parametrize("version", VERSIONS)
def test_kafka_python_reads_a_fetch_request(version):
    wanted = {("a", 0): FetchFrom(5, 100, 4, 3), ("b", 1): FetchFrom(2**40, 2**40), ("a", 2): FetchFrom(0, 7)}
    body = b"".join(codec.encode_fetch(wanted, version, 500, 1, 2**35, True))
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
