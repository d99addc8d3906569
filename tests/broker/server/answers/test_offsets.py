"""Offsets of partitions: ListOffsets and OffsetForLeaderEpoch."""

from __future__ import annotations

import pytest
from broker.clients import Client
from broker.server.client import answered
from kafka.errors import (
    FencedLeaderEpochError,
    UnknownLeaderEpochError,
    UnsupportedVersionError,
)
from kafka.protocol.consumer import (
    ListOffsetsRequest,
    OffsetForLeaderEpochRequest,
)
from kafka.protocol.metadata import MetadataRequest


@pytest.mark.parametrize(
    ("timestamp", "offset"), [(-1, 3), (-2, 0), (-3, 2), (-4, 0), (-5, -1), (-6, -1), (2000, 1), (4000, -1)]
)
def test_offsets_are_found_by_timestamp(client: Client, timestamp: int, offset: int):
    client.create("topic")
    for time in (1000, 2000, 3000):
        client.produce("topic", b"x", timestamp=time)
    topic = ListOffsetsRequest.ListOffsetsTopic
    wanted = [topic.ListOffsetsPartition(partition_index=0, timestamp=timestamp)]
    (topic_answer,) = answered(
        client, ListOffsetsRequest(topics=[topic(name="topic", partitions=wanted)])
    ).topics
    assert (topic_answer.partitions[0].error_code, topic_answer.partitions[0].offset) == (0, offset)


@pytest.mark.parametrize(("timestamp", "since"), [(-3, 7), (-4, 8), (-5, 9), (-6, 11)])
def test_special_timestamps_are_refused_in_versions_before_their_own(
    client: Client, timestamp: int, since: int
):
    client.create("topic")
    topic = ListOffsetsRequest.ListOffsetsTopic
    wanted = [topic.ListOffsetsPartition(partition_index=0, timestamp=timestamp)]
    codes = {}
    for version in range(1, 12):
        request = ListOffsetsRequest(topics=[topic(name="topic", partitions=wanted)])
        codes[version] = answered(client, request, version).topics[0].partitions[0].error_code
    assert codes == {v: 0 if v >= since else UnsupportedVersionError.errno for v in codes}


def test_a_special_timestamp_that_there_is_not_is_refused_before_anything_else(client: Client):
    client.create("topic")
    topic = ListOffsetsRequest.ListOffsetsTopic
    wanted = [
        topic.ListOffsetsPartition(partition_index=number, timestamp=-7, current_leader_epoch=epoch)
        for number, epoch in ((0, -1), (0, 9), (8, -1))
    ]
    for one in wanted:
        request = ListOffsetsRequest(topics=[topic(name="topic", partitions=[one])])
        (partition,) = answered(client, request).topics[0].partitions
        assert partition.error_code == UnsupportedVersionError.errno


@pytest.mark.parametrize(
    ("current", "error"),
    [(-1, None), (0, FencedLeaderEpochError), (1, None), (2, UnknownLeaderEpochError)],
)
def test_a_leader_epoch_ends_where_the_next_one_begins(client: Client, current: int, error):
    client.create("topic")
    client.produce("topic", b"a", b"b")
    client.core._epochs.current = 1
    client.produce("topic", b"c")
    topic = OffsetForLeaderEpochRequest.OffsetForLeaderTopic
    ends = []
    for epoch in (0, 1, 2):
        wanted = topic.OffsetForLeaderPartition(partition=0, current_leader_epoch=current, leader_epoch=epoch)
        request = OffsetForLeaderEpochRequest(topics=[topic(topic="topic", partitions=[wanted])])
        (end,) = answered(client, request).topics[0].partitions
        assert end.error_code == (error.errno if error else 0)
        ends.append((end.leader_epoch, end.end_offset))
    assert ends == ([(-1, -1)] * 3 if error else [(0, 2), (1, 3), (-1, -1)])


def test_metadata_and_listed_offsets_have_leader_epochs(client: Client):
    client.create("topic")
    client.produce("topic", b"a")
    client.core._epochs.current = 1
    client.produce("topic", b"b")
    metadata = answered(client, MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name="topic")]))
    assert metadata.topics[0].partitions[0].leader_epoch == 1
    topic = ListOffsetsRequest.ListOffsetsTopic
    listed = []
    for timestamp in (-2, -1):
        wanted = [topic.ListOffsetsPartition(partition_index=0, timestamp=timestamp)]
        request = ListOffsetsRequest(topics=[topic(name="topic", partitions=wanted)])
        (found,) = answered(client, request).topics[0].partitions
        listed.append((found.offset, found.leader_epoch))
    assert listed == [(0, 0), (2, 1)]
