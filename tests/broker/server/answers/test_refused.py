"""Responses to requests that are refused as a whole: all that was asked for has the error."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from broker.server.client import decoded
from broker.server.samples import samples
from kafka.errors import IllegalSaslStateError
from kafka.protocol.admin import CreateTopicsRequest, DeleteGroupsRequest, DescribeConfigsRequest
from kafka.protocol.metadata import MetadataRequest
from kafka.protocol.producer import ProduceRequest, WriteTxnMarkersRequest
from kafka.protocol.sasl import SaslAuthenticateRequest

from dafka.broker.codec.encoding import encoded
from dafka.broker.codec.framing import framed
from dafka.broker.server.answers.refused import error_response
from dafka.broker.server.table import BY_KEY

TOPIC_ID = uuid.uuid4()
SAMPLES = {type(one).__name__[:-7]: one for one in samples("t", TOPIC_ID, "g")}
BY_NAME = {api.name: api for api in BY_KEY.values()}
CODE = IllegalSaslStateError.errno


def refused(request: Any, version: int) -> Any:
    """The response as a client reads it."""
    api = BY_NAME[type(request).__name__[:-7]]
    response = error_response(api, request, version, IllegalSaslStateError)
    flexible = response.flexible_version_q(version) and api.name != "ApiVersions"
    frame = b"".join(framed(1, flexible, [encoded(response, version)]))[4:]
    return decoded(request, f"{api.name}Response", version, frame, 1)


def codes(part: Any) -> list[int]:
    if isinstance(part, dict):
        here = [value for name, value in part.items() if name in ("error_code", "partition_error_code")]
        return here + [code for value in part.values() for code in codes(value)]
    return [code for one in part for code in codes(one)] if isinstance(part, list) else []


@pytest.mark.parametrize("name", sorted(SAMPLES))
def test_every_version_of_every_api_has_the_error_and_nothing_else(name: str) -> None:
    for version in range(BY_NAME[name].first, BY_NAME[name].last + 1):
        found = codes(refused(SAMPLES[name], version).to_dict())
        assert CODE in found, version
        assert set(found) <= {CODE, 0}, version


def test_items_are_those_that_were_asked_for() -> None:
    data = ProduceRequest.TopicProduceData
    topics = [
        data(name=name, partition_data=[data.PartitionProduceData(index=one, records=b"") for one in numbers])
        for name, numbers in (("a", (0, 3)), ("b", (1,)))
    ]
    produced = refused(
        ProduceRequest(transactional_id=None, acks=1, timeout_ms=1, topic_data=topics), 9
    ).responses
    assert [
        (topic.name, [(one.index, one.error_code) for one in topic.partition_responses]) for topic in produced
    ] == [("a", [(0, CODE), (3, CODE)]), ("b", [(1, CODE)])]
    groups = refused(DeleteGroupsRequest(groups_names=["x", "y"]), 2).results
    assert [(one.group_id, one.error_code) for one in groups] == [("x", CODE), ("y", CODE)]
    topic = MetadataRequest.MetadataRequestTopic(name="a", topic_id=TOPIC_ID)
    metadata = refused(MetadataRequest(topics=[topic]), 12)
    assert [(one.name, one.error_code) for one in metadata.topics] == [("a", CODE)]
    assert refused(MetadataRequest(topics=None), 1).topics == []
    resource = DescribeConfigsRequest.DescribeConfigsResource(resource_type=2, resource_name="a")
    (config,) = refused(DescribeConfigsRequest(resources=[resource]), 4).results
    assert (config.resource_type, config.resource_name, config.error_code) == (2, "a", CODE)
    kind = WriteTxnMarkersRequest.WritableTxnMarker
    marker = kind(
        producer_id=7,
        producer_epoch=0,
        transaction_result=True,
        topics=[kind.WritableTxnMarkerTopic(name="a", partition_indexes=[4])],
        coordinator_epoch=0,
    )
    (marked,) = refused(WriteTxnMarkersRequest(markers=[marker]), 1).markers
    (topic,) = marked.topics
    assert (marked.producer_id, topic.name, topic.partitions[0].partition_index) == (7, "a", 4)


def test_one_error_for_the_whole_request_is_all_that_is_told() -> None:
    response = refused(SaslAuthenticateRequest(auth_bytes=b"\0alice\0secret"), 2)
    assert (response.error_code, response.auth_bytes) == (CODE, b"")
    created = CreateTopicsRequest.CreatableTopic(
        name="a", num_partitions=1, replication_factor=1, assignments=[], configs=[]
    )
    (one,) = refused(CreateTopicsRequest(topics=[created], timeout_ms=1, validate_only=False), 7).topics
    assert (one.name, one.error_code, one.topic_config_error_code) == ("a", CODE, 0)
