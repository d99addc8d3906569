"""DescribeCluster and DescribeQuorum."""

from __future__ import annotations

import pytest
from broker.clients import Client
from broker.server.client import WireClient, answered
from kafka.errors import (
    MismatchedEndpointTypeError,
    UnknownTopicOrPartitionError,
    UnsupportedEndpointTypeError,
)
from kafka.protocol.admin import DescribeClusterRequest, DescribeQuorumRequest

Topic = DescribeQuorumRequest.TopicData
QUORUM = "__cluster_metadata"


@pytest.mark.parametrize(
    ("endpoints", "error", "words"),
    [
        (
            2,
            MismatchedEndpointTypeError,
            "endpoint of type BROKER, but we wanted an endpoint of type CONTROLLER",
        ),
        (0, UnsupportedEndpointTypeError, "Unsupported endpoint type 0"),
        (3, UnsupportedEndpointTypeError, "Unsupported endpoint type 3"),
    ],
)
def test_endpoints_of_another_type_are_refused_without_a_cluster(
    client: Client, endpoints: int, error: type[Exception], words: str
):
    request = DescribeClusterRequest(endpoint_type=endpoints, include_cluster_authorized_operations=True)
    response = answered(client, request)
    assert response.error_code == error.errno
    assert response.error_message.endswith(words)
    assert (response.cluster_id, response.controller_id, response.brokers) == ("", -1, [])


def asked(*topics: tuple[str, tuple[int, ...]]) -> DescribeQuorumRequest:
    partition = Topic.PartitionData
    return DescribeQuorumRequest(
        topics=[
            Topic(topic_name=name, partitions=[partition(partition_index=one) for one in numbers])
            for name, numbers in topics
        ]
    )


def test_the_quorum_is_one_voter(wire: WireClient):
    response = wire.ask(asked((QUORUM, (0,))), 2)
    ((found,),) = [one.partitions for one in response.topics]
    assert (found.error_code, [one.replica_id for one in found.current_voters]) == (0, [found.leader_id])
    assert [one.node_id for one in response.nodes] == [found.leader_id]


@pytest.mark.parametrize(
    "topics",
    [
        (("x", (0,)),),
        ((QUORUM, (1,)),),
        ((QUORUM, (0, 1)),),
        ((QUORUM, (0,)), (QUORUM, (0,))),
        ((QUORUM, (0,)), ("x", ())),
        ((QUORUM, ()),),
        (),
    ],
)
def test_other_quorums_and_several_at_once_are_unknown_as_in_kafka(wire: WireClient, topics):
    response = wire.ask(asked(*topics), 2)
    assert (response.error_code, response.nodes) == (0, [])
    found = [part for one in response.topics for part in one.partitions]
    assert len(found) == sum(len(numbers) for _, numbers in topics)
    assert {part.error_code for part in found} <= {UnknownTopicOrPartitionError.errno}
    assert not any(part.current_voters for part in found)
