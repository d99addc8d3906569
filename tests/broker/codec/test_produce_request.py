"""Produce requests compared with kafka-python's classes for every version that our client writes."""

from __future__ import annotations

import pytest
from kafka.protocol.producer import ProduceRequest

from dafka.broker.codec import produce_request as codec
from dafka.protocol.batch_writer import encode_batch

BATCH = encode_batch([(1_700_000_000_000, b"k", b"v", ())])
VERSIONS = range(codec.LOWEST, codec.HIGHEST + 1)


@pytest.mark.parametrize("version", VERSIONS)
def test_kafka_python_reads_a_produce_request(version):
    batches = {("a", 0): BATCH, ("b", 7): BATCH * 2, ("a", 1): BATCH * 3}
    body = b"".join(codec.encode_produce(batches, version, -1, 1500, "tx"))
    request = ProduceRequest.decode(body, version=version)
    assert (request.transactional_id, request.acks, request.timeout_ms) == ("tx", -1, 1500)
    found = {
        (topic.name, one.index): bytes(one.records)
        for topic in request.topic_data
        for one in topic.partition_data
    }
    assert found == batches
