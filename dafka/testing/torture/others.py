"""Faults by other members, and by the coordinator, that members of a group meet."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial

import gevent
from kafka.protocol.consumer.metadata import (
    ConsumerProtocolSubscription,
    ConsumerProtocolType,
)

from dafka.broker import BrokerStoppedError
from dafka.broker.interface.broker import (
    BrokerInterface,
    GroupDescription,
    JoinRequest,
    LeavingMember,
    TopicPartition,
)
from dafka.testing.groups import GroupMember, described, take_out

VISITOR = "chaos-visitor"  # the instance id of the member that comes and goes
VISIT_SECONDS = 0.2  # that a slow member stays
_SECONDS = 30.0  # session and rebalance timeout of the visitor, which leaves long before


def groups_of(broker: BrokerInterface, partition: TopicPartition) -> list[str]:
    """The groups with a member that reads a partition."""
    return [
        one.group
        for one in broker.list_groups()
        if any(tuple(partition) in member.partitions for member in described(broker, one.group)[1])
    ]


def disturbance(
    broker: BrokerInterface,
    kind: str,
    group: str,
    *,
    member_id: str | None = None,
    partition: TopicPartition | None = None,
) -> Callable[[], None] | None:
    """The effect of a fault of groups on the member of that id, or on the one that reads a partition; None:
    it is not possible now.

    The outcome is to be called in a green thread of its own: the members' answers may end their other calls,
    those included that the fault has met.
    """
    hit = [
        one
        for one in described(broker, group)[1]
        if one.member_id == member_id or (partition is not None and tuple(partition) in one.partitions)
    ]
    if not hit:
        return None
    if kind == "evict":
        return partial(_evict, broker, group, hit)
    request = _visitor(broker.describe_groups([group])[group])
    seconds = VISIT_SECONDS if kind == "slow_member" else 0.0
    return None if request is None else partial(_visit, broker, group, request, seconds)


def _evict(broker: BrokerInterface, group: str, members: list[GroupMember]) -> None:
    with suppress(BrokerStoppedError):
        take_out(broker, group, members)
    _settle()


def _visitor(group: GroupDescription) -> JoinRequest | None:
    """How another member joins a group; None if it cannot: the group rebalances already, or does not use the
    classic protocol of consumers."""
    if group.state != "Stable" or group.protocol_type != ConsumerProtocolType:
        return None
    subscriptions = [ConsumerProtocolSubscription.decode(one.metadata) for one in group.members]
    topics = sorted({topic for one in subscriptions for topic in one.topics})
    metadata = ConsumerProtocolSubscription(0, topics, b"").encode()
    return JoinRequest(
        "",
        _SECONDS,
        _SECONDS,
        ConsumerProtocolType,
        [(group.protocol, metadata)],
        VISITOR,
        VISITOR,
        "/127.0.0.1",
    )


def _visit(broker: BrokerInterface, group: str, request: JoinRequest, seconds: float) -> None:
    with suppress(BrokerStoppedError):
        joining = gevent.spawn(_join, broker, group, request)
        _settle()
        if seconds:
            gevent.spawn(_leave_later, broker, group, joining, seconds)
        else:
            _leave(broker, group, joining)


def _join(broker: BrokerInterface, group: str, request: JoinRequest) -> None:
    with suppress(BrokerStoppedError):
        broker.join_group(group, request)


def _leave(broker: BrokerInterface, group: str, joining: gevent.Greenlet) -> None:
    with suppress(BrokerStoppedError):
        broker.leave_group(group, [LeavingMember("", VISITOR)])
    _settle()
    joining.kill(block=False)


def _leave_later(broker: BrokerInterface, group: str, joining: gevent.Greenlet, seconds: float) -> None:
    gevent.sleep(seconds)
    _leave(broker, group, joining)


def _settle() -> None:
    """Let all green threads that have been told something act on it."""
    for _ in range(5):
        gevent.sleep(0)
