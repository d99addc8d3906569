"""Replicas: the election of leaders."""

from __future__ import annotations

from broker.clients import Client
from broker.server.client import answered
from kafka.errors import (
    ElectionNotNeededError,
    UnknownTopicOrPartitionError,
)
from kafka.protocol.admin import (
    ElectLeadersRequest,
)


def test_no_election_is_needed(client: Client):
    client.create("topic")
    topics = [ElectLeadersRequest.TopicPartitions(topic="topic", partitions=[0, 1])]
    (result,) = answered(client, ElectLeadersRequest(topic_partitions=topics)).replica_election_results
    assert [one.error_code for one in result.partition_result] == [
        ElectionNotNeededError.errno,
        UnknownTopicOrPartitionError.errno,
    ]
