"""Groups of Kafka Streams over TCP."""

from __future__ import annotations

from typing import Any

import pytest
from broker.clients import Client
from broker.server.client import WireClient
from broker.server.samples import STREAMS, streams_heartbeat
from kafka.errors import GroupIdNotFoundError, InvalidRequestError

from dafka.broker.codec.messages.streams_group import (
    StreamsGroupDescribeRequest,
    StreamsGroupHeartbeatRequest,
)
from dafka.broker.interface.admin import ConfigChange, ConfigOperation, Resource, ResourceType

Sub = StreamsGroupHeartbeatRequest.Topology.Subtopology


@pytest.fixture
def topic(client: Client) -> Client:
    client.create("t", 2)
    group = Resource(ResourceType.GROUP, STREAMS)
    change = ConfigChange("streams.initial.rebalance.delay.ms", ConfigOperation.SET, "0")
    assert client.call("alter_configs", {group: [change]})[group].error is None
    return client


def with_store(**fields: Any) -> Any:
    request = streams_heartbeat("t", **fields)
    (one,) = request.topology.subtopologies
    config = Sub.TopicInfo.KeyValue(key="cleanup.policy", value="compact")
    store = Sub.TopicInfo(name="c", partitions=0, replication_factor=1, topic_configs=[config])
    one.state_changelog_topics = [store]
    return request


def test_a_member_joins_and_is_described(wire: WireClient, topic: Client):
    endpoint = StreamsGroupHeartbeatRequest.Endpoint(host="h", port=80)
    tag = StreamsGroupHeartbeatRequest.KeyValue(key="zone", value="z")
    answer = wire.ask(with_store(user_endpoint=endpoint, client_tags=[tag]), 0)
    assert (answer.error_code, answer.member_id, answer.heartbeat_interval_ms) == (0, "sample", 5000)
    (tasks,) = answer.active_tasks
    assert (tasks.subtopology_id, tasks.partitions) == ("0", [0, 1]) and answer.standby_tasks == []
    (place,) = answer.partitions_by_user_endpoint
    assert (place.user_endpoint.host, place.user_endpoint.port) == ("h", 80)
    assert [(one.topic, one.partitions) for one in place.active_partitions] == [("t", [0, 1])]
    request = StreamsGroupDescribeRequest(group_ids=[STREAMS, "none"], include_authorized_operations=True)
    known, unknown = wire.ask(request, 0).groups
    (subtopology,) = known.topology.subtopologies
    (store,) = subtopology.state_changelog_topics
    assert (store.name, store.partitions) == ("c", 2)
    (member,) = known.members
    assert (member.process_id, member.user_endpoint.port, member.client_tags[0].value) == ("process", 80, "z")
    assert member.assignment.active_tasks[0].partitions == [0, 1] and known.authorized_operations
    assert unknown.error_code == GroupIdNotFoundError.errno


def test_a_copartition_group_of_other_topics_is_refused(wire: WireClient, topic: Client):
    request = with_store()
    (one,) = request.topology.subtopologies
    one.copartition_groups = [
        Sub.CopartitionGroup(source_topics=[3], source_topic_regex=[], repartition_source_topics=[])
    ]
    assert wire.ask(request, 0).error_code == InvalidRequestError.errno
