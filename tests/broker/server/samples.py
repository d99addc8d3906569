"""A request of every API, filled in as clients do it: for round trips, and for the fuzz test to mutate."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from broker.clients import batch
from kafka.protocol.admin import (
    AlterClientQuotasRequest,
    AlterConfigsRequest,
    AlterPartitionReassignmentsRequest,
    AlterReplicaLogDirsRequest,
    AlterUserScramCredentialsRequest,
    CreateAclsRequest,
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteAclsRequest,
    DeleteGroupsRequest,
    DeleteRecordsRequest,
    DeleteTopicsRequest,
    DescribeAclsRequest,
    DescribeClientQuotasRequest,
    DescribeClusterRequest,
    DescribeConfigsRequest,
    DescribeGroupsRequest,
    DescribeLogDirsRequest,
    DescribeProducersRequest,
    DescribeQuorumRequest,
    DescribeTopicPartitionsRequest,
    DescribeTransactionsRequest,
    DescribeUserScramCredentialsRequest,
    ElectLeadersRequest,
    IncrementalAlterConfigsRequest,
    ListConfigResourcesRequest,
    ListGroupsRequest,
    ListPartitionReassignmentsRequest,
    ListTransactionsRequest,
    UpdateFeaturesRequest,
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
from kafka.protocol.metadata import ApiVersionsRequest, FindCoordinatorRequest, MetadataRequest
from kafka.protocol.producer import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    EndTxnRequest,
    InitProducerIdRequest,
    ProduceRequest,
    TxnOffsetCommitRequest,
)

NO_ID = UUID(int=0)


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
    """A request of each class, none of which waits or takes the topic away."""
    return [
        *_records(topic, topic_id),
        *_groups(topic, topic_id, group),
        *_topics(topic, topic_id),
        *_configs(topic),
        *_transactions(topic, group),
        *_alone(topic),
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
    ]


def _topics(topic: str, topic_id: UUID) -> list[Any]:
    return [
        MetadataRequest(
            topics=[MetadataRequest.MetadataRequestTopic(name=topic, topic_id=NO_ID)],
            allow_auto_topic_creation=False,
            include_cluster_authorized_operations=True,
            include_topic_authorized_operations=True,
        ),
        DescribeClusterRequest(
            include_cluster_authorized_operations=True, endpoint_type=1, include_fenced_brokers=False
        ),
        CreateTopicsRequest(
            topics=[
                CreateTopicsRequest.CreatableTopic(
                    name="created",
                    num_partitions=2,
                    replication_factor=1,
                    assignments=[],
                    configs=[
                        CreateTopicsRequest.CreatableTopic.CreatableTopicConfig(
                            name="retention.ms", value="1000000"
                        )
                    ],
                )
            ],
            timeout_ms=1000,
            validate_only=True,
        ),
        DeleteTopicsRequest(
            topics=[DeleteTopicsRequest.DeleteTopicState(name="missing", topic_id=NO_ID)],
            topic_names=["missing"],
            timeout_ms=1000,
        ),
        CreatePartitionsRequest(
            topics=[CreatePartitionsRequest.CreatePartitionsTopic(name=topic, count=9, assignments=None)],
            timeout_ms=1000,
            validate_only=True,
        ),
        ElectLeadersRequest(
            election_type=0,
            topic_partitions=[ElectLeadersRequest.TopicPartitions(topic=topic, partitions=[0])],
            timeout_ms=1000,
        ),
        ListPartitionReassignmentsRequest(timeout_ms=1000, topics=None),
        DescribeTopicPartitionsRequest(
            topics=[DescribeTopicPartitionsRequest.TopicRequest(name=topic)],
            response_partition_limit=100,
            cursor=None,
        ),
    ]


def _configs(topic: str) -> list[Any]:
    described = DescribeConfigsRequest.DescribeConfigsResource
    altered = AlterConfigsRequest.AlterConfigsResource
    changed = IncrementalAlterConfigsRequest.AlterConfigsResource
    return [
        DescribeConfigsRequest(
            resources=[
                described(resource_type=2, resource_name=topic, configuration_keys=None),
                described(resource_type=4, resource_name="0", configuration_keys=["log.dirs"]),
            ],
            include_synonyms=True,
            include_documentation=True,
        ),
        AlterConfigsRequest(
            resources=[
                altered(
                    resource_type=2,
                    resource_name=topic,
                    configs=[altered.AlterableConfig(name="retention.ms", value="1000000")],
                )
            ],
            validate_only=True,
        ),
        IncrementalAlterConfigsRequest(
            resources=[
                changed(
                    resource_type=2,
                    resource_name=topic,
                    configs=[
                        changed.AlterableConfig(name="retention.ms", config_operation=0, value="1000000")
                    ],
                )
            ],
            validate_only=True,
        ),
        ListConfigResourcesRequest(resource_types=[2, 4]),
        DescribeLogDirsRequest(
            topics=[DescribeLogDirsRequest.DescribableLogDirTopic(topic=topic, partitions=[0])]
        ),
    ]


def _transactions(topic: str, group: str) -> list[Any]:
    added = AddPartitionsToTxnRequest.AddPartitionsToTxnTopic
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
        ),
        AddOffsetsToTxnRequest(**who, group_id=group),
        EndTxnRequest(**who, committed=True),
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


ANY_ACL = {
    "resource_type_filter": 1,
    "resource_name_filter": None,
    "pattern_type_filter": 1,
    "principal_filter": None,
    "host_filter": None,
    "operation": 1,
    "permission_type": 1,
}


def _alone(topic: str) -> list[Any]:
    moved = AlterReplicaLogDirsRequest.AlterReplicaLogDir
    reassigned = AlterPartitionReassignmentsRequest.ReassignableTopic
    quorum = DescribeQuorumRequest.TopicData
    quota = AlterClientQuotasRequest.EntryData
    return [
        DescribeAclsRequest(**ANY_ACL),
        CreateAclsRequest(
            creations=[
                CreateAclsRequest.AclCreation(
                    resource_type=2,
                    resource_name=topic,
                    resource_pattern_type=3,
                    principal="User:a",
                    host="*",
                    operation=3,
                    permission_type=3,
                )
            ]
        ),
        DeleteAclsRequest(filters=[DeleteAclsRequest.DeleteAclsFilter(**ANY_ACL)]),
        AlterReplicaLogDirsRequest(
            dirs=[moved(path="/data", topics=[moved.AlterReplicaLogDirTopic(name=topic, partitions=[0])])]
        ),
        AlterPartitionReassignmentsRequest(
            timeout_ms=1000,
            allow_replication_factor_change=True,
            topics=[
                reassigned(
                    name=topic,
                    partitions=[reassigned.ReassignablePartition(partition_index=0, replicas=[0])],
                )
            ],
        ),
        DescribeClientQuotasRequest(
            components=[
                DescribeClientQuotasRequest.ComponentData(entity_type="user", match_type=1, match=None)
            ],
            strict=False,
        ),
        AlterClientQuotasRequest(
            entries=[
                quota(
                    entity=[quota.EntityData(entity_type="user", entity_name="a")],
                    ops=[quota.OpData(key="producer_byte_rate", value=1000.0, remove=False)],
                )
            ],
            validate_only=True,
        ),
        DescribeUserScramCredentialsRequest(users=[DescribeUserScramCredentialsRequest.UserName(name="a")]),
        AlterUserScramCredentialsRequest(
            deletions=[AlterUserScramCredentialsRequest.ScramCredentialDeletion(name="a", mechanism=1)],
            upsertions=[],
        ),
        DescribeQuorumRequest(
            topics=[
                quorum(topic_name="__cluster_metadata", partitions=[quorum.PartitionData(partition_index=0)])
            ]
        ),
        UpdateFeaturesRequest(
            timeout_ms=1000,
            feature_updates=[
                UpdateFeaturesRequest.FeatureUpdateKey(
                    feature="metadata.version", max_version_level=30, allow_downgrade=False, upgrade_type=1
                )
            ],
            validate_only=True,
        ),
    ]
