"""Requests that name things twice, not at all, or wrongly are answered as by Apache Kafka.

``scripts/odd_requests`` found these, which ``tests/clients/raw`` compares at random.
"""

from __future__ import annotations

from typing import Any

import pytest
from broker.clients import Client, batch
from broker.server.client import WireClient
from broker.server.samples import fetch, produce
from kafka.protocol.admin import (
    AlterClientQuotasRequest,
    CreateAclsRequest,
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DescribeClusterRequest,
    DescribeConfigsRequest,
    DescribeGroupsRequest,
    DescribeProducersRequest,
    DescribeTransactionsRequest,
    ElectLeadersRequest,
    IncrementalAlterConfigsRequest,
)
from kafka.protocol.consumer import (
    ListOffsetsRequest,
    OffsetFetchRequest,
    OffsetForLeaderEpochRequest,
)
from kafka.protocol.producer import InitProducerIdRequest

from dafka.broker.server.answers.naming import REPEATED

INVALID_REQUEST = 42


@pytest.fixture(autouse=True)
def _topics(client: Client) -> None:
    client.create("topic", 2)
    client.create("other")


def creatable(name: str, partitions: int = 1, replicas: int = 1, **configs: str | None) -> Any:
    topic = CreateTopicsRequest.CreatableTopic
    settings = [topic.CreatableTopicConfig(name=key, value=value) for key, value in configs.items()]
    return topic(
        name=name, num_partitions=partitions, replication_factor=replicas, assignments=[], configs=settings
    )


def codes(items: Any) -> list[tuple[str, int]]:
    return [(one.name, one.error_code) for one in items]


def test_of_a_new_topic_its_existence_is_looked_at_first(wire: WireClient) -> None:
    asked = [creatable("topic", -7, 9), creatable("new", **{"retention.ms": None})]
    answer = wire.ask(CreateTopicsRequest(topics=asked, timeout_ms=1000, validate_only=False), 7)
    assert sorted(codes(answer.topics)) == [("new", 40), ("topic", 36)]


def test_topics_that_are_named_twice_are_neither_deleted_nor_extended(
    wire: WireClient, client: Client
) -> None:
    delete = DeleteTopicsRequest(topics=None, topic_names=["topic", "other", "topic"], timeout_ms=1000)
    assert codes(wire.ask(delete, 5).responses) == [("topic", INVALID_REQUEST), ("other", 0)]
    assert client.call("metadata", ["topic"]).topics["topic"].error is None
    grown = CreatePartitionsRequest.CreatePartitionsTopic(name="topic", count=9, assignments=None)
    asked = CreatePartitionsRequest(topics=[grown, grown], timeout_ms=1000, validate_only=False)
    assert codes(wire.ask(asked, 3).results) == [("topic", INVALID_REQUEST)]
    missing = CreatePartitionsRequest.CreatePartitionsTopic(name="..", count=9, assignments=None)
    asked = CreatePartitionsRequest(topics=[missing], timeout_ms=1000, validate_only=False)
    assert codes(wire.ask(asked, 3).results) == [("..", 3)]


def test_settings_of_a_resource_that_is_named_twice_stay(wire: WireClient) -> None:
    resource = IncrementalAlterConfigsRequest.AlterConfigsResource
    change = resource.AlterableConfig(name="retention.ms", config_operation=0, value="5")
    twice = [resource(resource_type=2, resource_name="topic", configs=[change])] * 2
    answer = wire.ask(IncrementalAlterConfigsRequest(resources=twice, validate_only=False), 1)
    assert [one.error_code for one in answer.responses] == [INVALID_REQUEST] * 2
    asked = DescribeConfigsRequest.DescribeConfigsResource
    topic = asked(resource_type=2, resource_name="topic", configuration_keys=["retention.ms"])
    answer = wire.ask(DescribeConfigsRequest(resources=[topic, topic]), 4)
    assert [(one.error_code, one.configs[0].value) for one in answer.results] == [(0, "-1")] * 2
    unknown = asked(resource_type=127, resource_name="topic", configuration_keys=None)
    answer = wire.ask(DescribeConfigsRequest(resources=[topic, unknown]), 4)
    assert [one.error_code for one in answer.results] == [INVALID_REQUEST] * 2


def test_what_is_named_very_often_is_answered_some_times(wire: WireClient) -> None:
    """A name of some octets may have an answer of kilobytes."""
    resource, group = (
        DescribeConfigsRequest.DescribeConfigsResource,
        OffsetFetchRequest.OffsetFetchRequestGroup,
    )
    every = resource(resource_type=2, resource_name="topic", configuration_keys=None)
    offsets = group(group_id="g", topics=None, member_id=None, member_epoch=-1)
    topic = DescribeProducersRequest.TopicRequest(name="topic", partition_indexes=[0] * 1000)
    groups = DescribeGroupsRequest(groups=["g"] * 1000, include_authorized_operations=False)
    transactions = DescribeTransactionsRequest(transactional_ids=["x"] * 1000)
    fetched = OffsetFetchRequest(groups=[offsets] * 1000, require_stable=False)
    answers = [
        wire.ask(DescribeConfigsRequest(resources=[every] * 1000), 4).results,
        wire.ask(groups, 5).groups,
        wire.ask(transactions, 0).transaction_states,
        wire.ask(fetched, 8).groups,
        wire.ask(DescribeProducersRequest(topics=[topic]), 0).topics[0].partitions,
    ]
    assert [len(answer) for answer in answers] == [1 + REPEATED] * 5


def test_offsets_are_listed_once_and_none_at_a_level_that_there_is_not(wire: WireClient) -> None:
    topic = ListOffsetsRequest.ListOffsetsTopic
    one = topic.ListOffsetsPartition(partition_index=0, current_leader_epoch=-1, timestamp=-1)

    def asked(level: int, *partitions: Any) -> list[tuple[int, int]]:
        request = ListOffsetsRequest(
            replica_id=-1, isolation_level=level, topics=[topic(name="topic", partitions=list(partitions))]
        )
        ((_, answered),) = [(each.name, each.partitions) for each in wire.ask(request, 6).topics]
        return [(each.partition_index, each.error_code) for each in answered]

    assert asked(0, one) == [(0, 0)]
    assert asked(0, one, one) == [(0, INVALID_REQUEST)]
    assert asked(2, one) == [(0, -1)]
    assert asked(0) == []


def test_ends_of_an_epoch_that_is_not_said_are_not_known(wire: WireClient) -> None:
    topic = OffsetForLeaderEpochRequest.OffsetForLeaderTopic
    part = topic.OffsetForLeaderPartition(partition=0, current_leader_epoch=-1, leader_epoch=-1)
    twice = [topic(topic="topic", partitions=[part])] * 2
    answer = wire.ask(OffsetForLeaderEpochRequest(replica_id=-1, topics=twice), 4)
    assert [one.partitions[0].end_offset for one in answer.topics] == [-1, -1]


def test_a_partition_that_is_fetched_twice_is_read_once(wire: WireClient) -> None:
    wire.ask(produce("topic", batch(b"value")), 9)
    request = fetch("topic", 0)
    request.topics[0].partitions *= 2
    request.topics[0].partitions[1].fetch_offset = 0
    (topic,) = wire.ask(request, 11).responses
    assert [(one.partition_index, one.error_code, bool(one.records)) for one in topic.partitions] == [
        (0, 0, True)
    ]


def test_what_is_described_twice_is_answered_twice(wire: WireClient) -> None:
    groups = DescribeGroupsRequest(groups=["g", "g"], include_authorized_operations=True)
    answered = wire.ask(groups, 6).groups
    assert [(one.group_id, one.error_code) for one in answered] == [("g", 69)] * 2
    assert all(not one.authorized_operations for one in answered)
    transactions = wire.ask(DescribeTransactionsRequest(transactional_ids=["t", "t"]), 0)
    assert [one.error_code for one in transactions.transaction_states] == [105] * 2
    topic = DescribeProducersRequest.TopicRequest
    asked = [topic(name="topic", partition_indexes=[0, 0]), topic(name="topic", partition_indexes=[])]
    found = wire.ask(DescribeProducersRequest(topics=asked), 0).topics
    assert [(one.name, len(one.partitions)) for one in found] == [("topic", 2), ("topic", 0)]
    illegal = wire.ask(DescribeProducersRequest(topics=[topic(name="..", partition_indexes=[0])]), 0)
    assert illegal.topics[0].partitions[0].error_code == 17
    offsets = OffsetFetchRequest.OffsetFetchRequestTopic
    asked = [offsets(name="topic", partition_indexes=[0, 0]), offsets(name="topic", partition_indexes=[])]
    found = wire.ask(OffsetFetchRequest(group_id="g", topics=asked, require_stable=False), 7).topics
    assert [(one.name, len(one.partitions)) for one in found] == [("topic", 2), ("topic", 0)]


def test_elections_of_everything_name_all_topics_and_of_an_unknown_kind_nothing(wire: WireClient) -> None:
    def elect(kind: int) -> Any:
        return wire.ask(ElectLeadersRequest(election_type=kind, topic_partitions=None, timeout_ms=1000), 2)

    results = elect(0).replica_election_results
    assert {one.topic: one.partition_result for one in results} == {"topic": [], "other": []}
    assert (elect(2).error_code, elect(2).replica_election_results) == (INVALID_REQUEST, [])


def test_half_an_identity_of_a_producer_is_refused(wire: WireClient) -> None:
    for producer, epoch in ((5, -1), (-1, 5)):
        request = InitProducerIdRequest(
            transactional_id=None, transaction_timeout_ms=1000, producer_id=producer, producer_epoch=epoch
        )
        assert wire.ask(request, 4).error_code == INVALID_REQUEST


def test_an_unknown_kind_of_brokers_is_refused_without_any(wire: WireClient) -> None:
    request = DescribeClusterRequest(include_cluster_authorized_operations=True, endpoint_type=7)
    answer = wire.ask(request, 2)
    assert (answer.error_code, answer.brokers, answer.authorized_operations) == (115, [], None)


def test_a_quota_that_is_altered_twice_is_answered_once(wire: WireClient) -> None:
    entry = AlterClientQuotasRequest.EntryData
    alice = [entry.EntityData(entity_type="user", entity_name="alice")]
    one = entry(entity=alice * 2, ops=[entry.OpData(key="producer_byte_rate", value=5.0, remove=False)])
    (answer,) = wire.ask(AlterClientQuotasRequest(entries=[one, one], validate_only=True), 1).entries
    assert (answer.error_code, len(answer.entity)) == (INVALID_REQUEST, 1)


def test_an_acl_of_no_kind_ends_the_connection(wire: WireClient) -> None:
    acl = CreateAclsRequest.AclCreation(
        resource_type=0,
        resource_name="topic",
        resource_pattern_type=3,
        principal="User:a",
        host="*",
        operation=3,
        permission_type=3,
    )
    wire.send(CreateAclsRequest(creations=[acl]), 3)
    assert wire.is_closed()
