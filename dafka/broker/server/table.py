"""The APIs of the listener: key, versions, kafka-python's classes, and the function that answers.

Versions are those of Kafka 4's protocol as in kafka-python's schemas, with these exceptions:

- InitProducerId ends with version 5, as Kafka 4.3 announces it (6 is for transactions in two phases, which
  are not ready there);
- Produce is announced from version 0 on, as by Kafka 4 (librdkafka concludes from the lowest version which
  compressions the broker knows), and answered from version 3 on, the first one with record batches.

Produce and Fetch have no ``answer``, because their batches never become objects: see :mod:`.answers.produce`
and :mod:`.answers.fetch`. APIs without a ``home`` have no classes in kafka-python; their answers read and
write bytes.

The features (KIP-584) have a table of their own: :mod:`dafka.broker.embedded.features`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from importlib import import_module
from typing import Any

from kafka.errors import UnsupportedVersionError

from dafka.broker.interface.broker import BrokerInterface
from dafka.broker.server.context import IN_PROCESS, Context

Answer = Callable[[BrokerInterface, Any, Context], Any]
AnswerByHand = Callable[[memoryview, int, int], bytes]

PRODUCE, FETCH, API_VERSIONS, SHARE_FETCH = 0, 1, 18, 78
SASL_HANDSHAKE, SASL_AUTHENTICATE = 17, 36

MESSAGES = "dafka.broker.codec.messages."


class Api:
    """One API, announced with the versions ``first`` to ``last``.

    ``home`` is the module with its classes: below kafka.protocol, or by its whole name a folder of
    :mod:`dafka.broker.codec.messages` (None: its messages are handled as bytes). ``answer`` is the function
    of :mod:`.answers` that answers it. Both are imported at their first use: most brokers get requests for
    few APIs, and creating the classes of all APIs took a fifth of their start.
    """

    def __init__(
        self, key: int, name: str, first: int, last: int, home: str | None, answer: str | None
    ) -> None:
        self.key = key
        self.name = name
        self.first = first
        self.last = last
        self.home = home
        self.is_loaded = False
        """Whether :meth:`load` was called."""
        self._answer = answer

    def load(self) -> None:
        """Import what answers it, which takes up to 20 ms: in a thread beside the hub."""
        if self.home is None:
            self.answer_by_hand  # noqa: B018  (imports it)
        else:
            self.request, self.answer  # noqa: B018
        self.is_loaded = True

    @cached_property
    def request(self) -> Any:
        """kafka-python's class of the request."""
        return self._class("Request")

    @cached_property
    def response(self) -> Any:
        """kafka-python's class of the response."""
        return self._class("Response")

    @cached_property
    def answer(self) -> Answer | None:
        """The function that answers; None for an API whose messages never become objects."""
        return self._function() if self.home is not None and self._answer is not None else None

    @cached_property
    def answer_by_hand(self) -> AnswerByHand | None:
        """The function that answers bytes with bytes, in flexible versions; None for an API with classes."""
        return self._function() if self.home is None else None

    def _function(self) -> Any:
        assert self._answer is not None
        module, function = self._answer.split(".")
        return getattr(import_module(f"dafka.broker.server.answers.{module}"), function)

    def _class(self, kind: str) -> Any:
        assert self.home is not None
        home = self.home if self.home.startswith(MESSAGES) else f"kafka.protocol.{self.home}"
        return getattr(import_module(home), self.name + kind)


_CONSUMER_GROUP = MESSAGES + "consumer_group"
_SHARE = MESSAGES + "share_group"
_STREAMS = MESSAGES + "streams_group"

_CLUSTER, _TELEMETRY, _TOKENS = (MESSAGES + name for name in ("cluster", "telemetry", "delegation_tokens"))

_APIS = [
    Api(0, "Produce", 0, 13, "producer.produce", None),
    Api(1, "Fetch", 4, 18, "consumer.fetch", None),
    Api(2, "ListOffsets", 1, 11, "consumer.offsets", "offsets.list_offsets"),
    Api(3, "Metadata", 0, 13, "metadata.metadata", "metadata.metadata"),
    Api(8, "OffsetCommit", 2, 10, "consumer.group", "group_offsets.offset_commit"),
    Api(9, "OffsetFetch", 1, 10, "consumer.group", "group_offsets.offset_fetch"),
    Api(10, "FindCoordinator", 0, 6, "metadata.find_coordinator", "metadata.find_coordinator"),
    Api(11, "JoinGroup", 0, 9, "consumer.group", "groups.join_group"),
    Api(12, "Heartbeat", 0, 4, "consumer.group", "groups.heartbeat"),
    Api(13, "LeaveGroup", 0, 5, "consumer.group", "groups.leave_group"),
    Api(14, "SyncGroup", 0, 5, "consumer.group", "groups.sync_group"),
    Api(15, "DescribeGroups", 0, 6, "admin.groups", "groups.describe_groups"),
    Api(16, "ListGroups", 0, 5, "admin.groups", "groups.list_groups"),
    Api(17, "SaslHandshake", 0, 1, "sasl", "access.sasl_handshake"),
    Api(18, "ApiVersions", 0, 4, "metadata.api_versions", "api_versions.announced"),
    Api(19, "CreateTopics", 2, 7, "admin.topics", "topics.create_topics"),
    Api(20, "DeleteTopics", 1, 6, "admin.topics", "topics.delete_topics"),
    Api(21, "DeleteRecords", 0, 2, "admin.topics", "offsets.delete_records"),
    Api(22, "InitProducerId", 0, 5, "producer.transaction", "transactions.init_producer_id"),
    Api(23, "OffsetForLeaderEpoch", 2, 4, "consumer.offsets", "offsets.offset_for_leader_epoch"),
    Api(24, "AddPartitionsToTxn", 0, 5, "producer.transaction", "transactions.add_partitions_to_txn"),
    Api(25, "AddOffsetsToTxn", 0, 4, "producer.transaction", "transactions.add_offsets_to_txn"),
    Api(26, "EndTxn", 0, 5, "producer.transaction", "transactions.end_txn"),
    Api(27, "WriteTxnMarkers", 1, 2, "producer.transaction", "transactions.write_txn_markers"),
    Api(28, "TxnOffsetCommit", 0, 5, "producer.transaction", "transactions.txn_offset_commit"),
    Api(29, "DescribeAcls", 1, 3, "admin.acl", "access.describe_acls"),
    Api(30, "CreateAcls", 1, 3, "admin.acl", "access.create_acls"),
    Api(31, "DeleteAcls", 1, 3, "admin.acl", "access.delete_acls"),
    Api(32, "DescribeConfigs", 1, 4, "admin.configs", "configs.describe_configs"),
    Api(33, "AlterConfigs", 0, 2, "admin.configs", "configs.alter_configs"),
    Api(34, "AlterReplicaLogDirs", 1, 2, "admin.cluster", "replicas.alter_replica_log_dirs"),
    Api(35, "DescribeLogDirs", 1, 5, "admin.cluster", "replicas.describe_log_dirs"),
    Api(36, "SaslAuthenticate", 0, 2, "sasl", "access.sasl_authenticate"),
    Api(37, "CreatePartitions", 0, 3, "admin.topics", "topics.create_partitions"),
    Api(38, "CreateDelegationToken", 1, 3, _TOKENS, "tokens.create_delegation_token"),
    Api(39, "RenewDelegationToken", 1, 2, _TOKENS, "tokens.renew_delegation_token"),
    Api(40, "ExpireDelegationToken", 1, 2, _TOKENS, "tokens.expire_delegation_token"),
    Api(41, "DescribeDelegationToken", 1, 3, _TOKENS, "tokens.describe_delegation_token"),
    Api(42, "DeleteGroups", 0, 2, "admin.groups", "groups.delete_groups"),
    Api(43, "ElectLeaders", 0, 2, "admin.topics", "replicas.elect_leaders"),
    Api(44, "IncrementalAlterConfigs", 0, 1, "admin.configs", "configs.incremental_alter_configs"),
    Api(45, "AlterPartitionReassignments", 0, 1, "admin.topics", "replicas.alter_partition_reassignments"),
    Api(46, "ListPartitionReassignments", 0, 0, "admin.topics", "replicas.list_partition_reassignments"),
    Api(47, "OffsetDelete", 0, 0, "consumer.group", "group_offsets.offset_delete"),
    Api(48, "DescribeClientQuotas", 0, 1, "admin.client_quotas", "quotas.describe_client_quotas"),
    Api(49, "AlterClientQuotas", 0, 1, "admin.client_quotas", "quotas.alter_client_quotas"),
    Api(50, "DescribeUserScramCredentials", 0, 0, "admin.users", "access.describe_user_scram_credentials"),
    Api(51, "AlterUserScramCredentials", 0, 0, "admin.users", "access.alter_user_scram_credentials"),
    Api(55, "DescribeQuorum", 0, 2, "admin.cluster", "cluster.describe_quorum"),
    Api(57, "UpdateFeatures", 0, 2, "admin.cluster", "cluster.update_features"),
    Api(60, "DescribeCluster", 0, 2, "admin.cluster", "cluster.describe_cluster"),
    Api(61, "DescribeProducers", 0, 0, "admin.transactions", "transactions.describe_producers"),
    Api(64, "UnregisterBroker", 0, 0, _CLUSTER, "voters.unregister_broker"),
    Api(65, "DescribeTransactions", 0, 0, "admin.transactions", "transactions.describe_transactions"),
    Api(66, "ListTransactions", 0, 2, "admin.transactions", "transactions.list_transactions"),
    Api(68, "ConsumerGroupHeartbeat", 0, 1, _CONSUMER_GROUP, "consumer_groups.consumer_group_heartbeat"),
    Api(69, "ConsumerGroupDescribe", 0, 1, _CONSUMER_GROUP, "consumer_groups.consumer_group_describe"),
    Api(71, "GetTelemetrySubscriptions", 0, 0, _TELEMETRY, "telemetry.get_telemetry_subscriptions"),
    Api(72, "PushTelemetry", 0, 0, _TELEMETRY, "telemetry.push_telemetry"),
    Api(74, "ListConfigResources", 0, 1, "admin.configs", "configs.list_config_resources"),
    Api(75, "DescribeTopicPartitions", 0, 0, "admin.topics", "topics.describe_topic_partitions"),
    Api(76, "ShareGroupHeartbeat", 1, 1, _SHARE, "share.share_group_heartbeat"),
    Api(77, "ShareGroupDescribe", 1, 1, _SHARE, "share.share_group_describe"),
    Api(78, "ShareFetch", 1, 2, _SHARE, "share.share_fetch"),
    Api(79, "ShareAcknowledge", 1, 2, _SHARE, "share.share_acknowledge"),
    Api(80, "AddRaftVoter", 0, 1, _CLUSTER, "voters.add_raft_voter"),
    Api(81, "RemoveRaftVoter", 0, 0, _CLUSTER, "voters.remove_raft_voter"),
    Api(88, "StreamsGroupHeartbeat", 0, 0, _STREAMS, "streams_groups.streams_group_heartbeat"),
    Api(89, "StreamsGroupDescribe", 0, 0, _STREAMS, "streams_groups.streams_group_describe"),
    Api(83, "InitializeShareGroupState", 0, 0, _SHARE, "share_states.initialize_share_group_state"),
    Api(84, "ReadShareGroupState", 0, 0, _SHARE, "share_states.read_share_group_state"),
    Api(85, "WriteShareGroupState", 0, 1, _SHARE, "share_states.write_share_group_state"),
    Api(86, "DeleteShareGroupState", 0, 0, _SHARE, "share_states.delete_share_group_state"),
    Api(87, "ReadShareGroupStateSummary", 0, 1, _SHARE, "share_states.read_share_group_state_summary"),
    Api(90, "DescribeShareGroupOffsets", 0, 1, _SHARE, "share.describe_share_group_offsets"),
    Api(91, "AlterShareGroupOffsets", 0, 0, _SHARE, "share.alter_share_group_offsets"),
    Api(92, "DeleteShareGroupOffsets", 0, 0, _SHARE, "share.delete_share_group_offsets"),
]

BY_KEY: dict[int, Api] = {api.key: api for api in _APIS}

WIDE = frozenset(
    {
        *("DescribeGroups", "ListGroups", "CreateTopics", "DescribeConfigs", "DescribeLogDirs"),
        *("DescribeProducers", "DescribeTransactions", "ListTransactions", "ListConfigResources"),
        *("ConsumerGroupDescribe", "ShareGroupDescribe", "StreamsGroupDescribe", "DescribeShareGroupOffsets"),
        *("DescribeTopicPartitions", "DescribeAcls", "DeleteAcls"),
        *("DescribeClientQuotas", "DescribeUserScramCredentials"),
    }
)
"""APIs whose short requests may have long responses: they are answered in a thread outside of the hub."""


def answer(broker: BrokerInterface, request: Any, context: Context = IN_PROCESS) -> Any:
    """The response to a request as an object of kafka-python; see :mod:`dafka.broker.server`."""
    api = BY_KEY.get(getattr(request, "API_KEY", -1))
    if api is None or api.answer is None or type(request) is not api.request:
        raise UnsupportedVersionError(f"this broker does not answer {type(request).__name__}")
    return api.answer(broker, request, context)
