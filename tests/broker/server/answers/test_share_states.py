"""The stored states of share groups over TCP, and the coordinators of share partitions."""

from __future__ import annotations

import base64
from typing import Any
from uuid import UUID

import pytest
from broker.clients import Client
from broker.server.client import answered
from broker.server.share_samples import state_samples
from kafka.errors import InvalidRequestError, UnknownError, UnknownTopicOrPartitionError
from kafka.protocol.metadata import FindCoordinatorRequest

from dafka.broker.codec.messages.share_group import (
    AlterShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequest,
    ShareGroupHeartbeatRequest,
)

GROUP = "queue"


@pytest.fixture
def topic_id(client: Client) -> UUID:
    client.create("jobs")
    found: UUID = client.call("metadata", ["jobs"]).topics["jobs"].topic_id
    return found


def test_a_state_is_begun_written_read_and_deleted(client: Client, topic_id: UUID):
    begin, write, read, sum_up, delete = state_samples(topic_id, GROUP)
    batches = write.topics[0].partitions[0].StateBatch
    write.topics[0].partitions[0].state_batches = [
        batches(first_offset=1, last_offset=2, delivery_state=2, delivery_count=3)
    ]

    def one(request):
        (topic,) = answered(client, request).results
        (found,) = topic.partitions
        assert (topic.topic_id, found.partition) == (topic_id, 0)
        return found

    assert one(read).error_code == InvalidRequestError.errno
    assert one(begin).error_code == one(write).error_code == 0
    found = one(read)
    assert (found.error_code, found.state_epoch, found.start_offset) == (0, 1, 0)
    (run,) = found.state_batches
    assert (run.first_offset, run.last_offset, run.delivery_state, run.delivery_count) == (1, 2, 2, 3)
    found = one(sum_up)
    assert (found.error_code, found.start_offset, found.delivery_complete_count) == (0, 0, 2)
    assert one(delete).error_code == 0
    assert one(read).error_code == InvalidRequestError.errno


def test_each_partition_has_its_error_and_no_group_has_no_answer(client: Client, topic_id: UUID):
    for request in state_samples(topic_id, GROUP, number=9):
        ((found,),) = (topic.partitions for topic in answered(client, request).results)
        assert found.error_code in (UnknownTopicOrPartitionError.errno, InvalidRequestError.errno)
        assert found.error_message
    for request in state_samples(topic_id, ""):
        assert answered(client, request).results == []


@pytest.mark.parametrize(
    ("key", "known"),
    [
        ("queue:{id}:0", True),
        ("a:b:{id}:1", True),
        ("queue", False),
        ("queue:x:0", False),
        ("queue:{id}:x", False),
        (":{id}:0", False),
    ],
)
def test_this_broker_coordinates_share_partitions(client: Client, topic_id: UUID, key: str, known: bool):
    key = key.format(id=base64.urlsafe_b64encode(topic_id.bytes).decode().rstrip("="))
    request = FindCoordinatorRequest(key=key, key_type=2, coordinator_keys=[key])
    (found,) = answered(client, request, 6).coordinators
    assert (found.error_code, found.port) == ((0, client.core.port) if known else (42, -1))
    (found,) = answered(client, request, 5).coordinators  # which does not know them
    assert found.error_code == InvalidRequestError.errno


def test_errors_of_offsets_have_the_words_that_tools_print(client: Client, topic_id: UUID):
    client.call("alter_share_offsets", GROUP, {("jobs", 0): 0})
    unknown = "This server does not host this topic-partition."
    altered = AlterShareGroupOffsetsRequest.AlterShareGroupOffsetsRequestTopic
    partition = altered.AlterShareGroupOffsetsRequestPartition(partition_index=7, start_offset=0)
    request = AlterShareGroupOffsetsRequest(
        group_id=GROUP, topics=[altered(topic_name="jobs", partitions=[partition])]
    )
    assert answered(client, request).responses[0].partitions[0].error_message == unknown
    request.topics.append(
        altered(topic_name="none", partitions=[partition])
    )  # topics that are not there first
    assert [one.topic_name for one in answered(client, request).responses] == ["none", "jobs"]

    request.topics *= 2
    assert [len(one.partitions) for one in answered(client, request).responses] == [2, 2]

    def delete() -> dict[str, str | None]:
        topic = DeleteShareGroupOffsetsRequest.DeleteShareGroupOffsetsRequestTopic
        topics = [topic(topic_name=name) for name in ("jobs", "none")]
        request = DeleteShareGroupOffsetsRequest(group_id=GROUP, topics=topics)
        return {one.topic_name: one.error_message for one in answered(client, request).responses}

    assert delete() == {"jobs": None, "none": unknown}
    assert delete() == {"jobs": "There is no offset information to delete.", "none": unknown}
    heartbeat = ShareGroupHeartbeatRequest(
        group_id=GROUP, member_id="m", member_epoch=0, rack_id=None, subscribed_topic_names=["jobs"]
    )
    assert answered(client, heartbeat).error_code == 0
    assert answered(client, request).error_message == "The group is not empty."


def test_heartbeats_are_refused_with_the_words_that_clients_log(client: Client, topic_id: UUID):
    def beat(epoch: int, member: str = "m") -> tuple[str | None, int]:
        request = ShareGroupHeartbeatRequest(
            group_id=GROUP,
            member_id=member,
            member_epoch=epoch,
            rack_id=None,
            subscribed_topic_names=None if epoch else ["jobs"],
        )
        answer = answered(client, request)
        return answer.error_message, answer.member_epoch

    epoch = beat(0)[1]
    for asked, word, also in (
        (epoch + 5, "greater", ""),
        (epoch - 1, "smaller", ", and it does not match the previous member epoch (0)"),
    ):
        assert beat(asked)[0] == (
            f"The share group member has a {word} member epoch ({asked}) than the one known by the group "
            f"coordinator ({epoch}){also}. The member must abandon all its partitions and rejoin."
        )
    assert beat(1, "n")[0] == f"Member n is not a member of group {GROUP}."
    assert beat(-2)[0] == "MemberEpoch is invalid."


def test_offsets_of_topics_that_are_not_there_are_told_as_often_as_asked(client: Client, topic_id: UUID):
    asked = DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestGroup
    topic = asked.DescribeShareGroupOffsetsRequestTopic

    def described(*topics: tuple[str, list[int]]) -> Any:
        named = [topic(topic_name=name, partitions=numbers) for name, numbers in topics]
        request = DescribeShareGroupOffsetsRequest(groups=[asked(group_id=GROUP, topics=named)])
        (found,) = answered(client, request).groups
        return found.error_code, [(one.topic_name, len(one.partitions)) for one in found.topics]

    assert described(("jobs", [])) == (UnknownError.errno, [])
    assert described(("jobs", [0, 0]), ("none", [0, 0]), ("none", [])) == (
        0,
        [("none", 2), ("none", 0), ("jobs", 1)],
    )
