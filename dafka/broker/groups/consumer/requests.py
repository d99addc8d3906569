"""Checks of a heartbeat that do not depend on its group's state."""

from __future__ import annotations

from kafka.errors import InvalidRequestError, UnsupportedAssignorError

from dafka.broker.groups.consumer.range_assignor import assign_range
from dafka.broker.groups.consumer.uniform_assignor import assign_uniform
from dafka.broker.groups.modern.assignment import Assignor
from dafka.broker.groups.modern.member import JOIN_EPOCH, LEAVE_STATIC_EPOCH
from dafka.broker.interface.consumer_groups import ConsumerHeartbeat
from dafka.broker.limits import MEMBER_TEXT, MEMBER_TOPICS

ASSIGNORS: dict[str, Assignor] = {"uniform": assign_uniform, "range": assign_range}
"""The assignors, the default first."""


def check_heartbeat(group: object, request: ConsumerHeartbeat) -> None:
    """Raise InvalidRequestError or UnsupportedAssignorError."""
    if not isinstance(group, str) or not group.strip():
        raise InvalidRequestError("GroupId can't be empty.")
    if request.instance_id is not None and not request.instance_id.strip():
        raise InvalidRequestError("InstanceId can't be empty.")
    if request.rack is not None and not request.rack.strip():
        raise InvalidRequestError("RackId can't be empty.")
    if max(len(request.member_id), len(request.instance_id or ""), len(request.rack or "")) > MEMBER_TEXT:
        raise InvalidRequestError(f"MemberId, InstanceId and RackId have {MEMBER_TEXT} characters at most.")
    if request.topics is not None and len(request.topics) > MEMBER_TOPICS:
        raise InvalidRequestError(f"A member names {MEMBER_TOPICS} topics at most.")
    epoch = request.member_epoch
    if epoch < LEAVE_STATIC_EPOCH:
        raise InvalidRequestError("MemberEpoch is invalid.")
    if not request.member_id.strip():
        raise InvalidRequestError("MemberId can't be empty.")
    if epoch == JOIN_EPOCH:
        if request.rebalance_timeout is None:
            raise InvalidRequestError("RebalanceTimeoutMs must be provided in first request.")
        if request.owned is None or any(request.owned.values()):
            raise InvalidRequestError("TopicPartitions must be empty when (re-)joining.")
        if request.topics is None and request.regex is None:
            raise InvalidRequestError(
                "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining."
            )
    elif epoch == LEAVE_STATIC_EPOCH and request.instance_id is None:
        raise InvalidRequestError("InstanceId can't be null.")
    if request.assignor is not None and request.assignor not in ASSIGNORS:
        raise UnsupportedAssignorError(
            f"ServerAssignor {request.assignor} is not supported. Supported assignors: "
            f"{', '.join(ASSIGNORS)}."
        )
