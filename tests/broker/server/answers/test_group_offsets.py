"""Committed offsets of groups: OffsetCommit, OffsetFetch and OffsetDelete."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

from broker.clients import Client
from broker.server.client import answered
from kafka.errors import (
    GroupIdNotFoundError,
    IllegalGenerationError,
    InvalidGroupIdError,
    UnknownTopicIdError,
    UnknownTopicOrPartitionError,
    UnstableOffsetCommitError,
)
from kafka.protocol.consumer import (
    OffsetCommitRequest,
    OffsetDeleteRequest,
    OffsetFetchRequest,
)

from dafka.broker.groups.offsets import GroupOffsets
from dafka.broker.interface.broker import CommittedOffset
from dafka.broker.interface.share import ShareHeartbeat


def test_offsets_are_committed_and_fetched_by_topic_id(client: Client):
    client.create("topic")
    topic_id, missing = client.call("metadata", ["topic"]).topics["topic"].topic_id, uuid4()
    topic = OffsetCommitRequest.OffsetCommitRequestTopic
    part = topic.OffsetCommitRequestPartition(partition_index=0, committed_offset=5, committed_metadata=None)
    topics = [topic(topic_id=one, partitions=[part]) for one in (topic_id, missing)]
    request = OffsetCommitRequest(group_id="group", generation_id_or_member_epoch=-1, topics=topics)
    codes = {one.topic_id: one.partitions[0].error_code for one in answered(client, request).topics}
    assert codes == {topic_id: 0, missing: UnknownTopicIdError.errno}

    group = OffsetFetchRequest.OffsetFetchRequestGroup
    wanted = [
        group.OffsetFetchRequestTopics(topic_id=one, partition_indexes=[0]) for one in (topic_id, missing)
    ]
    (found,) = answered(client, OffsetFetchRequest(groups=[group(group_id="group", topics=wanted)])).groups
    positions = {one.topic_id: one.partitions[0] for one in found.topics}
    assert positions[topic_id].committed_offset == 5
    assert positions[missing].error_code == UnknownTopicIdError.errno
    (all_of_them,) = answered(
        client, OffsetFetchRequest(groups=[group(group_id="group", topics=None)])
    ).groups
    assert [one.topic_id for one in all_of_them.topics] == [topic_id]


def test_offsets_of_several_groups_are_fetched_at_once(client: Client):
    client.create("topic")
    for name, offset in (("one", 1), ("two", 2)):
        client.call("commit_offsets", name, {("topic", 0): CommittedOffset(offset)})
    group = OffsetFetchRequest.OffsetFetchRequestGroup
    request = OffsetFetchRequest(
        groups=[group(group_id=name, topics=None) for name in ("one", "two", "none")]
    )
    found = {
        one.group_id: [part.committed_offset for topic in one.topics for part in topic.partitions]
        for one in answered(client, request, 9).groups
    }
    assert found == {"one": [1], "two": [2], "none": []}


def test_an_offset_that_an_open_transaction_commits_is_unstable(client: Client):
    client.create("topic", 2)
    client.call("commit_offsets", "group", {("topic", number): CommittedOffset(1) for number in (0, 1)})
    producer = client.call("init_producer_id", "payments", 60.0)
    who = ("payments", producer.producer_id, producer.epoch)
    assert client.call("add_offsets_to_transaction", *who, "group") is None
    offsets = {("topic", 1): CommittedOffset(9)}
    assert client.call("commit_transaction_offsets", *who, "group", offsets) == {("topic", 1): None}
    topic = OffsetFetchRequest.OffsetFetchRequestTopic
    for topics in ([topic(name="topic", partition_indexes=[0, 1])], None):
        request = OffsetFetchRequest(group_id="group", topics=topics, require_stable=True)
        (found,) = answered(client, request, 7).topics
        assert {one.partition_index: (one.error_code, one.committed_offset) for one in found.partitions} == {
            0: (0, 1),
            1: (UnstableOffsetCommitError.errno, -1),
        }
    assert client.call("end_transaction", *who, True) is None
    (found,) = answered(client, request, 7).topics
    assert {one.partition_index: one.committed_offset for one in found.partitions} == {0: 1, 1: 9}


def test_stable_offsets_of_very_many_partitions_are_not_asked_for_one_by_one(
    client: Client, monkeypatch: Any
):
    client.create("topic", 9)
    offsets = {("topic", number): CommittedOffset(1) for number in range(9)}
    client.call("commit_offsets", "group", offsets)
    producer = client.call("init_producer_id", "payments", 60.0)
    who = ("payments", producer.producer_id, producer.epoch)
    assert client.call("add_offsets_to_transaction", *who, "group") is None
    assert set(client.call("commit_transaction_offsets", *who, "group", offsets).values()) == {None}
    calls = []
    fetch = GroupOffsets.fetch
    monkeypatch.setattr(GroupOffsets, "fetch", lambda *asked: calls.append(1) or fetch(*asked))
    request = OffsetFetchRequest(group_id="group", topics=None, require_stable=True)
    (found,) = answered(client, request, 7).topics
    assert {one.error_code for one in found.partitions} == {UnstableOffsetCommitError.errno}
    assert (len(found.partitions), len(calls)) == (9, 1)


def test_an_offset_is_stable_while_a_transaction_commits_the_first_one_of_another_partition(client: Client):
    client.create("topic", 2)
    client.call("commit_offsets", "group", {("topic", 0): CommittedOffset(1)})
    producer = client.call("init_producer_id", "payments", 60.0)
    who = ("payments", producer.producer_id, producer.epoch)
    assert client.call("add_offsets_to_transaction", *who, "group") is None
    offsets = {("topic", 1): CommittedOffset(9)}
    assert client.call("commit_transaction_offsets", *who, "group", offsets) == {("topic", 1): None}
    request = OffsetFetchRequest(group_id="group", topics=None, require_stable=True)
    (found,) = answered(client, request, 7).topics
    assert [(one.partition_index, one.error_code, one.committed_offset) for one in found.partitions] == [
        (0, 0, 1)
    ]


def test_offsets_of_an_unknown_group_cannot_be_deleted(client: Client):
    topic = OffsetDeleteRequest.OffsetDeleteRequestTopic
    topics = [topic(name="topic", partitions=[topic.OffsetDeleteRequestPartition(partition_index=0)])]
    for group, error in (("nobody", GroupIdNotFoundError), ("", InvalidGroupIdError)):
        for wanted in (topics, []):
            response = answered(client, OffsetDeleteRequest(group_id=group, topics=wanted))
            assert (response.error_code, response.topics) == (error.errno, [])


def test_no_offsets_of_a_known_group_can_be_deleted(client: Client):
    client.create("topic")
    client.call("commit_offsets", "group", {("topic", 0): CommittedOffset(1)})
    response = answered(client, OffsetDeleteRequest(group_id="group", topics=[]))
    assert (response.error_code, response.topics) == (0, [])


def test_commits_for_no_group_and_to_no_partition_have_kafkas_errors(client: Client):
    """Unknown partitions are told first. Before version 9 an unknown group is an illegal generation; a share
    group is not found."""
    client.create("topic")
    client.call("share_heartbeat", ShareHeartbeat("share", "m", 0, ["topic"]))
    topic = OffsetCommitRequest.OffsetCommitRequestTopic
    parts = [
        topic.OffsetCommitRequestPartition(partition_index=number, committed_offset=5) for number in (0, 9)
    ]
    for group, version, error in (
        ("none", 8, IllegalGenerationError),
        ("none", 9, GroupIdNotFoundError),
        ("share", 8, GroupIdNotFoundError),
        ("share", 9, GroupIdNotFoundError),
    ):
        request = OffsetCommitRequest(
            group_id=group,
            generation_id_or_member_epoch=3,
            member_id="m",
            topics=[topic(name="topic", partitions=parts)],
        )
        (found,) = answered(client, request, version).topics
        codes = [(one.partition_index, one.error_code) for one in found.partitions]
        assert codes == [(9, UnknownTopicOrPartitionError.errno), (0, error.errno)]
