"""Groups of all kinds as people see them: members with their partitions, offsets and lags."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, NamedTuple
from uuid import UUID

from dafka.broker.interface.consumer_groups import ConsumerHeartbeat
from dafka.broker.interface.groups import CommittedOffset, GroupType, LeavingMember
from dafka.broker.interface.outcome import Outcome
from dafka.broker.interface.share import ShareHeartbeat
from dafka.broker.interface.streams_groups import StreamsHeartbeat
from dafka.broker.looking.outcomes import Asked, RefusedError, check, printable
from dafka.broker.looking.places import bounds

TopicPartition = tuple[str, int]

_STATIC = frozenset({GroupType.CLASSIC, GroupType.CONSUMER})  # groups whose descriptions name static members
_LEAVE = -1  # the member epoch of a leaving member

_DESCRIBE = {
    GroupType.CLASSIC: "describe_groups",
    GroupType.CONSUMER: "describe_consumer_groups",
    GroupType.SHARE: "describe_share_groups",
    GroupType.STREAMS: "describe_streams_groups",
}


class Member(NamedTuple):
    """A member with the partitions that it reads."""

    member: str
    instance: str | None
    client: str
    host: str
    partitions: frozenset[TopicPartition]


class Group(NamedTuple):
    """A group. ``epoch`` is None for the classic kind. ``lags`` are those that the broker says itself."""

    name: str
    type: GroupType
    state: str
    epoch: int | None
    assignor: str
    members: tuple[Member, ...]
    offsets: Mapping[TopicPartition, int]
    lags: Mapping[TopicPartition, int]

    @property
    def headline(self) -> str:
        """The group in one line."""
        words = [f"{printable(self.name)}: {self.type.value}", self.state]
        words += [f"epoch {self.epoch}"] if self.epoch is not None else []
        words += [f"assigned by {printable(self.assignor)}"] if self.assignor else []
        return ", ".join([*words, f"{len(self.members)} members"])


def kind_of(broker: Asked, name: str) -> GroupType | None:
    """The type of a group; None if there is no such group."""
    return next((one.type for one in broker.call("list_groups") if one.group == name), None)


def described(broker: Asked, name: str) -> Group:
    """A group with all there is to know about it. Raises RefusedError if there is none."""
    kind = kind_of(broker, name)
    if kind is None:
        raise RefusedError(f"there is no group {name!r}: `dafka kafka groups list`")
    found = broker.call(_DESCRIBE[kind], [name])[name]
    check({f"group {name}": found})
    partitions = _partitions_of(broker, kind, found)
    members = tuple(
        Member(
            one.member_id,
            one.instance_id if kind in _STATIC else None,
            one.client_id,
            one.client_host,
            partitions(one),
        )
        for one in found.members
    )
    epoch = None if kind is GroupType.CLASSIC else found.epoch
    assignor = {GroupType.CLASSIC: "protocol", GroupType.STREAMS: ""}.get(kind, "assignor")
    known = lags(broker, name) if kind is GroupType.SHARE else {}
    where = offsets(broker, name, kind)
    by = getattr(found, assignor) if assignor else ""
    return Group(name, kind, found.state, epoch, by, members, where, known)


def progress(broker: Asked, group: Group) -> list[dict[str, Any]]:
    """A row for each partition that the group has an offset in, or a member."""
    owners = {key: one for one in group.members for key in one.partitions}
    keys = sorted({*owners, *group.offsets})
    existing = broker.call("metadata", sorted({topic for topic, _ in keys})).topics if keys else {}
    there = [key for key in keys if any(one.number == key[1] for one in existing[key[0]].partitions)]
    _, ends = bounds(broker, there)
    rows = []
    for key in keys:
        owner, offset, end = owners.get(key), group.offsets.get(key), ends.get(key)
        rows.append(
            {
                "topic": key[0],
                "partition": key[1],
                "offset": offset,
                "end": end,
                "lag": None if offset is None or end is None else group.lags.get(key, end - offset),
                "member": owner and owner.member,
                "client": owner and owner.client,
                "host": owner and owner.host,
            }
        )
    return rows


def _partitions_of(broker: Asked, kind: GroupType, group: Any) -> Callable[[Any], frozenset[TopicPartition]]:
    """Which partitions a member of a described group reads."""
    if kind is GroupType.CLASSIC:
        return lambda one: _assigned(group, one.assignment)
    if kind is GroupType.CONSUMER:
        return lambda one: _named(one.assigned, group.topics)
    if kind is GroupType.SHARE:
        ids = {id_ for one in group.members for id_ in one.assignment}
        names = broker.call("topic_names", ids) if ids else {}
        return lambda one: _named(one.assignment, names)
    if group.topology is None:
        return lambda one: frozenset()
    return lambda one: frozenset(group.topology.read_by(one.assigned.active))


def lags(broker: Asked, name: str) -> dict[TopicPartition, int]:
    """The lags of a share group, which only the broker knows."""
    progress = broker.call("share_offsets", name)
    return {key: one.lag for key, one in progress.partitions.items() if one.lag >= 0}


def offsets(broker: Asked, name: str, kind: GroupType | None) -> dict[TopicPartition, int]:
    """How far a group has come: the next offset of each partition."""
    if kind is GroupType.SHARE:
        found = broker.call("share_offsets", name)
        check({f"group {name}": found})
        return {key: one.start for key, one in found.partitions.items() if one.start >= 0}
    return {key: one.offset for key, one in broker.call("fetch_offsets", name).items()}


def change_offsets(
    broker: Asked, name: str, kind: GroupType | None, new: Mapping[TopicPartition, int]
) -> dict[TopicPartition, Any]:
    """Set offsets; the error of each partition, or None."""
    if kind is not GroupType.SHARE:
        committed = {key: CommittedOffset(offset) for key, offset in new.items()}
        outcomes: dict[TopicPartition, Any] = broker.call("commit_offsets", name, committed)
        return outcomes
    found = broker.call("alter_share_offsets", name, new)
    return {key: found.error or found.parts.get(key) for key in new}


def forget_offsets(
    broker: Asked, name: str, kind: GroupType | None, keys: Collection[TopicPartition]
) -> dict[Any, Any]:
    """Delete offsets, of a share group those of whole topics; the error of each, or None."""
    if kind is not GroupType.SHARE:
        outcomes: dict[Any, Any] = broker.call("delete_offsets", name, keys)
        return outcomes
    topics = sorted({topic for topic, _ in keys})
    found = broker.call("delete_share_offsets", name, topics)
    return {topic: found.error or found.parts.get((topic, -1)) for topic in topics}


def take_out(
    broker: Asked, name: str, kind: GroupType, member: str, instance: str | None, reason: str
) -> Outcome:
    """Have a member leave its group, whichever protocol that has.

    It finds out with its next heartbeat, and may join again.
    """
    if kind is GroupType.CLASSIC:
        leaving = LeavingMember("" if instance else member, instance, reason)
        return Outcome(broker.call("leave_group", name, [leaving])[0])
    if kind is GroupType.SHARE:
        answer = broker.call("share_heartbeat", ShareHeartbeat(name, member, _LEAVE))
    elif kind is GroupType.STREAMS:
        answer = broker.call("streams_group_heartbeat", name, StreamsHeartbeat(member, _LEAVE))
    else:
        answer = broker.call("consumer_group_heartbeat", name, ConsumerHeartbeat(member, _LEAVE, instance))
    return Outcome(answer.error, answer.detail)


def _assigned(group: Any, assignment: bytes) -> frozenset[TopicPartition]:
    """The partitions in what the leader of a classic group has told a member."""
    from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment, ConsumerProtocolType

    if group.protocol_type != ConsumerProtocolType or not assignment:
        return frozenset()
    try:
        decoded = ConsumerProtocolAssignment.decode(assignment)
        return frozenset((str(topic), int(number)) for topic, number in decoded.partitions())
    except Exception:  # octets of a stranger
        return frozenset()


def _named(assigned: Mapping[UUID, Iterable[int]], names: Mapping[UUID, str]) -> frozenset[TopicPartition]:
    return frozenset(
        (names.get(id_, str(id_)), number) for id_, numbers in assigned.items() for number in numbers
    )
