"""Administrative requests, filled in as clients do it: see samples.py."""

from __future__ import annotations

from typing import Any
from uuid import UUID

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
    DeleteTopicsRequest,
    DescribeAclsRequest,
    DescribeClientQuotasRequest,
    DescribeClusterRequest,
    DescribeConfigsRequest,
    DescribeLogDirsRequest,
    DescribeQuorumRequest,
    DescribeTopicPartitionsRequest,
    DescribeUserScramCredentialsRequest,
    ElectLeadersRequest,
    IncrementalAlterConfigsRequest,
    ListConfigResourcesRequest,
    ListPartitionReassignmentsRequest,
    UpdateFeaturesRequest,
)
from kafka.protocol.metadata import MetadataRequest

from dafka.broker.codec.messages.cluster import (
    AddRaftVoterRequest,
    RemoveRaftVoterRequest,
    UnregisterBrokerRequest,
)
from dafka.broker.codec.messages.delegation_tokens import (
    CreateDelegationTokenRequest,
    DescribeDelegationTokenRequest,
    ExpireDelegationTokenRequest,
    RenewDelegationTokenRequest,
)
from dafka.broker.codec.messages.telemetry import (
    GetTelemetrySubscriptionsRequest,
    PushTelemetryRequest,
)

NO_ID = UUID(int=0)
ANY_ACL = {
    "resource_type_filter": 1,
    "resource_name_filter": None,
    "pattern_type_filter": 1,
    "principal_filter": None,
    "host_filter": None,
    "operation": 1,
    "permission_type": 1,
}


def topic_samples(topic: str, topic_id: UUID) -> list[Any]:
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


def config_samples(topic: str) -> list[Any]:
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


def alone_samples(topic: str) -> list[Any]:
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
        CreateDelegationTokenRequest(
            owner_principal_type=None, owner_principal_name=None, renewers=[], max_lifetime_ms=-1
        ),
        RenewDelegationTokenRequest(hmac=b"token", renew_period_ms=-1),
        ExpireDelegationTokenRequest(hmac=b"token", expiry_time_period_ms=-1),
        DescribeDelegationTokenRequest(owners=None),
        UnregisterBrokerRequest(broker_id=77),
        AddRaftVoterRequest(
            cluster_id=None,
            timeout_ms=1000,
            voter_id=77,
            voter_directory_id=NO_ID,
            listeners=[AddRaftVoterRequest.Listener(name="CONTROLLER", host="localhost", port=9)],
            ack_when_committed=True,
        ),
        RemoveRaftVoterRequest(cluster_id=None, voter_id=77, voter_directory_id=NO_ID),
        GetTelemetrySubscriptionsRequest(client_instance_id=NO_ID),
        PushTelemetryRequest(
            client_instance_id=NO_ID, subscription_id=0, terminating=False, compression_type=0, metrics=b""
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
