"""Requests that Apache Kafka refuses as a whole because a part of them means nothing, and those of which it
looks at a part before the rest.

``scripts/odd_requests`` found these, which ``tests/clients/raw`` compares at random.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from broker.clients import Client, batch
from broker.server.client import WireClient
from broker.server.samples import produce
from kafka.protocol.admin import (
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DescribeGroupsRequest,
    DescribeTopicPartitionsRequest,
    IncrementalAlterConfigsRequest,
    ListGroupsRequest,
)
from kafka.protocol.consumer import (
    ListOffsetsRequest,
    OffsetCommitRequest,
    OffsetDeleteRequest,
    OffsetForLeaderEpochRequest,
)
from kafka.protocol.metadata import MetadataRequest
from kafka.protocol.producer import TxnOffsetCommitRequest

from dafka.broker.interface.broker import CommittedOffset

UNKNOWN, INVALID_REQUEST, NO_PARTITION, NO_TOPIC_ID = -1, 42, 3, 100
NO_ID, SOME_ID = UUID(int=0), UUID(int=5)


@pytest.fixture(autouse=True)
def _topics(client: Client) -> None:
    client.create("topic", 2)
    client.create("other")


@pytest.mark.parametrize(
    ("version", "topics", "brokers", "errors"),
    [
        (10, [(None, NO_ID), ("topic", NO_ID)], 0, [("", INVALID_REQUEST), ("topic", INVALID_REQUEST)]),
        (11, [(None, SOME_ID)], 0, [("", INVALID_REQUEST)]),
        (12, [("topic", NO_ID), (None, NO_ID)], 0, [("topic", UNKNOWN), ("", UNKNOWN)]),
        (13, [(None, NO_ID)], 0, [("", UNKNOWN)]),
        (12, [(None, NO_ID), (None, SOME_ID), ("topic", NO_ID)], 1, [(None, NO_TOPIC_ID)]),
        (12, [("topic", NO_ID)], 1, [("topic", 0)]),
    ],
)
def test_metadata_of_a_topic_with_neither_name_nor_id_refuses_all(
    wire: WireClient, version: int, topics: Any, brokers: int, errors: Any
) -> None:
    topic = MetadataRequest.MetadataRequestTopic
    request = MetadataRequest(
        topics=[topic(name=name, topic_id=topic_id) for name, topic_id in topics],
        allow_auto_topic_creation=False,
    )
    answer = wire.ask(request, version)
    assert [(one.name, one.error_code) for one in answer.topics] == errors
    assert len(answer.brokers) == brokers
    if version >= 13:
        assert answer.error_code == UNKNOWN


def test_partitions_of_a_topic_without_a_name_are_not_described_and_no_others(wire: WireClient) -> None:
    topic = DescribeTopicPartitionsRequest.TopicRequest
    asked = DescribeTopicPartitionsRequest(
        topics=[topic(name="topic"), topic(name="")], response_partition_limit=100, cursor=None
    )
    answer = wire.ask(asked, 0)
    assert [(one.name, one.error_code, one.partitions) for one in answer.topics] == [
        ("topic", UNKNOWN, []),
        ("", UNKNOWN, []),
    ]


def test_an_operation_that_there_is_not_changes_no_setting_of_the_request(
    wire: WireClient, client: Client
) -> None:
    resource = IncrementalAlterConfigsRequest.AlterConfigsResource

    def change(kind: int, name: str, operation: int, value: str | None = "5000") -> Any:
        config = resource.AlterableConfig(name="retention.ms", config_operation=operation, value=value)
        return resource(resource_type=kind, resource_name=name, configs=[config])

    def ask(*some: Any) -> list[int]:
        answer = wire.ask(IncrementalAlterConfigsRequest(resources=list(some), validate_only=False), 1)
        return [one.error_code for one in answer.responses]

    assert ask(change(2, "topic", 4), change(2, "other", 0)) == [UNKNOWN] * 2
    assert ask(change(2, "topic", 9), change(2, "missing", 0), change(2, "other", 0, None)) == [
        UNKNOWN,
        UNKNOWN,
        INVALID_REQUEST,
    ]
    assert (
        ask(change(4, "", 4), change(2, "", 0)) == [INVALID_REQUEST] * 2
    )  # the broker's are looked at first
    metadata = client.call("describe_configs", {(2, "other"): ["retention.ms"]})
    assert [one.entries[0].value for one in metadata.values()] == ["-1"]
    assert ask(change(2, "other", 0)) == [0]


def test_a_request_for_very_many_partitions_creates_nothing(wire: WireClient) -> None:
    topic = CreateTopicsRequest.CreatableTopic
    topics = [
        topic(name=name, num_partitions=count, replication_factor=1, assignments=[], configs=[])
        for name, count in (("topic", 2**31 - 1), ("new", 1))
    ]
    answer = wire.ask(CreateTopicsRequest(topics=topics, timeout_ms=1000, validate_only=False), 7)
    assert [(one.name, one.error_code) for one in answer.topics] == [("topic", 44), ("new", 44)]


def test_the_name_of_a_new_topic_is_looked_at_before_its_replicas(wire: WireClient) -> None:
    topic = CreateTopicsRequest.CreatableTopic(
        name="bad name!", num_partitions=1, replication_factor=2, assignments=[], configs=[]
    )
    answer = wire.ask(CreateTopicsRequest(topics=[topic], timeout_ms=1000, validate_only=True), 7)
    assert [one.error_code for one in answer.topics] == [17]


def test_a_topic_without_a_name_that_is_deleted_twice_is_named_twice(wire: WireClient) -> None:
    request = DeleteTopicsRequest(topics=[], topic_names=["", ""], timeout_ms=1000)
    assert [(one.name, one.error_code) for one in wire.ask(request, 5).responses] == [("", INVALID_REQUEST)]


def test_a_setting_of_a_topic_that_is_not_there_is_looked_at_first(wire: WireClient) -> None:
    resource = IncrementalAlterConfigsRequest.AlterConfigsResource

    def alter(value: str) -> int:
        config = resource.AlterableConfig(name="cleanup.policy", config_operation=0, value=value)
        asked = resource(resource_type=2, resource_name="missing", configs=[config])
        answer = wire.ask(IncrementalAlterConfigsRequest(resources=[asked], validate_only=False), 1)
        return int(answer.responses[0].error_code)

    assert (alter("1000"), alter("compact")) == (40, NO_PARTITION)


def test_a_setting_of_client_metrics_that_is_no_list_has_no_parts(wire: WireClient) -> None:
    resource = IncrementalAlterConfigsRequest.AlterConfigsResource

    def alter(kind: int, operation: int) -> int:
        config = resource.AlterableConfig(name="retention.ms", config_operation=operation, value="0")
        asked = resource(resource_type=kind, resource_name="topic", configs=[config])
        answer = wire.ask(IncrementalAlterConfigsRequest(resources=[asked], validate_only=True), 1)
        return int(answer.responses[0].error_code)

    assert [alter(16, operation) for operation in (0, 2, 3)] == [INVALID_REQUEST, 40, 40]
    assert [alter(2, operation) for operation in (0, 2, 3)] == [0, 40, 40]


def test_an_epoch_below_all_others_ends_where_the_first_one_begins(wire: WireClient, client: Client) -> None:
    client.call("produce", {("topic", 0): [batch(b"value")]})
    topic = OffsetForLeaderEpochRequest.OffsetForLeaderTopic

    def end(epoch: int) -> int:
        part = topic.OffsetForLeaderPartition(partition=0, current_leader_epoch=-1, leader_epoch=epoch)
        asked = OffsetForLeaderEpochRequest(replica_id=-1, topics=[topic(topic="topic", partitions=[part])])
        return int(wire.ask(asked, 4).topics[0].partitions[0].end_offset)

    assert (end(-1), end(-2)) == (-1, 0)


def test_remote_offsets_are_listed_in_the_epoch_of_the_leader(wire: WireClient) -> None:
    topic = ListOffsetsRequest.ListOffsetsTopic

    def listed(epoch: int) -> tuple[int, int]:
        one = topic.ListOffsetsPartition(partition_index=0, current_leader_epoch=epoch, timestamp=-5)
        asked = ListOffsetsRequest(
            replica_id=-1, isolation_level=0, topics=[topic(name="topic", partitions=[one])]
        )
        (found,) = wire.ask(asked, 11).topics[0].partitions
        return found.error_code, found.offset

    assert (listed(-1), listed(99)) == ((0, -1), (75, -1))


def test_a_request_with_something_that_cannot_be_records_writes_none(
    wire: WireClient, client: Client
) -> None:
    request = produce("topic", batch(b"value"))
    request.topic_data += produce("missing", b"no batch, but long enough to be looked at").topic_data
    answer = wire.ask(request, 9)
    assert [one.partition_responses[0].error_code for one in answer.responses] == [2, 2]
    assert client.values("topic") == []


COMMIT = OffsetCommitRequest.OffsetCommitRequestTopic


def committed(name: str, *numbers: int) -> Any:
    partition = COMMIT.OffsetCommitRequestPartition
    return COMMIT(
        name=name,
        partitions=[
            partition(
                partition_index=number,
                committed_offset=1,
                committed_leader_epoch=-1,
                commit_timestamp=-1,
                committed_metadata="",
            )
            for number in numbers
        ],
    )


def outcomes(topics: Any) -> list[tuple[str, list[tuple[int, int]]]]:
    return [
        (one.name, [(each.partition_index, each.error_code) for each in one.partitions]) for one in topics
    ]


def test_partitions_that_are_not_there_are_answered_first_and_by_topic(wire: WireClient) -> None:
    def commit(*topics: Any) -> Any:
        request = OffsetCommitRequest(
            group_id="g",
            generation_id_or_member_epoch=-1,
            member_id="",
            group_instance_id=None,
            retention_time_ms=-1,
            topics=list(topics),
        )
        return outcomes(wire.ask(request, 8).topics)

    assert commit(committed("topic", 0), committed("topic", 1)) == [
        ("topic", [(0, 0)]),
        ("topic", [(1, 0)]),
    ]
    assert commit(committed("other", 0), committed("topic", 0, 9), committed("topic", 9)) == [
        ("topic", [(9, NO_PARTITION), (9, NO_PARTITION), (0, 0)]),
        ("other", [(0, 0)]),
    ]


def test_a_group_with_offsets_alone_has_no_members_that_commit(wire: WireClient, client: Client) -> None:
    client.call("commit_offsets", "g", {("topic", 0): CommittedOffset(1)})
    for group, error in (("g", 25), ("none", 22)):
        request = OffsetCommitRequest(
            group_id=group,
            generation_id_or_member_epoch=0,
            member_id="nobody",
            group_instance_id=None,
            retention_time_ms=-1,
            topics=[committed("topic", 0)],
        )
        assert outcomes(wire.ask(request, 8).topics) == [("topic", [(0, error)])]


def test_an_unknown_producer_is_told_of_partitions_that_are_not_there(wire: WireClient) -> None:
    topic = TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic
    partition = topic.TxnOffsetCommitRequestPartition

    def commit(*names: str) -> Any:
        request = TxnOffsetCommitRequest(
            transactional_id="t",
            group_id="g",
            producer_id=99,
            producer_epoch=0,
            generation_id=-1,
            member_id="",
            group_instance_id=None,
            topics=[
                topic(
                    name=name,
                    partitions=[
                        partition(
                            partition_index=0,
                            committed_offset=1,
                            committed_leader_epoch=-1,
                            committed_metadata=None,
                        )
                    ],
                )
                for name in names
            ],
        )
        return outcomes(wire.ask(request, 5).topics)

    assert commit("..") == [("..", [(0, NO_PARTITION)])]
    missing, found = commit("topic", "..")
    assert missing == ("..", [(0, NO_PARTITION)]) and found[0] == "topic" and found[1][0][1] > NO_PARTITION


def test_a_group_whose_last_offset_was_deleted_is_known_for_some_minutes(
    wire: WireClient, client: Client
) -> None:
    client.call("commit_offsets", "g", {("topic", 0): CommittedOffset(1)})
    topic = OffsetDeleteRequest.OffsetDeleteRequestTopic
    partition = topic.OffsetDeleteRequestPartition
    request = OffsetDeleteRequest(
        group_id="g", topics=[topic(name="topic", partitions=[partition(partition_index=0)])]
    )
    for _ in range(2):
        assert outcomes(wire.ask(request, 0).topics) == [("topic", [(0, 0)])]
    assert [one.group_id for one in wire.ask(ListGroupsRequest(states_filter=[]), 4).groups] == ["g"]
    (group,) = wire.ask(DescribeGroupsRequest(groups=["g"]), 5).groups
    assert group.group_state == "Empty"
    assert client.call("delete_groups", ["g"]) == {"g": None}
    assert wire.ask(request, 0).error_code == 69
