"""Members with the classic protocol in a group whose assignment the broker computes.

They come from a classic group that was upgraded, or join while it is under way. A join is answered at once,
with the member's epoch as the generation and without a leader; a sync, with what the member has been
assigned. When it has to give partitions up, or can have more, its heartbeats are answered with
REBALANCE_IN_PROGRESS, and it joins again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf
from uuid import UUID, uuid4

from kafka.errors import (
    BrokerResponseError,
    FencedInstanceIdError,
    IllegalGenerationError,
    InconsistentGroupProtocolError,
    MemberIdRequiredError,
    RebalanceInProgressError,
    UnknownMemberIdError,
)
from kafka.protocol.consumer.metadata import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    ConsumerProtocolType,
)

from dafka.broker.groups.consumer.group import ConsumerGroup
from dafka.broker.groups.consumer.member import Member
from dafka.broker.groups.modern.assignment import Assignment
from dafka.broker.interface.consumer_groups import ConsumerHeartbeat
from dafka.broker.interface.groups import NO_MEMBER, Error, Joined, JoinRequest, LeavingMember, Synced
from dafka.broker.limits import GROUP_MAX_SIZE, MIGRATED_OCTETS

NEWEST = 3
"""The newest version of the consumer protocol."""


def join(now: float, group: ConsumerGroup, request: JoinRequest, most: int = GROUP_MAX_SIZE) -> Joined:
    """JoinGroup of a group that may have ``most`` members."""
    member_id = request.member_id
    try:
        group.check_size(member_id, most)
        subscription = _subscription(group, request)
        if member_id == NO_MEMBER:
            member_id = (
                f"{request.client_id if request.instance_id is None else request.instance_id}-{uuid4()}"
            )
            if request.instance_id is None and request.require_known_member:
                return Joined(MemberIdRequiredError, member_id=member_id)
        member, is_new = _joining(group, request, member_id, bool(subscription.owned_partitions))
        heartbeat = ConsumerHeartbeat(
            member_id,
            0,
            request.instance_id,
            rebalance_timeout=request.rebalance_timeout,
            topics=subscription.topics,
            regex="",  # a classic member has none: it may have taken the place of one that has
            owned=by_id(group.ids(), subscription.owned_partitions),
            client_id=request.client_id,
            client_host=request.client_host,
        )
        group.progress(now, member, is_new, heartbeat, request.session_timeout, classic=request)
    except BrokerResponseError as error:
        return Joined(type(error))  # without a member id, as in Kafka
    member.answer_by = now + request.rebalance_timeout
    group.wake_at = min(group.wake_at, member.answer_by)
    protocol = request.protocols[0][0]
    return Joined(None, member.epoch, ConsumerProtocolType, protocol, NO_MEMBER, member_id)


def _subscription(group: ConsumerGroup, request: JoinRequest) -> ConsumerProtocolSubscription:
    names = {name for name, _ in request.protocols}
    for member in group.members.values():
        if member.classic is not None:
            names &= {name for name, _ in member.classic.protocols}
    if request.protocol_type != ConsumerProtocolType or not names:
        raise InconsistentGroupProtocolError(f"the group needs protocols of type {ConsumerProtocolType}")
    metadata = request.protocols[0][1]
    if len(metadata) > MIGRATED_OCTETS:
        raise InconsistentGroupProtocolError(f"a subscription of more than {MIGRATED_OCTETS} octets")
    try:
        return ConsumerProtocolSubscription.decode(metadata)
    except Exception:
        raise InconsistentGroupProtocolError("a subscription that cannot be decoded") from None


def _joining(group: ConsumerGroup, request: JoinRequest, member_id: str, owns: bool) -> tuple[Member, bool]:
    """The member that joins, and whether it is a new one; ``owns``: it says that it has partitions."""
    static = group.static(request.instance_id)
    if static is not None and static.member_id != member_id:
        if request.member_id != NO_MEMBER:
            raise FencedInstanceIdError(f"{request.instance_id} is another member's")
        group.rename(static, member_id)
        return static, False
    if static is None and request.instance_id is not None and request.member_id != NO_MEMBER:  # as in Kafka
        raise UnknownMemberIdError(f"{member_id} is not the static member {request.instance_id}")
    known = group.members.get(member_id)
    if known is not None:
        return known, False
    if owns:  # it was removed, and others have its partitions now: it has to stop reading them first
        raise UnknownMemberIdError(f"{member_id} is no longer a member of the group")
    member = Member(member_id)
    group.add(member)
    return member, True


def sync(
    now: float,
    group: ConsumerGroup,
    generation: int,
    member_id: str,
    instance_id: str | None,
    protocol_type: str | None,
    protocol: str | None,
) -> Synced:
    """SyncGroup."""
    member = _named(group, member_id, instance_id, generation)
    if not isinstance(member, Member):
        return Synced(member)
    assert member.classic is not None
    mine = member.classic.protocols[0][0]
    if protocol_type not in (None, ConsumerProtocolType) or protocol not in (None, mine):
        return Synced(InconsistentGroupProtocolError)
    if group.assignment_epoch > member.epoch and not member.revoking:
        member.answer_by = min(member.answer_by, now + member.rebalance_timeout)
        return Synced(RebalanceInProgressError)
    member.answer_by = inf
    group.touch(now, member, member.classic.session_timeout)
    version = version_of(member.classic.protocols[0][1])
    return Synced(None, encoded(group.names(), member.assigned, version), ConsumerProtocolType, mine)


def heartbeat(
    now: float, group: ConsumerGroup, generation: int, member_id: str, instance_id: str | None
) -> Error | None:
    """Heartbeat."""
    member = _named(group, member_id, instance_id, generation)
    if not isinstance(member, Member):
        return member
    assert member.classic is not None
    if group.topics_changed():
        group.raise_epoch()
    group.touch(now, member, member.classic.session_timeout)
    settled = member.epoch == group.epoch and not member.revoking
    if settled and not (member.lacks and not group.waits_for_others(member)):
        return None
    if member.answer_by == inf:
        member.answer_by = now + member.rebalance_timeout
        group.wake_at = min(group.wake_at, member.answer_by)
    return RebalanceInProgressError


def leave(now: float, group: ConsumerGroup, leaving: Sequence[LeavingMember]) -> list[Error | None]:
    """LeaveGroup, with which an administrator removes members of the newer protocol as well."""
    answers: list[Error | None] = []
    gone: dict[str, Member] = {}
    for member_id, instance_id, _reason in leaving:
        if member_id == NO_MEMBER and instance_id is not None:
            static = group.static(instance_id)
            member_id = NO_MEMBER if static is None else static.member_id
        member = _member(group, member_id, instance_id)
        if isinstance(member, Member):
            gone[member_id] = member
        answers.append(None if isinstance(member, Member) else member)
    group.remove_all(now, gone.values())
    return answers


def _member(group: ConsumerGroup, member_id: str, instance_id: str | None) -> Member | Error:
    """The member of that name, or what is answered."""
    if instance_id is not None:
        static = group.static(instance_id)
        if static is not None and static.member_id != member_id:
            return FencedInstanceIdError
        if static is None:
            return UnknownMemberIdError
    return group.members.get(member_id) or UnknownMemberIdError


def _named(group: ConsumerGroup, member_id: str, instance_id: str | None, generation: int) -> Member | Error:
    """The classic member that something comes from, or what is answered."""
    member = _member(group, member_id, instance_id)
    if not isinstance(member, Member):
        return member
    if member.classic is None:
        return UnknownMemberIdError
    return member if generation == member.epoch else IllegalGenerationError


def by_id(ids: dict[str, UUID], owned: object) -> Assignment:
    """The partitions that a member says it has in its subscription."""
    found: dict[UUID, frozenset[int]] = {}
    for one in owned or ():  # type: ignore[attr-defined]
        topic, numbers = (one.topic, one.partitions) if hasattr(one, "topic") else one
        if topic in ids:
            found[ids[topic]] = frozenset(numbers)
    return found


def decoded(ids: dict[str, UUID], octets: bytes) -> Assignment:
    """The partitions of an assignment as classic members have it. Raises what a malformed one does."""
    if not octets:
        return {}
    found: dict[UUID, set[int]] = {}
    for partition in ConsumerProtocolAssignment.decode(octets).partitions():
        if partition.topic in ids:
            found.setdefault(ids[partition.topic], set()).add(partition.partition)
    return {topic: frozenset(numbers) for topic, numbers in found.items()}


def version_of(subscription: bytes) -> int:
    """The version of the consumer protocol that a member speaks, by what it has joined with."""
    return min(int.from_bytes(subscription[:2], "big"), NEWEST)


def encoded(names: Mapping[UUID, str], assignment: Assignment, version: int) -> bytes:
    """An assignment as classic members have it; ``names`` are those of topics, by id."""
    topics = [(names[topic], sorted(numbers)) for topic, numbers in assignment.items() if topic in names]
    return bytes(ConsumerProtocolAssignment(version, topics, None).encode())
