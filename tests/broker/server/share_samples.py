"""A request of each API of share groups."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from dafka.broker.codec.messages.share_group import (
    AlterShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupStateRequest,
    DescribeShareGroupOffsetsRequest,
    InitializeShareGroupStateRequest,
    ReadShareGroupStateRequest,
    ReadShareGroupStateSummaryRequest,
    ShareAcknowledgeRequest,
    ShareFetchRequest,
    ShareGroupDescribeRequest,
    ShareGroupHeartbeatRequest,
    WriteShareGroupStateRequest,
)

SHARERS, SHARED = "sharers", "shared"  # share groups with and without members, if the test makes them
MEMBER = "sample"


def share_samples(topic: str, topic_id: UUID) -> list[Any]:
    deleted = DeleteShareGroupOffsetsRequest.DeleteShareGroupOffsetsRequestTopic
    altered = AlterShareGroupOffsetsRequest.AlterShareGroupOffsetsRequestTopic
    return [
        ShareGroupHeartbeatRequest(
            group_id=SHARERS, member_id=MEMBER, member_epoch=0, rack_id=None, subscribed_topic_names=[topic]
        ),
        ShareGroupDescribeRequest(group_ids=[SHARERS], include_authorized_operations=True),
        share_fetch(topic_id),
        share_acknowledge(topic_id, 1),
        share_offsets(topic),
        AlterShareGroupOffsetsRequest(
            group_id=SHARED,
            topics=[
                altered(
                    topic_name=topic,
                    partitions=[
                        altered.AlterShareGroupOffsetsRequestPartition(partition_index=0, start_offset=0)
                    ],
                )
            ],
        ),
        DeleteShareGroupOffsetsRequest(group_id=SHARED, topics=[deleted(topic_name=topic)]),
        *state_samples(topic_id),
    ]


def state_samples(topic_id: UUID, group: str = SHARED, number: int = 0) -> list[Any]:
    """What brokers ask each other, in the order in which all of it succeeds."""

    def asked(request_class: Any, topic_class: Any, **fields: Any) -> Any:
        partition = topic_class.PartitionData(partition=number, **fields)
        return request_class(group_id=group, topics=[topic_class(topic_id=topic_id, partitions=[partition])])

    return [
        asked(
            InitializeShareGroupStateRequest,
            InitializeShareGroupStateRequest.InitializeStateData,
            state_epoch=1,
            start_offset=0,
        ),
        asked(
            WriteShareGroupStateRequest,
            WriteShareGroupStateRequest.WriteStateData,
            state_epoch=1,
            leader_epoch=-1,
            start_offset=0,
            delivery_complete_count=0,
            state_batches=[],
        ),
        asked(ReadShareGroupStateRequest, ReadShareGroupStateRequest.ReadStateData, leader_epoch=-1),
        asked(
            ReadShareGroupStateSummaryRequest,
            ReadShareGroupStateSummaryRequest.ReadStateSummaryData,
            leader_epoch=-1,
        ),
        asked(DeleteShareGroupStateRequest, DeleteShareGroupStateRequest.DeleteStateData),
    ]


def share_fetch(topic_id: UUID, epoch: int = 0, **more: Any) -> Any:
    """A fetch that begins a session."""
    asked = ShareFetchRequest.FetchTopic
    fields: dict[str, Any] = {
        "group_id": SHARERS,
        "member_id": MEMBER,
        "share_session_epoch": epoch,
        "max_wait_ms": 0,
        "min_bytes": 1,
        "max_bytes": 1 << 20,
        "max_records": 10,
        "batch_size": 10,
        "share_acquire_mode": 0,
        "is_renew_ack": False,
        "topics": [
            asked(
                topic_id=topic_id,
                partitions=[asked.FetchPartition(partition_index=0, acknowledgement_batches=[])],
            )
        ],
        "forgotten_topics_data": [],
    }
    return ShareFetchRequest(**{**fields, **more})


def share_acknowledge(topic_id: UUID, epoch: int) -> Any:
    asked = ShareAcknowledgeRequest.AcknowledgeTopic
    batch = asked.AcknowledgePartition.AcknowledgementBatch(
        first_offset=0, last_offset=0, acknowledge_types=[1]
    )
    return ShareAcknowledgeRequest(
        group_id=SHARERS,
        member_id=MEMBER,
        share_session_epoch=epoch,
        is_renew_ack=False,
        topics=[
            asked(
                topic_id=topic_id,
                partitions=[asked.AcknowledgePartition(partition_index=0, acknowledgement_batches=[batch])],
            )
        ],
    )


def share_offsets(topic: str | None) -> Any:
    """Of one topic, or of all."""
    asked = DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestGroup
    named = asked.DescribeShareGroupOffsetsRequestTopic
    topics = None if topic is None else [named(topic_name=topic, partitions=[0])]
    return DescribeShareGroupOffsetsRequest(groups=[asked(group_id=SHARERS, topics=topics)])
