"""Rights of the APIs about the cluster, configurations, accounts and access control lists."""

from __future__ import annotations

from typing import Any

from kafka.protocol.admin.acl import CreateAclsResponse, DeleteAclsResponse
from kafka.protocol.admin.client_quotas import AlterClientQuotasResponse
from kafka.protocol.admin.cluster import AlterReplicaLogDirsResponse, DescribeLogDirsResponse
from kafka.protocol.admin.configs import DescribeConfigsResponse
from kafka.protocol.admin.topics import ElectLeadersResponse
from kafka.protocol.admin.users import AlterUserScramCredentialsResponse

from dafka.broker.codec.errors import error_code, error_message
from dafka.broker.interface.admin import BROKER_LOGGER, ResourceType
from dafka.broker.interface.broker import Error
from dafka.broker.server.rights.asked import Asked, Items, all_refused
from dafka.broker.server.rights.needs import Need
from dafka.broker.server.rights.topics import cluster_operations
from dafka.security.acls.terms import CLUSTER_NAME

_Elected = ElectLeadersResponse.ReplicaElectionResult
_Moved = AlterReplicaLogDirsResponse.AlterReplicaLogDirTopicResult
_Quota = AlterClientQuotasResponse.EntryData
_NOTHING = str  # the name of what needs no name, because a whole list is refused


def describe_cluster(asked: Asked) -> Any:
    """Everybody sees the brokers, and those who may describe the cluster what they may do to it."""
    response = asked.answer()
    if asked.request.include_cluster_authorized_operations and not response.error_code:
        response.authorized_operations = cluster_operations(asked)
    return response


def describe_log_dirs(asked: Asked) -> Any:
    """Before version 3 a refused client sees no folders, and no error."""
    (need,) = asked.needs
    if asked.may(need):
        return asked.answer()
    return DescribeLogDirsResponse(throttle_time_ms=0, error_code=error_code(need.error), results=[])


# -- configurations --------------------------------------------------------------------------------


def _config_need(asked: Asked, resource: Any) -> tuple[Need, str] | None:
    topic, group, cluster = asked.needs
    kind = resource.resource_type
    if kind == ResourceType.TOPIC:
        return topic, resource.resource_name
    if kind == ResourceType.GROUP:
        return group, resource.resource_name
    if kind in (ResourceType.BROKER, ResourceType.CLIENT_METRICS, BROKER_LOGGER):
        return cluster, CLUSTER_NAME
    return None  # of no such kind, which is not a matter of rights


def _refused_configs(asked: Asked) -> list[tuple[Any, Error]]:
    """Take resources that are refused out of the request."""
    needs = [(one, _config_need(asked, one)) for one in asked.request.resources]
    names: dict[Need, set[str]] = {}
    for _, found in needs:
        if found is not None:
            names.setdefault(found[0], set()).add(found[1])
    allowed = {need: asked.allowed(need, some) for need, some in names.items()}
    refused = [
        (one, found[0].error)
        for one, found in needs
        if found is not None and found[1] not in allowed[found[0]]
    ]
    if refused:
        asked.request.resources = [
            one for one, found in needs if found is None or found[1] in allowed[found[0]]
        ]
    return refused


def describe_configs(asked: Asked) -> Any:
    """Settings of topics and groups, and with a right on the cluster those of brokers."""
    refused = _refused_configs(asked)
    response = asked.answer()
    response.results.extend(
        DescribeConfigsResponse.DescribeConfigsResult(
            error_code=error_code(error),
            error_message=error_message(error),
            resource_type=one.resource_type,
            resource_name=one.resource_name,
            configs=[],
        )
        for one, error in refused
    )
    return response


def alter_configs(asked: Asked) -> Any:
    """The same, to change them; of AlterConfigs and IncrementalAlterConfigs."""
    refused = _refused_configs(asked)
    response = asked.answer()
    response.responses.extend(
        asked.response_class.AlterConfigsResourceResponse(
            error_code=error_code(error),
            error_message=error_message(error),
            resource_type=one.resource_type,
            resource_name=one.resource_name,
        )
        for one, error in refused
    )
    return response


# -- a right on the cluster, and errors of each thing ----------------------------------------------


def _no_election(topic: Any, error: Error) -> Any:
    return _Elected(
        topic=topic.topic,
        partition_result=[
            _Elected.PartitionResult(
                partition_id=number, error_code=error_code(error), error_message=error_message(error)
            )
            for number in topic.partitions
        ],
    )


_elections = Items("topic_partitions", "replica_election_results", _NOTHING, _no_election)


def elect_leaders(asked: Asked) -> Any:
    """The error is in the response, and in each of its partitions."""
    (need,) = asked.needs
    if asked.may(need):
        return asked.answer()
    response = _elections.all_refused(asked, need.error)
    response.error_code = error_code(need.error)
    return response


def _no_acl(creation: Any, error: Error) -> Any:
    return CreateAclsResponse.AclCreationResult(
        error_code=error_code(error), error_message=error_message(error)
    )


def _no_deletion(wanted: Any, error: Error) -> Any:
    return DeleteAclsResponse.DeleteAclsFilterResult(
        error_code=error_code(error), error_message=error_message(error), matching_acls=[]
    )


def _no_quota(entry: Any, error: Error) -> Any:
    return _Quota(
        error_code=error_code(error),
        error_message=error_message(error),
        entity=[
            _Quota.EntityData(entity_type=one.entity_type, entity_name=one.entity_name)
            for one in entry.entity
        ],
    )


create_acls = all_refused(Items("creations", "results", _NOTHING, _no_acl))
delete_acls = all_refused(Items("filters", "filter_results", _NOTHING, _no_deletion))
alter_client_quotas = all_refused(Items("entries", "entries", _NOTHING, _no_quota))


def alter_replica_log_dirs(asked: Asked) -> Any:
    """The error is in each partition."""
    (need,) = asked.needs
    if asked.may(need):
        return asked.answer()
    result = _Moved.AlterReplicaLogDirPartitionResult
    code = error_code(need.error)
    topics = [topic for folder in asked.request.dirs for topic in folder.topics]
    return AlterReplicaLogDirsResponse(
        throttle_time_ms=0,
        results=[
            _Moved(
                topic_name=topic.name,
                partitions=[result(partition_index=number, error_code=code) for number in topic.partitions],
            )
            for topic in topics
        ],
    )


def alter_user_scram_credentials(asked: Asked) -> Any:
    """The error is in each user."""
    (need,) = asked.needs
    if asked.may(need):
        return asked.answer()
    result = AlterUserScramCredentialsResponse.AlterUserScramCredentialsResult
    users = dict.fromkeys(one.name for one in (*asked.request.deletions, *asked.request.upsertions))
    return AlterUserScramCredentialsResponse(
        throttle_time_ms=0,
        results=[
            result(user=user, error_code=error_code(need.error), error_message=error_message(need.error))
            for user in users
        ],
    )
