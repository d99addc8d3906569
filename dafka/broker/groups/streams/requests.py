"""Checks of a Streams group's heartbeat that do not depend on the group's state."""

from __future__ import annotations

from kafka.errors import InvalidRequestError

from dafka.broker.groups.modern.member import JOIN_EPOCH, LEAVE_STATIC_EPOCH
from dafka.broker.groups.streams.tasks import Roles, frozen
from dafka.broker.groups.streams.topology import check_names, check_parts
from dafka.broker.interface.streams_groups import StreamsHeartbeat
from dafka.broker.limits import GROUP_TASKS, MEMBER_TEXT


def check_heartbeat(group: object, request: StreamsHeartbeat) -> None:
    """Raise InvalidRequestError or StreamsInvalidTopologyError."""
    if request.topology is not None:
        check_names(request.topology)
    _check_supported(request)
    if not request.member_id.strip():
        raise InvalidRequestError("MemberId can't be empty.")
    if not isinstance(group, str) or not group.strip():
        raise InvalidRequestError("GroupId can't be empty.")
    if request.rack is not None and not request.rack.strip():
        raise InvalidRequestError("RackId can't be empty.")
    _check_sizes(request)
    owned = (request.active, request.standby, request.warmup)
    if request.member_epoch == JOIN_EPOCH:
        if request.rebalance_timeout is None:
            raise InvalidRequestError("RebalanceTimeoutMs must be provided in first request.")
        for kind, tasks in zip(("ActiveTasks", "StandbyTasks", "WarmupTasks"), owned, strict=True):
            if tasks is None or any(tasks.values()):
                raise InvalidRequestError(f"{kind} must be empty when (re-)joining.")
        if request.topology is None:
            raise InvalidRequestError("Topology must be non-null when (re-)joining.")
        check_parts(request.topology)
    elif request.member_epoch < LEAVE_STATIC_EPOCH:
        raise InvalidRequestError(
            f"MemberEpoch is {request.member_epoch}, but must be greater than or equal to -2."
        )
    elif request.member_epoch == LEAVE_STATIC_EPOCH:
        raise InvalidRequestError("InstanceId can't be null.")
    if None in owned and owned != (None, None, None):
        raise InvalidRequestError("If one task-type is non-null, all must be non-null.")
    if request.topology is not None and request.member_epoch != JOIN_EPOCH:
        raise InvalidRequestError("Topology can only be provided when (re-)joining.")


def owned_in(request: StreamsHeartbeat) -> Roles | None:
    """The tasks that a member says it has; None if it does not say."""
    if request.active is None:
        return None
    return Roles(frozen(request.active), frozen(request.standby or {}), frozen(request.warmup or {}))


def _check_supported(request: StreamsHeartbeat) -> None:
    """As in Apache Kafka 4.3, parts of the protocol are for later."""
    if request.instance_id is not None:
        raise InvalidRequestError("Static membership is not yet supported.")
    if request.offsets is not None:
        raise InvalidRequestError(f"{request.offsets} are not supported yet.")
    if request.warmup:
        raise InvalidRequestError("WarmupTasks are not supported yet.")


def _check_sizes(request: StreamsHeartbeat) -> None:
    texts = [request.member_id, request.rack or "", request.process_id or ""]
    if request.endpoint is not None:
        texts.append(request.endpoint.host)
    texts.append("".join(key + value for key, value in (request.tags or {}).items()))
    if max(map(len, texts)) > MEMBER_TEXT:
        raise InvalidRequestError(
            f"MemberId, RackId, ProcessId, the endpoint's host and all client tags have {MEMBER_TEXT} "
            "characters at most."
        )
    for tasks in (request.active, request.standby):
        if tasks is not None and sum(map(len, tasks.values())) > GROUP_TASKS:
            raise InvalidRequestError(f"A member has {GROUP_TASKS} tasks at most.")
