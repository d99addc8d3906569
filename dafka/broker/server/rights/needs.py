"""The table of rights: which operations on which resources each API needs, and what is answered without them.

As in Apache Kafka 4 (KafkaApis, ControllerApis). The guards, a test that refuses each of them, and the table
in README.md go by it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import Enum
from typing import NamedTuple

from kafka.errors import (
    ClusterAuthorizationFailedError,
    DelegationTokenAuthorizationFailedError,
    GroupAuthorizationFailedError,
    TopicAuthorizationFailedError,
    TransactionalIdAuthorizationFailedError,
)

from dafka.broker.interface.broker import Error
from dafka.security.acls.terms import Operation, ResourceType

ERRORS: Mapping[ResourceType, Error] = {
    ResourceType.TOPIC: TopicAuthorizationFailedError,
    ResourceType.GROUP: GroupAuthorizationFailedError,
    ResourceType.CLUSTER: ClusterAuthorizationFailedError,
    ResourceType.TRANSACTIONAL_ID: TransactionalIdAuthorizationFailedError,
    ResourceType.USER: DelegationTokenAuthorizationFailedError,
}


class Effect(Enum):
    """The answer to a client that lacks a right."""

    WHOLE = "for the whole request"
    EACH = "for each"
    LEFT_OUT = "left out"


class Need(NamedTuple):
    """A right that an API needs.

    ``instead``: an operation on the cluster that does as well. ``when``: in which requests.
    """

    operation: Operation
    kind: ResourceType
    effect: Effect
    instead: Operation | None = None
    when: str = ""

    @property
    def error(self) -> Error:
        """The error for a client that lacks it."""
        return ERRORS[self.kind]


_TOPIC, _GROUP = ResourceType.TOPIC, ResourceType.GROUP
_CLUSTER, _TRANSACTION = ResourceType.CLUSTER, ResourceType.TRANSACTIONAL_ID
_WHOLE, _EACH, _LEFT_OUT = Effect.WHOLE, Effect.EACH, Effect.LEFT_OUT

_READ_GROUP = Need(Operation.READ, _GROUP, _WHOLE)
_READ_TOPIC = Need(Operation.READ, _TOPIC, _EACH)
_DESCRIBE_TOPIC = Need(Operation.DESCRIBE, _TOPIC, _EACH)
_WRITE_TRANSACTION = Need(Operation.WRITE, _TRANSACTION, _WHOLE)
_CLUSTER_ACTION = Need(Operation.CLUSTER_ACTION, _CLUSTER, _WHOLE)
_DESCRIBE_CLUSTER = Need(Operation.DESCRIBE, _CLUSTER, _WHOLE)
_ALTER_CLUSTER = Need(Operation.ALTER, _CLUSTER, _WHOLE)
_SEE_TOPIC = Need(Operation.DESCRIBE, _TOPIC, _LEFT_OUT)
_SEE_CLUSTER = Need(Operation.DESCRIBE, _CLUSTER, _LEFT_OUT, when="operations on the cluster are asked for")
_ALTER_CONFIGS = tuple(
    Need(Operation.ALTER_CONFIGS, kind, _EACH, when=f"configurations of {what}")
    for kind, what in ((_TOPIC, "topics"), (_GROUP, "groups"), (_CLUSTER, "brokers and client metrics"))
)

NEEDS: Mapping[str, tuple[Need, ...]] = {
    "Produce": (
        _WRITE_TRANSACTION._replace(when="a batch is of a transaction"),
        Need(Operation.WRITE, _TOPIC, _EACH),
    ),
    "Fetch": (_READ_TOPIC,),
    "ListOffsets": (_DESCRIBE_TOPIC,),
    "Metadata": (
        _DESCRIBE_TOPIC._replace(when="topics are named"),
        _SEE_TOPIC._replace(when="all are asked for"),
        Need(Operation.CREATE, _TOPIC, _EACH, Operation.CREATE, "a missing topic would be created"),
        _SEE_CLUSTER,
    ),
    "OffsetCommit": (_READ_GROUP, _READ_TOPIC),
    "OffsetFetch": (
        Need(Operation.DESCRIBE, _GROUP, _EACH),
        _DESCRIBE_TOPIC._replace(when="topics are named"),
        _SEE_TOPIC._replace(when="all are asked for"),
    ),
    "FindCoordinator": (
        Need(Operation.DESCRIBE, _GROUP, _EACH, when="of groups"),
        Need(Operation.DESCRIBE, _TRANSACTION, _EACH, when="of transactional ids"),
        Need(Operation.CLUSTER_ACTION, _CLUSTER, _WHOLE, when="of share partitions"),
    ),
    "JoinGroup": (_READ_GROUP,),
    "Heartbeat": (_READ_GROUP,),
    "LeaveGroup": (_READ_GROUP,),
    "SyncGroup": (_READ_GROUP,),
    "DescribeGroups": (Need(Operation.DESCRIBE, _GROUP, _EACH),),
    "ListGroups": (Need(Operation.DESCRIBE, _GROUP, _LEFT_OUT, Operation.DESCRIBE),),
    "SaslHandshake": (),
    "ApiVersions": (),
    "CreateTopics": (
        Need(Operation.CREATE, _TOPIC, _EACH, Operation.CREATE),
        Need(Operation.DESCRIBE_CONFIGS, _TOPIC, _LEFT_OUT, when="the configuration in the answer"),
    ),
    "DeleteTopics": (
        Need(Operation.DELETE, _TOPIC, _EACH, Operation.DELETE),
        _DESCRIBE_TOPIC._replace(effect=_LEFT_OUT, when="the name in the answer, of topics that ids name"),
    ),
    "DeleteRecords": (Need(Operation.DELETE, _TOPIC, _EACH),),
    "InitProducerId": (
        _WRITE_TRANSACTION._replace(when="there is a transactional id"),
        Need(Operation.IDEMPOTENT_WRITE, _CLUSTER, _WHOLE, when="there is none; or WRITE on any topic"),
    ),
    "OffsetForLeaderEpoch": (_DESCRIBE_TOPIC._replace(instead=Operation.CLUSTER_ACTION),),
    "AddPartitionsToTxn": (
        _WRITE_TRANSACTION._replace(when="up to version 3"),
        Need(Operation.WRITE, _TOPIC, _EACH, when="up to version 3"),
        Need(Operation.CLUSTER_ACTION, _CLUSTER, _WHOLE, when="from version 4 on, which brokers send"),
    ),
    "AddOffsetsToTxn": (_WRITE_TRANSACTION, _READ_GROUP),
    "EndTxn": (_WRITE_TRANSACTION,),
    "WriteTxnMarkers": (Need(Operation.CLUSTER_ACTION, _CLUSTER, _WHOLE, Operation.ALTER),),
    "TxnOffsetCommit": (_WRITE_TRANSACTION, _READ_GROUP, _READ_TOPIC),
    "DescribeAcls": (_DESCRIBE_CLUSTER,),
    "CreateAcls": (_ALTER_CLUSTER,),
    "DeleteAcls": (_ALTER_CLUSTER,),
    "DescribeConfigs": tuple(one._replace(operation=Operation.DESCRIBE_CONFIGS) for one in _ALTER_CONFIGS),
    "AlterConfigs": _ALTER_CONFIGS,
    "AlterReplicaLogDirs": (_ALTER_CLUSTER,),
    "DescribeLogDirs": (_DESCRIBE_CLUSTER,),
    "SaslAuthenticate": (),
    "CreatePartitions": (Need(Operation.ALTER, _TOPIC, _EACH),),
    "CreateDelegationToken": (
        Need(
            Operation.CREATE_TOKENS,
            ResourceType.USER,
            _WHOLE,
            when="for somebody else, from version 3 on; whoever has not logged in is refused before",
        ),
    ),
    "RenewDelegationToken": (),
    "ExpireDelegationToken": (),
    "DescribeDelegationToken": (),
    "DeleteGroups": (Need(Operation.DELETE, _GROUP, _EACH),),
    "ElectLeaders": (_ALTER_CLUSTER,),
    "IncrementalAlterConfigs": _ALTER_CONFIGS,
    "AlterPartitionReassignments": (_ALTER_CLUSTER,),
    "ListPartitionReassignments": (_DESCRIBE_CLUSTER,),
    "OffsetDelete": (Need(Operation.DELETE, _GROUP, _WHOLE), _READ_TOPIC),
    "DescribeClientQuotas": (Need(Operation.DESCRIBE_CONFIGS, _CLUSTER, _WHOLE),),
    "AlterClientQuotas": (Need(Operation.ALTER_CONFIGS, _CLUSTER, _WHOLE),),
    "DescribeUserScramCredentials": (_DESCRIBE_CLUSTER,),
    "AlterUserScramCredentials": (_ALTER_CLUSTER,),
    "DescribeQuorum": (_DESCRIBE_CLUSTER,),
    "UpdateFeatures": (_ALTER_CLUSTER,),
    "DescribeCluster": (_SEE_CLUSTER,),
    "DescribeProducers": (_READ_TOPIC,),
    "UnregisterBroker": (_ALTER_CLUSTER,),
    "DescribeTransactions": (
        Need(Operation.DESCRIBE, _TRANSACTION, _EACH),
        _SEE_TOPIC._replace(when="partitions of transactions"),
    ),
    "ListTransactions": (Need(Operation.DESCRIBE, _TRANSACTION, _LEFT_OUT),),
    "ConsumerGroupHeartbeat": (
        _READ_GROUP,
        _DESCRIBE_TOPIC._replace(effect=_WHOLE, when="topics are named"),
    ),
    "ConsumerGroupDescribe": (
        Need(Operation.DESCRIBE, _GROUP, _EACH),
        Need(Operation.DESCRIBE, _TOPIC, _EACH, when="of the members' topics; for the group"),
    ),
    "GetTelemetrySubscriptions": (),
    "PushTelemetry": (),
    "ListConfigResources": (Need(Operation.DESCRIBE_CONFIGS, _CLUSTER, _WHOLE),),
    "DescribeTopicPartitions": (
        _DESCRIBE_TOPIC._replace(when="topics are named"),
        _SEE_TOPIC._replace(when="all are asked for"),
    ),
    "ShareGroupHeartbeat": (_READ_GROUP, _DESCRIBE_TOPIC._replace(effect=_WHOLE, when="topics are named")),
    "ShareGroupDescribe": (
        Need(Operation.DESCRIBE, _GROUP, _EACH),
        _DESCRIBE_TOPIC._replace(when="of the members' topics; for the group"),
    ),
    "ShareFetch": (_READ_GROUP, _READ_TOPIC),
    "ShareAcknowledge": (_READ_GROUP, _READ_TOPIC),
    "AddRaftVoter": (_ALTER_CLUSTER,),
    "RemoveRaftVoter": (_ALTER_CLUSTER,),
    "StreamsGroupHeartbeat": (
        _READ_GROUP,
        _DESCRIBE_TOPIC._replace(effect=_WHOLE, when="of a topology"),
    ),
    "StreamsGroupDescribe": (
        Need(Operation.DESCRIBE, _GROUP, _EACH),
        _DESCRIBE_TOPIC._replace(when="of the topology; for the group"),
    ),
    "InitializeShareGroupState": (_CLUSTER_ACTION,),
    "ReadShareGroupState": (_CLUSTER_ACTION,),
    "WriteShareGroupState": (_CLUSTER_ACTION,),
    "DeleteShareGroupState": (_CLUSTER_ACTION,),
    "ReadShareGroupStateSummary": (_CLUSTER_ACTION,),
    "DescribeShareGroupOffsets": (
        Need(Operation.DESCRIBE, _GROUP, _EACH),
        _DESCRIBE_TOPIC._replace(when="topics are named"),
        _SEE_TOPIC._replace(when="all are asked for"),
    ),
    "AlterShareGroupOffsets": (_READ_GROUP, _READ_TOPIC),
    "DeleteShareGroupOffsets": (Need(Operation.DELETE, _GROUP, _WHOLE), _READ_TOPIC),
}


def lines() -> Iterator[str]:
    """The table as README.md has it."""
    yield "| API | needs | when | without it |"
    yield "|---|---|---|---|"
    for api, needs in NEEDS.items():
        if not needs:
            yield f"| {api} | nothing | | |"
        for need in needs:
            right = f"{need.operation.name} on {need.kind.name}"
            if need.instead is not None:
                right += f", or {need.instead.name} on CLUSTER"
            without = need.effect.value
            if need.effect is not Effect.LEFT_OUT:
                without = f"{need.error.__name__} {without}"
            yield f"| {api} | {right} | {need.when} | {without} |"


if __name__ == "__main__":
    print("\n".join(lines()))
