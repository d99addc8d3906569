"""The APIs of the listener: key, versions, kafka-python's classes, and who answers.

Versions are those of Kafka 4's protocol as kafka-python's schemas have them, with three kinds of exceptions:

- transactions are offered as they were before KIP-890's second part: EndTxn and TxnOffsetCommit up to 4,
  InitProducerId up to 5, AddPartitionsToTxn up to 3 (what is above is between brokers);
- Produce is announced from 0 on, as Kafka 4 does (librdkafka takes the lowest version for a sign of which
  compressions the broker knows), and answered from 3 on: before that there are no record batches;
- Produce and Fetch have no ``answer``: their batches pass through :mod:`.produce` and :mod:`.fetch`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from kafka.protocol import admin, consumer, metadata, producer

from dafka.broker.interface import BrokerInterface
from dafka.broker.wire import (
    configs,
    group_offsets,
    groups,
    offsets,
    topics,
    transactions,
)
from dafka.broker.wire import metadata as cluster
from dafka.broker.wire.context import Context

Answer = Callable[[BrokerInterface, Any, Context], Any]

PRODUCE, FETCH, API_VERSIONS = 0, 1, 18


class Api(NamedTuple):
    """One API: the versions ``first`` to ``last`` of it are announced."""

    key: int
    first: int
    last: int
    request: Any
    response: Any
    answer: Answer | None


def _api(module: Any, name: str, answer: Answer | None, first: int = -1, last: int = -1) -> Api:
    request = getattr(module, f"{name}Request")
    oldest, newest = request.valid_versions
    return Api(
        request.API_KEY,
        oldest if first < 0 else first,
        newest if last < 0 else last,
        request,
        getattr(module, f"{name}Response"),
        answer,
    )


def _api_versions(broker: BrokerInterface, request: Any, context: Context) -> Any:
    return api_versions(0)


_APIS = [
    _api(producer, "Produce", None, first=0),
    _api(consumer, "Fetch", None),
    _api(consumer, "ListOffsets", offsets.list_offsets),
    _api(metadata, "Metadata", cluster.metadata),
    _api(consumer, "OffsetCommit", group_offsets.offset_commit),
    _api(consumer, "OffsetFetch", group_offsets.offset_fetch),
    _api(metadata, "FindCoordinator", cluster.find_coordinator),
    _api(consumer, "JoinGroup", groups.join_group),
    _api(consumer, "Heartbeat", groups.heartbeat),
    _api(consumer, "LeaveGroup", groups.leave_group),
    _api(consumer, "SyncGroup", groups.sync_group),
    _api(admin, "DescribeGroups", groups.describe_groups),
    _api(admin, "ListGroups", groups.list_groups),
    _api(metadata, "ApiVersions", _api_versions),
    _api(admin, "CreateTopics", topics.create_topics),
    _api(admin, "DeleteTopics", topics.delete_topics),
    _api(admin, "DeleteRecords", offsets.delete_records),
    _api(producer, "InitProducerId", transactions.init_producer_id, last=5),
    _api(consumer, "OffsetForLeaderEpoch", offsets.offset_for_leader_epoch),
    _api(producer, "AddPartitionsToTxn", transactions.add_partitions_to_txn, last=3),
    _api(producer, "AddOffsetsToTxn", transactions.add_offsets_to_txn),
    _api(producer, "EndTxn", transactions.end_txn, last=4),
    _api(producer, "TxnOffsetCommit", transactions.txn_offset_commit, last=4),
    _api(admin, "DescribeConfigs", configs.describe_configs),
    _api(admin, "AlterConfigs", configs.alter_configs),
    _api(admin, "DescribeLogDirs", configs.describe_log_dirs),
    _api(admin, "CreatePartitions", topics.create_partitions),
    _api(admin, "DeleteGroups", groups.delete_groups),
    _api(admin, "ElectLeaders", topics.elect_leaders),
    _api(admin, "IncrementalAlterConfigs", configs.incremental_alter_configs),
    _api(admin, "ListPartitionReassignments", topics.list_partition_reassignments),
    _api(consumer, "OffsetDelete", group_offsets.offset_delete),
    _api(admin, "DescribeCluster", cluster.describe_cluster),
    _api(admin, "DescribeProducers", transactions.describe_producers),
    _api(admin, "DescribeTransactions", transactions.describe_transactions),
    _api(admin, "ListTransactions", transactions.list_transactions),
    _api(admin, "ListConfigResources", configs.list_config_resources),
    _api(admin, "DescribeTopicPartitions", cluster.describe_topic_partitions),
]

BY_KEY: dict[int, Api] = {api.key: api for api in _APIS}
BY_REQUEST: dict[type, Api] = {api.request: api for api in _APIS}


def api_versions(error_code: int) -> Any:
    """What is offered."""
    response = metadata.ApiVersionsResponse
    return response(
        error_code=error_code,
        throttle_time_ms=0,
        api_keys=[
            response.ApiVersion(api_key=api.key, min_version=api.first, max_version=api.last)
            for api in BY_KEY.values()
        ],
    )
