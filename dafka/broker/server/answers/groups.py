"""Answers about groups: join, sync, heartbeat, leave; list, describe and delete."""

from __future__ import annotations

from typing import Any

from kafka.errors import GroupIdNotFoundError, InvalidGroupIdError
from kafka.protocol.admin.groups import (
    DeleteGroupsResponse,
    DescribeGroupsResponse,
    ListGroupsResponse,
)
from kafka.protocol.consumer.group import (
    HeartbeatResponse,
    JoinGroupResponse,
    LeaveGroupResponse,
    SyncGroupResponse,
)

from dafka.broker.codec.errors import error_code, error_message
from dafka.broker.interface.broker import BrokerInterface, JoinRequest, LeavingMember
from dafka.broker.server.answers.naming import as_named, version_of
from dafka.broker.server.answers.operations import GROUP_OPERATIONS
from dafka.broker.server.context import Context
from dafka.hub.turns import Pace

_Described = DescribeGroupsResponse.DescribedGroup


def join_group(broker: BrokerInterface, request: Any, context: Context) -> Any:
    """Waits until the generation has all its members."""
    version = version_of(request)
    session = request.session_timeout_ms
    rebalance = request.rebalance_timeout_ms if request.rebalance_timeout_ms >= 0 else session
    joined = broker.join_group(
        request.group_id,
        JoinRequest(
            member_id=request.member_id,
            session_timeout=session / 1000,
            rebalance_timeout=rebalance / 1000,
            protocol_type=request.protocol_type,
            protocols=[(protocol.name, protocol.metadata) for protocol in request.protocols],
            instance_id=request.group_instance_id,
            client_id=context.client_id,
            client_host=context.client_host,
            require_known_member=version >= 4,
            can_skip_assignment=version >= 9,
            knows_partitions=not context.is_kafka_python,
        ),
    )
    member = JoinGroupResponse.JoinGroupResponseMember
    return JoinGroupResponse(
        throttle_time_ms=0,
        error_code=error_code(joined.error),
        generation_id=joined.generation,
        protocol_type=joined.protocol_type,
        protocol_name=joined.protocol if version >= 7 else joined.protocol or "",
        leader=joined.leader,
        skip_assignment=joined.skip_assignment,
        member_id=joined.member_id,
        members=[
            member(member_id=one.member_id, group_instance_id=one.instance_id, metadata=one.metadata)
            for one in joined.members
        ],
    )


def sync_group(broker: BrokerInterface, request: Any, context: Context) -> Any:
    """Waits until the leader has sent the assignment."""
    synced = broker.sync_group(
        request.group_id,
        request.generation_id,
        request.member_id,
        request.group_instance_id,
        protocol_type=request.protocol_type,
        protocol=request.protocol_name,
        assignments={one.member_id: one.assignment for one in request.assignments},
    )
    return SyncGroupResponse(
        throttle_time_ms=0,
        error_code=error_code(synced.error),
        protocol_type=synced.protocol_type,
        protocol_name=synced.protocol,
        assignment=synced.assignment,
    )


def heartbeat(broker: BrokerInterface, request: Any, context: Context) -> Any:
    error = broker.heartbeat(
        request.group_id, request.generation_id, request.member_id, request.group_instance_id
    )
    return HeartbeatResponse(throttle_time_ms=0, error_code=error_code(error))


def leave_group(broker: BrokerInterface, request: Any, context: Context) -> Any:
    """From version 3 on for several members, before for one."""
    if version_of(request) < 3:
        (error,) = broker.leave_group(request.group_id, [LeavingMember(request.member_id)])
        return LeaveGroupResponse(throttle_time_ms=0, error_code=error_code(error))
    leaving = [LeavingMember(one.member_id, one.group_instance_id, one.reason) for one in request.members]
    errors = broker.leave_group(request.group_id, leaving)
    left = LeaveGroupResponse.MemberResponse
    if not request.group_id:
        return LeaveGroupResponse(throttle_time_ms=0, error_code=error_code(InvalidGroupIdError), members=[])
    return LeaveGroupResponse(
        throttle_time_ms=0,
        error_code=0,
        members=[
            left(
                member_id=member.member_id, group_instance_id=member.instance_id, error_code=error_code(error)
            )
            for member, error in zip(leaving, errors, strict=True)
        ],
    )


def describe_groups(broker: BrokerInterface, request: Any, context: Context) -> Any:
    """From version 6 on an unknown group gets GROUP_ID_NOT_FOUND, before only the state "Dead"."""
    version = version_of(request)
    operations = GROUP_OPERATIONS if request.include_authorized_operations else None
    described = []
    found = broker.describe_groups(request.groups)
    for name in Pace().over(as_named(request.groups)):
        group = found[name]
        error = group.error
        if error is None and group.state == "Dead" and version >= 6:
            error = GroupIdNotFoundError
        described.append(
            _Described(
                error_code=error_code(error),
                error_message=error_message(error, group.detail or f"Group {name} not found."),
                group_id=name,
                group_state=group.state,
                protocol_type=group.protocol_type,
                protocol_data=group.protocol,
                members=[
                    _Described.DescribedGroupMember(
                        member_id=member.member_id,
                        group_instance_id=member.instance_id,
                        client_id=member.client_id,
                        client_host=member.client_host,
                        member_metadata=member.metadata,
                        member_assignment=member.assignment,
                    )
                    for member in group.members
                ],
                authorized_operations=operations if error is None else None,
            )
        )
    return DescribeGroupsResponse(throttle_time_ms=0, groups=described)


def list_groups(broker: BrokerInterface, request: Any, context: Context) -> Any:
    groups = broker.list_groups(request.states_filter or (), request.types_filter or ())
    return ListGroupsResponse(
        throttle_time_ms=0,
        error_code=0,
        groups=[
            ListGroupsResponse.ListedGroup(
                group_id=one.group,
                protocol_type=one.protocol_type,
                group_state=one.state,
                group_type=one.type.value,
            )
            for one in groups
        ],
    )


def delete_groups(broker: BrokerInterface, request: Any, context: Context) -> Any:
    deleted = DeleteGroupsResponse.DeletableGroupResult
    return DeleteGroupsResponse(
        throttle_time_ms=0,
        results=[
            deleted(group_id=name, error_code=error_code(error))
            for name, error in broker.delete_groups(request.groups_names).items()
        ],
    )
