"""A request of every API, filled in as clients do it: for round trips, and for the fuzz test to mutate."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from broker.clients import batch
from broker.server.admin_samples import NO_ID, alone_samples, config_samples, topic_samples
from broker.server.share_samples import share_samples
from kafka.protocol.admin import (
    DeleteGroupsRequest,
    DeleteRecordsRequest,
    DescribeGroupsRequest,
    DescribeProducersRequest,
    DescribeTransactionsRequest,
    ListGroupsRequest,
    ListTransactionsRequest,
)
from kafka.protocol.consumer import (
    FetchRequest,
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    ListOffsetsRequest,
    OffsetCommitRequest,
    OffsetDeleteRequest,
    OffsetFetchRequest,
    OffsetForLeaderEpochRequest,
    SyncGroupRequest,
)
from kafka.protocol.metadata import ApiVersionsRequest, FindCoordinatorRequest
from kafka.protocol.producer import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    EndTxnRequest,
    InitProducerIdRequest,
    ProduceRequest,
    TxnOffsetCommitRequest,
    WriteTxnMarkersRequest,
)
from kafka.protocol.sasl import SaslAuthenticateRequest, SaslHandshakeRequest

from dafka.broker.codec.messages.consumer_group import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupHeartbeatRequest,
)
from dafka.broker.codec.messages.streams_group import (
    StreamsGroupDescribeRequest,
    StreamsGroupHeartbeatRequest,
)


def produce(topic: str, *records: bytes | None, topic_id: UUID = NO_ID, acks: int = -1, **more: Any) -> Any:
    """ProduceRequest of record sets for the partitions 0, 1, ..."""
    data = ProduceRequest.TopicProduceData
    partitions = [data.PartitionProduceData(index=index, records=one) for index, one in enumerate(records)]
    topics = [data(name=topic, topic_id=topic_id, partition_data=partitions)]
    return ProduceRequest(
        **{"transactional_id": None, "acks": acks, "timeout_ms": 10_000, "topic_data": topics, **more}
    )


def fetch(
    topic: str, *offsets: int, topic_id: UUID = NO_ID, wait: int = 0, max_bytes: int = 1 << 20, **more: Any
) -> Any:
    """FetchRequest of the partitions 0, 1, ... from these offsets on; ``wait`` in ms."""
    part = FetchRequest.FetchTopic.FetchPartition
    partitions = [
        part(
            partition=number,
            current_leader_epoch=-1,
            fetch_offset=offset,
            last_fetched_epoch=-1,
            log_start_offset=-1,
            partition_max_bytes=max_bytes,
        )
        for number, offset in enumerate(offsets)
    ]
    fields = {
        "cluster_id": None,
        "replica_id": -1,
        "max_wait_ms": wait,
        "min_bytes": 1,
        "max_bytes": 50 << 20,
        "isolation_level": 0,
        "session_id": 0,
        "session_epoch": -1,
        "topics": [FetchRequest.FetchTopic(topic=topic, topic_id=topic_id, partitions=partitions)],
        "forgotten_topics_data": [],
        "rack_id": "",
    }
    return FetchRequest(**{**fields, **more})


def samples(topic: str, topic_id: UUID, group: str = "group") -> list[Any]:
    """A request of each class that neither waits nor takes the topic away."""
    return [
        *_records(topic, topic_id),
        *_groups(topic, topic_id, group),
        *topic_samples(topic, topic_id),
        *config_samples(topic),
        *share_samples(topic, topic_id),
        *_transactions(topic, group),
        *alone_samples(topic),
    ]


def _records(topic: str, topic_id: UUID) -> list[Any]:
    listed = ListOffsetsRequest.ListOffsetsTopic
    epochs = OffsetForLeaderEpochRequest.OffsetForLeaderTopic
    deleted = DeleteRecordsRequest.DeleteRecordsTopic
    return [
        ApiVersionsRequest(client_software_name="tests", client_software_version="1.0"),
        produce(topic, batch(b"value"), topic_id=topic_id),
        fetch(topic, 0, topic_id=topic_id),
        ListOffsetsRequest(
            replica_id=-1,
            isolation_level=0,
            topics=[
                listed(
                    name=topic,
                    partitions=[
                        listed.ListOffsetsPartition(
                            partition_index=0, current_leader_epoch=-1, timestamp=-1, max_num_offsets=1
                        )
                    ],
                )
            ],
            timeout_ms=1000,
        ),
        OffsetForLeaderEpochRequest(
            replica_id=-1,
            topics=[
                epochs(
                    topic=topic,
                    partitions=[
                        epochs.OffsetForLeaderPartition(partition=0, current_leader_epoch=0, leader_epoch=0)
                    ],
                )
            ],
        ),
        DeleteRecordsRequest(
            topics=[
                deleted(name=topic, partitions=[deleted.DeleteRecordsPartition(partition_index=0, offset=0)])
            ],
            timeout_ms=1000,
        ),
    ]


def _groups(topic: str, topic_id: UUID, group: str) -> list[Any]:
    member = LeaveGroupRequest.MemberIdentity(member_id="nobody", group_instance_id=None, reason="tests")
    commit = OffsetCommitRequest.OffsetCommitRequestTopic
    fetched = OffsetFetchRequest.OffsetFetchRequestGroup
    forgotten = OffsetDeleteRequest.OffsetDeleteRequestTopic
    return [
        SaslHandshakeRequest(mechanism="PLAIN"),
        SaslAuthenticateRequest(auth_bytes=b"\0alice\0secret"),
        FindCoordinatorRequest(key=group, key_type=0, coordinator_keys=[group]),
        JoinGroupRequest(
            group_id=group,
            session_timeout_ms=10_000,
            rebalance_timeout_ms=10_000,
            member_id="nobody",
            group_instance_id=None,
            protocol_type="consumer",
            protocols=[JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=b"\0\1")],
            reason="tests",
        ),
        SyncGroupRequest(
            group_id=group,
            generation_id=1,
            member_id="nobody",
            group_instance_id=None,
            protocol_type="consumer",
            protocol_name="range",
            assignments=[SyncGroupRequest.SyncGroupRequestAssignment(member_id="nobody", assignment=b"a")],
        ),
        HeartbeatRequest(group_id=group, generation_id=1, member_id="nobody", group_instance_id=None),
        LeaveGroupRequest(group_id=group, member_id="nobody", members=[member]),
        OffsetCommitRequest(
            group_id=group,
            generation_id_or_member_epoch=-1,
            member_id="",
            group_instance_id=None,
            retention_time_ms=-1,
            topics=[
                commit(
                    name=topic,
                    topic_id=topic_id,
                    partitions=[
                        commit.OffsetCommitRequestPartition(
                            partition_index=0,
                            committed_offset=7,
                            committed_leader_epoch=0,
                            commit_timestamp=-1,
                            committed_metadata="note",
                        )
                    ],
                )
            ],
        ),
        OffsetFetchRequest(
            group_id=group,
            topics=[OffsetFetchRequest.OffsetFetchRequestTopic(name=topic, partition_indexes=[0, 1])],
            groups=[
                fetched(
                    group_id=group,
                    member_id=None,
                    member_epoch=-1,
                    topics=[
                        fetched.OffsetFetchRequestTopics(
                            name=topic, topic_id=topic_id, partition_indexes=[0, 1]
                        )
                    ],
                )
            ],
            require_stable=False,
        ),
        OffsetDeleteRequest(
            group_id=group,
            topics=[
                forgotten(name=topic, partitions=[forgotten.OffsetDeleteRequestPartition(partition_index=1)])
            ],
        ),
        DescribeGroupsRequest(groups=[group], include_authorized_operations=True),
        ListGroupsRequest(states_filter=[], types_filter=[]),
        DeleteGroupsRequest(groups_names=["nobody's"]),
        ConsumerGroupHeartbeatRequest(
            group_id=CONSUMERS,
            member_id="sample",
            member_epoch=0,
            instance_id=None,
            rack_id=None,
            rebalance_timeout_ms=10_000,
            subscribed_topic_names=[topic],
            subscribed_topic_regex=None,
            server_assignor=None,
            topic_partitions=[],
        ),
        ConsumerGroupDescribeRequest(group_ids=[CONSUMERS], include_authorized_operations=True),
        streams_heartbeat(topic),
        StreamsGroupDescribeRequest(group_ids=[STREAMS], include_authorized_operations=True),
    ]


def streams_heartbeat(topic: str, **fields: Any) -> Any:
    """A member of a Streams group joins, whose topology reads a topic."""
    subtopology = StreamsGroupHeartbeatRequest.Topology.Subtopology(
        subtopology_id="0",
        source_topics=[topic],
        source_topic_regex=[],
        state_changelog_topics=[],
        repartition_sink_topics=[],
        repartition_source_topics=[],
        copartition_groups=[],
    )
    full = {
        "group_id": STREAMS,
        "member_id": "sample",
        "member_epoch": 0,
        "endpoint_information_epoch": -1,
        "rebalance_timeout_ms": 10_000,
        "topology": StreamsGroupHeartbeatRequest.Topology(epoch=0, subtopologies=[subtopology]),
        "active_tasks": [],
        "standby_tasks": [],
        "warmup_tasks": [],
        "process_id": "process",
        "shutdown_application": False,
    }
    return StreamsGroupHeartbeatRequest(**{**full, **fields})


STREAMS = "streams"  # a group of Kafka Streams, if the test makes one
CONSUMERS = "consumers"  # a group of the newer protocol, if the test makes one


def _transactions(topic: str, group: str) -> list[Any]:
    added = AddPartitionsToTxnRequest.AddPartitionsToTxnTopic
    marker = WriteTxnMarkersRequest.WritableTxnMarker
    batched = AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction
    committed = TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic
    who = {"transactional_id": "payments", "producer_id": 99, "producer_epoch": 0}
    return [
        InitProducerIdRequest(
            transactional_id=None, transaction_timeout_ms=60_000, producer_id=-1, producer_epoch=-1
        ),
        AddPartitionsToTxnRequest(
            v3_and_below_transactional_id="payments",
            v3_and_below_producer_id=99,
            v3_and_below_producer_epoch=0,
            v3_and_below_topics=[added(name=topic, partitions=[0])],
            transactions=[
                batched(
                    **who,
                    verify_only=False,
                    topics=[batched.AddPartitionsToTxnTopic(name=topic, partitions=[0])],
                )
            ],
        ),
        AddOffsetsToTxnRequest(**who, group_id=group),
        EndTxnRequest(**who, committed=True),
        WriteTxnMarkersRequest(
            markers=[
                marker(
                    producer_id=99,
                    producer_epoch=0,
                    transaction_result=False,
                    topics=[marker.WritableTxnMarkerTopic(name=topic, partition_indexes=[0])],
                    coordinator_epoch=0,
                    transaction_version=0,
                )
            ]
        ),
        TxnOffsetCommitRequest(
            **who,
            group_id=group,
            generation_id=-1,
            member_id="",
            group_instance_id=None,
            topics=[
                committed(
                    name=topic,
                    partitions=[
                        committed.TxnOffsetCommitRequestPartition(
                            partition_index=0,
                            committed_offset=1,
                            committed_leader_epoch=0,
                            committed_metadata="",
                        )
                    ],
                )
            ],
        ),
        DescribeProducersRequest(
            topics=[DescribeProducersRequest.TopicRequest(name=topic, partition_indexes=[0])]
        ),
        DescribeTransactionsRequest(transactional_ids=["payments"]),
        ListTransactionsRequest(
            state_filters=["Ongoing"],
            producer_id_filters=[],
            duration_filter=-1,
            transactional_id_pattern=None,
        ),
    ]
