"""Which guard each API has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dafka.broker.interface.broker import BrokerInterface
from dafka.broker.server.context import Context
from dafka.broker.server.rights import (
    cluster,
    consumer_groups,
    groups,
    share,
    streams_groups,
    topics,
    transactions,
)
from dafka.broker.server.rights.asked import Asked, Guard, nothing, whole
from dafka.broker.server.table import Api

GUARDS: Mapping[str, Guard] = {
    "ListOffsets": topics.list_offsets,
    "Metadata": topics.metadata,
    "OffsetCommit": groups.offset_commit,
    "OffsetFetch": groups.offset_fetch,
    "FindCoordinator": groups.find_coordinator,
    "JoinGroup": groups.of_group,
    "Heartbeat": groups.of_group,
    "LeaveGroup": groups.of_group,
    "SyncGroup": groups.of_group,
    "DescribeGroups": groups.describe_groups,
    "ListGroups": groups.list_groups,
    "SaslHandshake": nothing,
    "ApiVersions": nothing,
    "CreateTopics": topics.create_topics,
    "DeleteTopics": topics.delete_topics,
    "DeleteRecords": topics.delete_records,
    "InitProducerId": transactions.init_producer_id,
    "OffsetForLeaderEpoch": topics.offset_for_leader_epoch,
    "AddPartitionsToTxn": transactions.add_partitions_to_txn,
    "AddOffsetsToTxn": transactions.add_offsets_to_txn,
    "EndTxn": transactions.end_txn,
    "WriteTxnMarkers": transactions.write_txn_markers,
    "TxnOffsetCommit": transactions.txn_offset_commit,
    "DescribeAcls": whole,
    "CreateAcls": cluster.create_acls,
    "DeleteAcls": cluster.delete_acls,
    "DescribeConfigs": cluster.describe_configs,
    "AlterConfigs": cluster.alter_configs,
    "AlterReplicaLogDirs": cluster.alter_replica_log_dirs,
    "DescribeLogDirs": cluster.describe_log_dirs,
    "SaslAuthenticate": nothing,
    "CreatePartitions": topics.create_partitions,
    "CreateDelegationToken": nothing,
    "RenewDelegationToken": nothing,
    "ExpireDelegationToken": nothing,
    "DescribeDelegationToken": nothing,
    "DeleteGroups": groups.delete_groups,
    "ElectLeaders": cluster.elect_leaders,
    "IncrementalAlterConfigs": cluster.alter_configs,
    "AlterPartitionReassignments": whole,
    "ListPartitionReassignments": whole,
    "OffsetDelete": groups.offset_delete,
    "DescribeClientQuotas": whole,
    "AlterClientQuotas": cluster.alter_client_quotas,
    "DescribeUserScramCredentials": whole,
    "AlterUserScramCredentials": cluster.alter_user_scram_credentials,
    "DescribeQuorum": whole,
    "UpdateFeatures": whole,
    "DescribeCluster": cluster.describe_cluster,
    "DescribeProducers": transactions.describe_producers,
    "UnregisterBroker": whole,
    "DescribeTransactions": transactions.describe_transactions,
    "ListTransactions": transactions.list_transactions,
    "ConsumerGroupHeartbeat": consumer_groups.heartbeat,
    "ConsumerGroupDescribe": consumer_groups.describe,
    "ShareGroupHeartbeat": consumer_groups.heartbeat,
    "ShareGroupDescribe": share.describe,
    "ShareFetch": share.fetch,
    "ShareAcknowledge": share.acknowledge,
    "StreamsGroupHeartbeat": streams_groups.heartbeat,
    "StreamsGroupDescribe": streams_groups.describe,
    "InitializeShareGroupState": share.states,
    "ReadShareGroupState": share.states,
    "WriteShareGroupState": share.states,
    "DeleteShareGroupState": share.states,
    "ReadShareGroupStateSummary": share.states,
    "DescribeShareGroupOffsets": share.describe_offsets,
    "AlterShareGroupOffsets": share.alter_offsets,
    "DeleteShareGroupOffsets": share.delete_offsets,
    "GetTelemetrySubscriptions": nothing,
    "PushTelemetry": nothing,
    "ListConfigResources": whole,
    "DescribeTopicPartitions": topics.describe_topic_partitions,
    "AddRaftVoter": whole,
    "RemoveRaftVoter": whole,
}
"""By API. Produce and Fetch check rights themselves; what is answered by hand tells nothing."""


def guarded(api: Api, broker: BrokerInterface, request: Any, context: Context) -> Any:
    """The answer to a request of a client whose rights count. May wait as a green thread."""
    return GUARDS[api.name](Asked(api, broker, request, context))
