"""Answers about consumer groups whose assignment the broker computes: heartbeats, and descriptions."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

from dafka.broker.codec.errors import error_code, error_message
from dafka.broker.codec.messages.consumer_group import (
    ConsumerGroupDescribeResponse,
    ConsumerGroupHeartbeatResponse,
)
from dafka.broker.interface.broker import BrokerInterface
from dafka.broker.interface.consumer_groups import ConsumerHeartbeat, ConsumerMember, Partitions
from dafka.broker.server.answers.naming import as_named, version_of
from dafka.broker.server.answers.operations import GROUP_OPERATIONS
from dafka.broker.server.context import Context
from dafka.hub.turns import Pace
from dafka.security.acls.terms import Operation, ResourceType

_Assignment = ConsumerGroupHeartbeatResponse.Assignment
_Described = ConsumerGroupDescribeResponse.DescribedGroup
_Member = _Described.Member
_CLASSIC, _CONSUMER = 0, 1  # the protocols of members


def consumer_group_heartbeat(broker: BrokerInterface, request: Any, context: Context) -> Any:
    version = version_of(request)
    member_id = request.member_id
    if version == 0 and not member_id and request.member_epoch == 0:
        member_id = str(uuid4())  # from version 1 on members choose it
    answer = broker.consumer_group_heartbeat(
        request.group_id,
        ConsumerHeartbeat(
            member_id,
            request.member_epoch,
            request.instance_id,
            request.rack_id,
            None if request.rebalance_timeout_ms == -1 else request.rebalance_timeout_ms / 1000,
            request.subscribed_topic_names,
            request.subscribed_topic_regex if version >= 1 else None,
            request.server_assignor,
            _owned(request.topic_partitions),
            context.client_id,
            context.client_host,
            None if context.rights is None else _may_see(context),
        ),
    )
    assignment = answer.assignment
    return ConsumerGroupHeartbeatResponse(
        throttle_time_ms=0,
        error_code=error_code(answer.error),
        error_message=error_message(answer.error, answer.detail),
        member_id=answer.member_id or None,
        member_epoch=answer.member_epoch,
        heartbeat_interval_ms=int(answer.interval * 1000),
        assignment=None
        if assignment is None
        else _Assignment(
            topic_partitions=[
                _Assignment.TopicPartitions(topic_id=topic, partitions=sorted(numbers))
                for topic, numbers in Pace().over(assignment.items())
            ]
        ),
    )


def _owned(topics: Any) -> Partitions | None:
    if topics is None:
        return None
    owned: dict[Any, set[int]] = {}
    for topic in Pace().over(topics):
        owned.setdefault(topic.topic_id, set()).update(topic.partitions)
    return {topic: frozenset(numbers) for topic, numbers in owned.items()}


def _may_see(context: Context) -> Any:
    rights = context.rights
    assert rights is not None
    return lambda names: rights.allowed(
        "ConsumerGroupHeartbeat", Operation.DESCRIBE, ResourceType.TOPIC, names, True
    )


def consumer_group_describe(broker: BrokerInterface, request: Any, context: Context) -> Any:
    operations = GROUP_OPERATIONS if request.include_authorized_operations else None
    groups = []
    every = broker.describe_consumer_groups(request.group_ids)
    for name in Pace().over(as_named(request.group_ids), every=1):
        found = every[name]
        groups.append(
            _Described(
                error_code=error_code(found.error),
                error_message=error_message(found.error, found.detail),
                group_id=name,
                group_state=found.state,
                group_epoch=found.epoch,
                assignment_epoch=found.assignment_epoch,
                assignor_name=found.assignor,
                members=[_member(one, found.topics) for one in found.members],
                authorized_operations=operations if found.error is None else None,
            )
        )
    return ConsumerGroupDescribeResponse(throttle_time_ms=0, groups=groups)


def _member(one: ConsumerMember, names: Any) -> Any:
    return _Member(
        member_id=one.member_id,
        instance_id=one.instance_id,
        rack_id=one.rack,
        member_epoch=one.epoch,
        client_id=one.client_id,
        client_host=one.client_host,
        subscribed_topic_names=list(one.topics),
        subscribed_topic_regex=one.regex or "",
        assignment=_described(one.assigned, names, _Member.Assignment),
        target_assignment=_described(one.target, names, _Member.Assignment),
        member_type=_CLASSIC if one.is_classic else _CONSUMER,
    )


def _described(partitions: Partitions, names: Any, kind: Any) -> Any:
    """Without topics that were deleted."""
    return kind(
        topic_partitions=[
            kind.TopicPartitions(topic_id=topic, topic_name=names[topic], partitions=sorted(numbers))
            for topic, numbers in Pace().over(partitions.items())
            if topic in names
        ]
    )


def refused(name: str, code: int, message: str | None) -> Any:
    """A group that is not described."""
    return _Described(
        error_code=code,
        error_message=message,
        group_id=name,
        group_state="",
        group_epoch=0,
        assignment_epoch=0,
        assignor_name="",
        members=[],
        authorized_operations=None,
    )
