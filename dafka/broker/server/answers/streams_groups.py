"""Answers about groups of Kafka Streams: heartbeats, and descriptions."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from dafka.broker.codec.errors import error_code, error_message
from dafka.broker.codec.messages.streams_group import (
    StreamsGroupDescribeResponse,
    StreamsGroupHeartbeatResponse,
)
from dafka.broker.interface.broker import BrokerInterface
from dafka.broker.interface.streams_groups import (
    Endpoint,
    EndpointPartitions,
    InternalTopic,
    StreamsHeartbeat,
    StreamsHeartbeatAnswer,
    StreamsMember,
    Subtopology,
    Tasks,
    TaskShare,
    Topology,
)
from dafka.broker.server.answers.naming import as_named
from dafka.broker.server.answers.operations import GROUP_OPERATIONS
from dafka.broker.server.context import Context
from dafka.hub.turns import Pace
from dafka.security.acls.terms import Operation, ResourceType

NO_NAME = ""
"""For a topic of a copartition group that its subtopology does not have: the topology is refused."""

_Answer = StreamsGroupHeartbeatResponse
_AtEndpoint = _Answer.EndpointToPartitions
_Described = StreamsGroupDescribeResponse.DescribedGroup
_Topology = _Described.Topology
_Subtopology = _Topology.Subtopology
_Member = _Described.Member
_API = "StreamsGroupHeartbeat"


def streams_group_heartbeat(broker: BrokerInterface, request: Any, context: Context) -> Any:
    topology = None if request.topology is None else _topology(request.topology)
    timeout = request.rebalance_timeout_ms
    endpoint = request.user_endpoint
    tags = request.client_tags
    return _answered(
        broker.streams_group_heartbeat(
            request.group_id,
            StreamsHeartbeat(
                request.member_id,
                request.member_epoch,
                request.endpoint_information_epoch,
                request.instance_id,
                request.rack_id,
                None if timeout == -1 else timeout / 1000,
                topology,
                _owned(request.active_tasks),
                _owned(request.standby_tasks),
                _owned(request.warmup_tasks),
                request.process_id,
                None if endpoint is None else Endpoint(endpoint.host, endpoint.port),
                None if tags is None else {tag.key: tag.value for tag in tags},
                _offsets(request),
                request.shutdown_application,
                context.client_id,
                context.client_host,
                None if context.rights is None else _may_create(context),
            ),
        )
    )


def _offsets(request: Any) -> str | None:
    """The first of the fields with offsets of tasks that is there."""
    if request.task_offsets is not None:
        return "TaskOffsets"
    return None if request.task_end_offsets is None else "TaskEndOffsets"


def _answered(answer: StreamsHeartbeatAnswer) -> Any:
    tasks: Iterable[Any] = (None, None, None) if answer.tasks is None else map(_tasks, answer.tasks)
    active, standby, warmup = tasks
    endpoints = answer.endpoints
    return _Answer(
        throttle_time_ms=0,
        error_code=error_code(answer.error),
        error_message=error_message(answer.error, answer.detail),
        member_id=answer.member_id,
        member_epoch=answer.member_epoch,
        heartbeat_interval_ms=int(answer.interval * 1000),
        acceptable_recovery_lag=0,
        task_offset_interval_ms=0,
        status=[_Answer.Status(status_code=one.code, status_detail=one.detail) for one in answer.statuses],
        active_tasks=active,
        standby_tasks=standby,
        warmup_tasks=warmup,
        endpoint_information_epoch=answer.endpoint_epoch,
        partitions_by_user_endpoint=None if endpoints is None else [_at_endpoint(one) for one in endpoints],
    )


def _topology(told: Any) -> Topology:
    return Topology(told.epoch, [_subtopology(one) for one in told.subtopologies])


def _subtopology(one: Any) -> Subtopology:
    sources, regexes = one.source_topics, one.source_topic_regex
    repartition = [topic.name for topic in one.repartition_source_topics]

    def named(group: Any) -> frozenset[str]:
        parts = (
            (sources, group.source_topics),
            (regexes, group.source_topic_regex),
            (repartition, group.repartition_source_topics),
        )
        return frozenset(
            names[place] if 0 <= place < len(names) else NO_NAME
            for names, places in parts
            for place in places
        )

    return Subtopology(
        one.subtopology_id,
        sources,
        regexes,
        [_internal(topic) for topic in one.state_changelog_topics],
        one.repartition_sink_topics,
        [_internal(topic) for topic in one.repartition_source_topics],
        [named(group) for group in one.copartition_groups],
    )


def _internal(topic: Any) -> InternalTopic:
    configs = {config.key: config.value for config in topic.topic_configs}
    return InternalTopic(topic.name, topic.partitions, topic.replication_factor, configs)


def _owned(tasks: Any) -> Tasks | None:
    if tasks is None:
        return None
    owned: dict[str, set[int]] = {}
    for one in tasks:
        owned.setdefault(one.subtopology_id, set()).update(one.partitions)
    return owned


def _may_create(context: Context) -> Any:
    """The ones of these topics that the client may have made."""
    rights = context.rights
    assert rights is not None

    def may_create(names: Collection[str]) -> Collection[str]:
        if rights.allowed(_API, Operation.CREATE, ResourceType.CLUSTER, ["kafka-cluster"], True):
            return names
        return rights.allowed(_API, Operation.CREATE, ResourceType.TOPIC, list(names), True)

    return may_create


def _tasks(tasks: Tasks) -> list[Any]:
    return [
        _Answer.TaskIds(subtopology_id=name, partitions=sorted(numbers))
        for name, numbers in Pace().over(sorted(tasks.items()))
    ]


def _at_endpoint(one: EndpointPartitions) -> Any:
    def of(partitions: Iterable[tuple[str, Collection[int]]]) -> list[Any]:
        return [
            _AtEndpoint.TopicPartition(topic=topic, partitions=list(numbers)) for topic, numbers in partitions
        ]

    endpoint = _AtEndpoint.Endpoint(host=one.endpoint.host, port=one.endpoint.port)
    return _AtEndpoint(
        user_endpoint=endpoint, active_partitions=of(one.active), standby_partitions=of(one.standby)
    )


def streams_group_describe(broker: BrokerInterface, request: Any, context: Context) -> Any:
    operations = GROUP_OPERATIONS if request.include_authorized_operations else None
    every = broker.describe_streams_groups(request.group_ids)
    groups = [
        _Described(
            error_code=error_code(found.error),
            error_message=error_message(found.error, found.detail),
            group_id=name,
            group_state=found.state,
            group_epoch=found.epoch,
            assignment_epoch=found.assignment_epoch,
            topology=None if found.topology is None else _described_topology(found.topology),
            members=[_member(one) for one in found.members],
            authorized_operations=operations if found.error is None else None,
        )
        for name, found in ((name, every[name]) for name in Pace().over(as_named(request.group_ids), every=1))
    ]
    return StreamsGroupDescribeResponse(throttle_time_ms=0, groups=groups)


def _described_topology(topology: Topology) -> Any:
    return _Topology(
        epoch=topology.epoch,
        subtopologies=[
            _Subtopology(
                subtopology_id=one.name,
                source_topics=list(one.sources),
                repartition_sink_topics=list(one.repartition_sinks),
                state_changelog_topics=[_described_topic(topic) for topic in one.changelogs],
                repartition_source_topics=[_described_topic(topic) for topic in one.repartition_sources],
            )
            for one in topology.subtopologies
        ],
    )


def _described_topic(topic: InternalTopic) -> Any:
    return _Subtopology.TopicInfo(
        name=topic.name,
        partitions=topic.partitions,
        replication_factor=topic.replicas,
        topic_configs=[
            _Subtopology.TopicInfo.KeyValue(key=key, value=value) for key, value in topic.configs.items()
        ],
    )


def _member(one: StreamsMember) -> Any:
    endpoint = one.endpoint
    return _Member(
        member_id=one.member_id,
        member_epoch=one.epoch,
        instance_id=None,
        rack_id=one.rack,
        client_id=one.client_id,
        client_host=one.client_host,
        topology_epoch=one.topology_epoch,
        process_id=one.process_id,
        user_endpoint=None if endpoint is None else _Member.Endpoint(host=endpoint.host, port=endpoint.port),
        client_tags=[_Member.KeyValue(key=key, value=value) for key, value in one.tags.items()],
        task_offsets=[],
        task_end_offsets=[],
        assignment=_share(one.assigned),
        target_assignment=_share(one.target),
        is_classic=False,
    )


def _share(share: TaskShare) -> Any:
    kind = _Member.Assignment
    active, standby, warmup = (
        [
            kind.TaskIds(subtopology_id=name, partitions=sorted(numbers))
            for name, numbers in Pace().over(sorted(tasks.items()))
        ]
        for tasks in share
    )
    return kind(active_tasks=active, standby_tasks=standby, warmup_tasks=warmup)


def refused(name: str, code: int, message: str | None) -> Any:
    """A group that is not described."""
    return _Described(
        error_code=code,
        error_message=message,
        group_id=name,
        group_state="",
        group_epoch=0,
        assignment_epoch=0,
        topology=None,
        members=[],
        authorized_operations=None,
    )
