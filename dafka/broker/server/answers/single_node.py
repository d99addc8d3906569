"""Answers about what a cluster of one broker has one of, and about what this broker has none of.

There is one replica of each partition, in one folder, and one voter. There are no quotas, no SCRAM users
and no ACLs: asking for them finds none, taking away what is not there ends as in Kafka, and setting one is
refused with the protocol's error.
"""

from __future__ import annotations

import time
from typing import Any

from kafka.errors import (
    InvalidReplicationAssignmentError,
    InvalidRequestError,
    InvalidUpdateVersionError,
    LogDirNotFoundError,
    NoReassignmentInProgressError,
    ResourceNotFoundError,
    SecurityDisabledError,
    UnknownTopicOrPartitionError,
    UnsupportedVersionError,
)
from kafka.protocol.admin.acl import CreateAclsResponse, DeleteAclsResponse, DescribeAclsResponse
from kafka.protocol.admin.client_quotas import AlterClientQuotasResponse, DescribeClientQuotasResponse
from kafka.protocol.admin.cluster import (
    AlterReplicaLogDirsResponse,
    DescribeQuorumResponse,
    UpdateFeaturesResponse,
)
from kafka.protocol.admin.topics import AlterPartitionReassignmentsResponse
from kafka.protocol.admin.users import (
    AlterUserScramCredentialsResponse,
    DescribeUserScramCredentialsResponse,
)

from dafka.broker.codec.errors import error_code, error_message
from dafka.broker.interface.broker import BrokerInterface, Error
from dafka.broker.server.answers.naming import NO_UUID
from dafka.broker.server.context import Context
from dafka.broker.server.table import FEATURES

_QUORUM = "__cluster_metadata"
_QUOTA_ENTITIES = ("user", "client-id", "ip")
_SPECIFIED = 2  # a filter of quotas that takes any name
_NO_AUTHORIZER = "this broker has no ACLs"

_Reassigned = AlterPartitionReassignmentsResponse.ReassignableTopicResponse
_Moved = AlterReplicaLogDirsResponse.AlterReplicaLogDirTopicResult
_Quorum = DescribeQuorumResponse.TopicData
_Quota = AlterClientQuotasResponse.EntryData
_User = DescribeUserScramCredentialsResponse.DescribeUserScramCredentialsResult


# -- replicas -----------------------------------------------------------------------------------


def alter_partition_reassignments(broker: BrokerInterface, request: Any, context: Context) -> Any:
    """Every partition is where it can be, and nothing is under way that could be cancelled."""
    found = broker.metadata([topic.name for topic in request.topics])
    responses = []
    for topic in request.topics:
        known = len(found.topics[topic.name].partitions)
        partitions = []
        for one in topic.partitions:
            number = one.partition_index
            error, detail = _check_reassignment(one.replicas, found.controller_id)
            if not 0 <= number < known:
                error, detail = UnknownTopicOrPartitionError, f"There is no partition {topic.name}-{number}."
            partitions.append(
                _Reassigned.ReassignablePartitionResponse(
                    partition_index=number,
                    error_code=error_code(error),
                    error_message=error_message(error, detail),
                )
            )
        responses.append(_Reassigned(name=topic.name, partitions=partitions))
    return AlterPartitionReassignmentsResponse(
        throttle_time_ms=0,
        allow_replication_factor_change=request.allow_replication_factor_change,
        error_code=0,
        error_message=None,
        responses=responses,
    )


def _check_reassignment(replicas: list[int] | None, node: int) -> tuple[Error | None, str]:
    if replicas is None:
        return NoReassignmentInProgressError, "No reassignment is in progress."
    if list(replicas) != [node]:
        return InvalidReplicationAssignmentError, f"The only broker is {node}, with one replica."
    return None, ""


def alter_replica_log_dirs(broker: BrokerInterface, request: Any, context: Context) -> Any:
    """Every replica is in the one folder that there is."""
    paths = {folder.path for folder in broker.log_directories([])}
    names = {topic.name for folder in request.dirs for topic in folder.topics}
    topics = broker.metadata(names).topics
    results: dict[str, list[Any]] = {}
    for folder in request.dirs:
        for topic in folder.topics:
            known = len(topics[topic.name].partitions)
            for number in topic.partitions:
                error: Error | None = None if 0 <= number < known else UnknownTopicOrPartitionError
                if folder.path not in paths:
                    error = LogDirNotFoundError
                results.setdefault(topic.name, []).append(
                    _Moved.AlterReplicaLogDirPartitionResult(
                        partition_index=number, error_code=error_code(error)
                    )
                )
    return AlterReplicaLogDirsResponse(
        throttle_time_ms=0,
        results=[_Moved(topic_name=name, partitions=some) for name, some in results.items()],
    )


def describe_quorum(broker: BrokerInterface, request: Any, context: Context) -> Any:
    """The broker is the only voter. It has no log of metadata whose end could be told."""
    found = broker.metadata(())
    node, now = found.controller_id, int(time.time() * 1000)
    voter = _Quorum.PartitionData.ReplicaState(
        replica_id=node,
        replica_directory_id=NO_UUID,
        log_end_offset=0,
        last_fetch_timestamp=now,
        last_caught_up_timestamp=now,
    )
    topics = []
    for topic in request.topics:
        partitions = []
        for one in topic.partitions:
            is_it = (topic.topic_name, one.partition_index) == (_QUORUM, 0)
            error: Error | None = None if is_it else UnknownTopicOrPartitionError
            partitions.append(
                _Quorum.PartitionData(
                    partition_index=one.partition_index,
                    error_code=error_code(error),
                    error_message=error_message(error),
                    leader_id=node if is_it else 0,
                    leader_epoch=0,  # of the quorum, whose voter never changes
                    high_watermark=0,
                    current_voters=[voter] if is_it else [],
                    observers=[],
                )
            )
        topics.append(_Quorum(topic_name=topic.topic_name, partitions=partitions))
    listener = DescribeQuorumResponse.Node.Listener
    nodes = [
        DescribeQuorumResponse.Node(
            node_id=number, listeners=[listener(name="PLAINTEXT", host=host, port=port)]
        )
        for number, host, port in found.brokers
        if topics
    ]
    return DescribeQuorumResponse(error_code=0, error_message=None, topics=topics, nodes=nodes)


# -- features and quotas ------------------------------------------------------------------------


def update_features(broker: BrokerInterface, request: Any, context: Context) -> Any:
    """What there is stays at its level."""
    detail = ""
    for update in request.feature_updates:
        level = FEATURES.get(update.feature)
        if level is None or update.max_version_level != level[1]:
            detail = f"{update.feature} cannot be set to {update.max_version_level}"
    error: Error | None = InvalidUpdateVersionError if detail else None
    result = UpdateFeaturesResponse.UpdatableFeatureResult
    return UpdateFeaturesResponse(
        throttle_time_ms=0,
        error_code=error_code(error),
        error_message=error_message(error, detail),
        results=[
            result(feature=update.feature, error_code=0, error_message=None)
            for update in request.feature_updates
            if error is None
        ],
    )


def describe_client_quotas(broker: BrokerInterface, request: Any, context: Context) -> Any:
    """There are none."""
    error, detail = _check_filter(request.components)
    return DescribeClientQuotasResponse(
        throttle_time_ms=0,
        error_code=error_code(error),
        error_message=error_message(error, detail),
        entries=None if error else [],
    )


def _check_filter(components: list[Any]) -> tuple[Error | None, str]:
    kinds = [one.entity_type for one in components]
    for one in components:
        if one.entity_type not in _QUOTA_ENTITIES:
            return UnsupportedVersionError, f"there are no quotas for {one.entity_type!r}"
        if kinds.count(one.entity_type) > 1:
            return InvalidRequestError, f"{one.entity_type} is there more than once"
        if one.match_type == _SPECIFIED and one.match is not None:
            return InvalidRequestError, f"any {one.entity_type} is asked for, and {one.match!r}"
    return None, ""


def alter_client_quotas(broker: BrokerInterface, request: Any, context: Context) -> Any:
    """None can be set, and taking one away changes nothing."""
    entries = []
    for entry in request.entries:
        error: Error | None = None
        if any(one.entity_type not in _QUOTA_ENTITIES for one in entry.entity) or not entry.entity:
            error, detail = InvalidRequestError, f"quotas are for {', '.join(_QUOTA_ENTITIES)}"
        elif any(not change.remove for change in entry.ops):
            error, detail = UnsupportedVersionError, "this broker has no quotas"
        entries.append(
            _Quota(
                error_code=error_code(error),
                error_message=error_message(error, detail) if error else None,
                entity=[
                    _Quota.EntityData(entity_type=one.entity_type, entity_name=one.entity_name)
                    for one in entry.entity
                ],
            )
        )
    return AlterClientQuotasResponse(throttle_time_ms=0, entries=entries)


# -- users and ACLs -----------------------------------------------------------------------------


def describe_user_scram_credentials(broker: BrokerInterface, request: Any, context: Context) -> Any:
    """There are none."""
    return DescribeUserScramCredentialsResponse(
        throttle_time_ms=0,
        error_code=0,
        error_message=None,
        results=[
            _User(
                user=one.name,
                error_code=error_code(ResourceNotFoundError),
                error_message=f"there is no SCRAM user {one.name!r}",
                credential_infos=[],
            )
            for one in request.users or ()
        ],
    )


def alter_user_scram_credentials(broker: BrokerInterface, request: Any, context: Context) -> Any:
    """None can be set, and there is none to be deleted."""
    result = AlterUserScramCredentialsResponse.AlterUserScramCredentialsResult
    errors: dict[str, Error] = {one.name: ResourceNotFoundError for one in request.deletions}
    errors.update({one.name: UnsupportedVersionError for one in request.upsertions})
    return AlterUserScramCredentialsResponse(
        throttle_time_ms=0,
        results=[
            result(user=name, error_code=error_code(error), error_message="this broker has no SCRAM users")
            for name, error in errors.items()
        ],
    )


def describe_acls(broker: BrokerInterface, request: Any, context: Context) -> Any:
    return DescribeAclsResponse(
        throttle_time_ms=0,
        error_code=error_code(SecurityDisabledError),
        error_message=_NO_AUTHORIZER,
        resources=[],
    )


def create_acls(broker: BrokerInterface, request: Any, context: Context) -> Any:
    result = CreateAclsResponse.AclCreationResult
    refused = result(error_code=error_code(SecurityDisabledError), error_message=_NO_AUTHORIZER)
    return CreateAclsResponse(throttle_time_ms=0, results=[refused for _ in request.creations])


def delete_acls(broker: BrokerInterface, request: Any, context: Context) -> Any:
    result = DeleteAclsResponse.DeleteAclsFilterResult
    refused = result(
        error_code=error_code(SecurityDisabledError), error_message=_NO_AUTHORIZER, matching_acls=[]
    )
    return DeleteAclsResponse(throttle_time_ms=0, filter_results=[refused for _ in request.filters])
