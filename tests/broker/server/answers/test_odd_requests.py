"""Requests that name things twice, not at all, or wrongly are answered as by Apache Kafka.

``scripts/odd_requests`` found these, which ``tests/clients/raw`` compares at random.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from broker.clients import Client, batch
from broker.server.client import WireClient
from broker.server.samples import fetch, produce
from kafka.protocol.admin import (
    AlterClientQuotasRequest,
    AlterPartitionReassignmentsRequest,
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
    ListConfigResourcesRequest,
)
from kafka.protocol.consumer import (
    ListOffsetsRequest,
    OffsetDeleteRequest,
    OffsetFetchRequest,
    OffsetForLeaderEpochRequest,
)
from kafka.protocol.producer import AddPartitionsToTxnRequest, InitProducerIdRequest, TxnOffsetCommitRequest

from dafka.broker.codec.messages.consumer_group import ConsumerGroupDescribeRequest
from dafka.broker.codec.messages.share_group import ShareGroupDescribeRequest
from dafka.broker.codec.messages.streams_group import StreamsGroupDescribeRequest
from dafka.broker.interface.broker import CommittedOffset
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


def test_the_existence_of_a_new_topic_is_checked_first(wire: WireClient) -> None:
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


def test_a_name_repeated_very_often_is_answered_a_bounded_number_of_times(wire: WireClient) -> None:
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
        found = wire.ask(request, 6).topics
        return [(each.partition_index, each.error_code) for topic in found for each in topic.partitions]

    assert asked(0, one) == [(0, 0)]
    assert asked(0, one, one) == [(0, INVALID_REQUEST)]
    assert asked(2, one) == [(0, -1)]
    twice = [
        topic(name=name, partitions=some) for name, some in (("topic", [one]), ("topic", []), ("no", [one]))
    ]
    request = ListOffsetsRequest(replica_id=-1, isolation_level=0, topics=twice)
    assert [(each.name, len(each.partitions)) for each in wire.ask(request, 6).topics] == [
        ("topic", 1),
        ("no", 1),
    ]
    request.isolation_level = 2  # all of it is refused, as it was asked
    assert [each.name for each in wire.ask(request, 6).topics] == ["topic", "topic", "no"]


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


def test_an_unknown_partition_that_is_fetched_twice_is_answered_once(wire: WireClient) -> None:
    request = fetch("topic", 0)
    request.topics[0].topic_id = UUID(int=5)
    request.topics[0].partitions *= 2
    (topic,) = wire.ask(request, 13).responses
    assert [(one.partition_index, one.error_code) for one in topic.partitions] == [(0, 100)]


def test_nothing_is_fetched_at_a_level_that_there_is_not(wire: WireClient) -> None:
    wire.ask(produce("topic", batch(b"value")), 9)
    request = fetch("topic", 0)
    request.isolation_level = 2
    answer = wire.ask(request, 12)
    (partition,) = answer.responses[0].partitions
    assert (answer.error_code, partition.error_code, bool(partition.records)) == (-1, -1, False)
    request.topics *= 2
    answer = wire.ask(request, 12)
    assert [(one.topic, len(one.partitions)) for one in answer.responses] == [("topic", 1)] * 2
    request.topics = request.topics[:1]
    request.topics[0].topic = "missing"
    answer = wire.ask(request, 12)
    assert (answer.error_code, answer.responses[0].partitions[0].error_code) == (0, 3)


def test_a_fetch_at_no_level_loses_nothing_of_a_session(wire: WireClient) -> None:
    request = fetch("topic", 0)
    request.session_epoch = 0
    request.max_wait_ms = 0
    begun = wire.ask(request, 12)
    wire.ask(produce("topic", batch(b"value")), 9)
    request.session_id, request.session_epoch, request.topics = begun.session_id, 1, []
    request.isolation_level = 2
    assert wire.ask(request, 12).error_code == -1
    request.session_epoch, request.isolation_level = 2, 0
    (topic,) = wire.ask(request, 12).responses
    assert topic.partitions[0].records


def test_offsets_that_are_deleted_twice_are_answered_twice(wire: WireClient, client: Client) -> None:
    topic = OffsetDeleteRequest.OffsetDeleteRequestTopic
    one = topic(name="no", partitions=[topic.OffsetDeleteRequestPartition(partition_index=9)])
    client.call("commit_offsets", "g", {("topic", 0): CommittedOffset(1)})
    there = topic(name="topic", partitions=[topic.OffsetDeleteRequestPartition(partition_index=1)])

    def deleted(*topics: Any) -> list[tuple[str, list[tuple[int, int]]]]:
        found = wire.ask(OffsetDeleteRequest(group_id="g", topics=list(topics)), 0).topics
        return [(each.name, [(p.partition_index, p.error_code) for p in each.partitions]) for each in found]

    assert deleted(one, one) == [("no", [(9, 3)] * 2)]
    assert deleted(there, there) == [("topic", [(1, 0)])] * 2
    assert deleted(there, one, there) == [("no", [(9, 3)]), ("topic", [(1, 0)] * 2)]


def test_offsets_of_a_transaction_for_what_is_not_there_are_in_one_topic(wire: WireClient) -> None:
    topic = TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic

    def committed(number: int) -> list[list[int]]:
        partition = topic.TxnOffsetCommitRequestPartition(
            partition_index=number, committed_offset=1, committed_leader_epoch=-1, committed_metadata=None
        )
        request = TxnOffsetCommitRequest(
            transactional_id="t",
            group_id="g",
            producer_id=9,
            producer_epoch=0,
            generation_id=-1,
            member_id="",
            group_instance_id=None,
            topics=[topic(name="topic", partitions=[partition])] * 2,
        )
        return [[one.error_code for one in each.partitions] for each in wire.ask(request, 3).topics]

    assert committed(9) == [[3, 3]]
    assert committed(0) == [[49], [49]]


def test_a_topic_without_partitions_is_not_in_what_was_produced(wire: WireClient) -> None:
    request = produce("topic", batch(b"value"))
    request.topic_data[0].partition_data = []
    assert wire.ask(request, 9).responses == []


def test_a_partition_that_is_added_twice_is_answered_once_if_it_is_not_there(wire: WireClient) -> None:
    topic = AddPartitionsToTxnRequest.AddPartitionsToTxnTopic

    def added(number: int) -> list[tuple[int, int]]:
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id="t",
            v3_and_below_producer_id=9,
            v3_and_below_producer_epoch=0,
            v3_and_below_topics=[topic(name="topic", partitions=[number, number])],
        )
        (found,) = wire.ask(request, 3).results_by_topic_v3_and_below
        return [(one.partition_index, one.partition_error_code) for one in found.results_by_partition]

    assert added(9) == [(9, 3)]
    assert added(1) == [(1, 49)] * 2


def test_a_topic_is_deleted_by_its_name_or_its_id(wire: WireClient, client: Client) -> None:
    state = DeleteTopicsRequest.DeleteTopicState
    both = state(name="topic", topic_id=UUID(int=9))
    neither = state(name=None, topic_id=UUID(int=0))
    request = DeleteTopicsRequest(topics=[both, both, neither], topic_names=[], timeout_ms=1000)
    found = wire.ask(request, 6).responses
    assert [(one.name, one.error_code) for one in found] == [("topic", 42), ("topic", 42), (None, 42)]
    assert client.call("metadata", ["topic"]).topics["topic"].error is None


def test_a_transaction_without_a_name_is_not_described(wire: WireClient) -> None:
    (one,) = wire.ask(DescribeTransactionsRequest(transactional_ids=[""]), 0).transaction_states
    assert one.error_code == INVALID_REQUEST


def test_more_partitions_than_a_topic_may_have_are_against_a_policy(wire: WireClient) -> None:
    asked = [creatable("new", 2**31 - 1)]
    answer = wire.ask(CreateTopicsRequest(topics=asked, timeout_ms=1000, validate_only=False), 7)
    assert codes(answer.topics) == [("new", 44)]


def test_settings_of_a_new_topic_are_checked_before_replicas(wire: WireClient) -> None:
    asked = [creatable("new", 1, -2, **{"retention.ms": "abc"})]
    answer = wire.ask(CreateTopicsRequest(topics=asked, timeout_ms=1000, validate_only=False), 7)
    assert codes(answer.topics) == [("new", 40)]


def test_a_reassignment_answer_repeats_whether_the_replication_factor_may_change(wire: WireClient) -> None:
    topic = AlterPartitionReassignmentsRequest.ReassignableTopic(name="topic", partitions=[])
    for may, topics in ((True, [topic]), (False, [topic]), (False, [])):
        request = AlterPartitionReassignmentsRequest(
            timeout_ms=1000, allow_replication_factor_change=may, topics=topics
        )
        assert wire.ask(request, 1).allow_replication_factor_change is (may or not topics)


def test_loggers_are_listed_and_have_levels(wire: WireClient) -> None:
    listed = wire.ask(ListConfigResourcesRequest(resource_types=[]), 1).config_resources
    (name,) = [one.resource_name for one in listed if one.resource_type == 8]
    asked = DescribeConfigsRequest.DescribeConfigsResource(
        resource_type=8, resource_name=name, configuration_keys=["root"]
    )
    (found,) = wire.ask(DescribeConfigsRequest(resources=[asked]), 4).results
    (level,) = found.configs
    assert (found.error_code, level.name, level.config_source, level.read_only) == (0, "root", 6, False)


def test_settings_changed_twice_in_a_request_are_checked_first(wire: WireClient) -> None:
    resource = IncrementalAlterConfigsRequest.AlterConfigsResource
    change = resource.AlterableConfig(name="retention.ms", config_operation=0, value="5")
    asked = resource(resource_type=2, resource_name="..", configs=[change, change])
    answer = wire.ask(IncrementalAlterConfigsRequest(resources=[asked], validate_only=False), 1)
    assert [one.error_code for one in answer.responses] == [INVALID_REQUEST]


def test_nothing_may_be_done_with_a_group_that_cannot_be_described(wire: WireClient) -> None:
    kinds = (
        (ConsumerGroupDescribeRequest, 1),
        (ShareGroupDescribeRequest, 1),
        (StreamsGroupDescribeRequest, 0),
    )
    for kind, version in kinds:
        (found,) = wire.ask(kind(group_ids=["none"], include_authorized_operations=True), version).groups
        assert (found.error_code, found.authorized_operations) == (69, None)


def test_a_group_of_a_newer_type_that_is_described_twice_is_answered_twice(wire: WireClient) -> None:
    for kind in (ConsumerGroupDescribeRequest, ShareGroupDescribeRequest, StreamsGroupDescribeRequest):
        asked = kind(group_ids=["g", "h", "g"], include_authorized_operations=False)
        version = 0 if kind is StreamsGroupDescribeRequest else 1
        assert [one.group_id for one in wire.ask(asked, version).groups] == ["g", "h", "g"]
        asked.group_ids = ["g"] * 1000
        assert len(wire.ask(asked, version).groups) == 1 + REPEATED


def test_a_name_described_twice_is_answered_twice(wire: WireClient) -> None:
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
    nothing = ElectLeadersRequest(election_type=-1, topic_partitions=[], timeout_ms=1000)
    assert wire.ask(nothing, 2).error_code == 0  # there is nothing to be elected


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
