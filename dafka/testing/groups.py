"""Consumer groups of a TestBroker: looking at them, and changing them from outside."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, TypeVar

from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment
from kafka.structs import TopicPartition

from dafka.broker.interface.broker import BrokerInterface, LeavingMember
from dafka.broker.interface.consumer_groups import ConsumerHeartbeat
from dafka.broker.interface.share import CLOSE_SESSION, ShareHeartbeat, ShareRequest
from dafka.broker.interface.streams_groups import StreamsHeartbeat, Tasks, Topology

T = TypeVar("T")

_LEAVE = -1  # the member epoch of a leaving member


class GroupMember(NamedTuple):
    """A member of a group, and the partitions that it reads in the present generation."""

    member_id: str
    client_id: str
    instance_id: str | None
    partitions: frozenset[TopicPartition]


class GroupsOfBroker:
    """The part of a TestBroker that is about groups."""

    @abstractmethod
    def _within(self, work: Callable[[BrokerInterface], T]) -> T:
        """Run ``work`` on the broker inside, past the faults, in the hub."""

    def groups(self) -> list[str]:
        """The names of all groups, those included that only have committed offsets; sorted."""
        return sorted(one.group for one in self._within(lambda broker: broker.list_groups()))

    def group_state(self, group: str) -> str:
        """The state of a group in Kafka's words: "Stable", "Empty", "Dead" if it does not exist, ..."""
        check_group(group)
        return self._within(lambda broker: described(broker, group)[0])

    def members(self, group: str) -> list[GroupMember]:
        """The members of a group with what they read; empty if there is no such group."""
        check_group(group)
        return self._within(lambda broker: described(broker, group)[1])

    def drop_member(self, group: str, member: GroupMember | str | None = None) -> list[GroupMember]:
        """Take a member out of its group as if its session had ended; returns the removed members.

        ``member`` is one of :meth:`members`, or a member id, client id or instance id, with which several may
        be meant; None takes out all of them. The others
        rebalance at once. The consumer hears of it with its next heartbeat: its listener is told that the
        partitions are lost, its commits fail, and its next ``poll`` joins the group again.

        Raises:
            LookupError: the group has no such member.
        """
        check_group(group)

        def meant(one: GroupMember) -> bool:
            if isinstance(member, GroupMember):
                return bool(one.member_id == member.member_id)
            return member is None or member in (one.member_id, one.client_id, one.instance_id)

        def drop(broker: BrokerInterface) -> list[GroupMember]:
            leaving = [one for one in described(broker, group)[1] if meant(one)]
            take_out(broker, group, leaving)
            return leaving

        dropped = self._within(drop)
        if not dropped:
            names = [one.client_id or one.member_id for one in self.members(group)]
            raise LookupError(f"group {group!r} has no member {member!r}; it has {names}")
        return dropped

    def share_offsets(self, group: str, topic: str | None = None) -> dict[TopicPartition, int]:
        """The start offsets of a share group, in one topic or in all: records below are done with.

        Partitions that nobody has read yet are left out.
        """
        check_group(group)
        found = self._within(lambda broker: broker.share_standings(group))
        return {
            TopicPartition(*partition): one.start
            for partition, one in sorted(found.partitions.items())
            if one.start >= 0 and topic in (None, partition[0])
        }

    def _share_lag(self, group: str, topic: str | None) -> dict[TopicPartition, int]:
        """How many records a share group is not done with; empty for a group of another kind."""
        check_group(group)
        found = self._within(lambda broker: broker.share_standings(group))
        return {
            TopicPartition(*partition): (one.ahead or 0) + one.available + (one.acquired or 0)
            for partition, one in sorted(found.partitions.items())
            if one.start >= 0 and topic in (None, partition[0])
        }

    def expire_group(self, group: str) -> None:
        """Forget a group with its committed offsets, as a broker does after ``offsets.retention.minutes``.

        Members are taken out first. Consumers that go on polling found the group anew and start where
        ``auto_offset_reset`` says.

        Raises:
            LookupError: there is no such group.
        """
        check_group(group)

        def expire(broker: BrokerInterface) -> Any:
            take_out(broker, group, described(broker, group)[1])
            return broker.delete_groups([group])[group]

        error = self._within(expire)
        if error is not None:
            raise LookupError(f"group {group!r} cannot expire: {error.__name__}; there are {self.groups()}")


def check_group(group: object) -> None:
    """Raise TypeError for what is no name of a group."""
    if not isinstance(group, str):
        raise TypeError(f"group is a str, not {group!r:.100}")


def described(broker: BrokerInterface, group: str) -> tuple[str, list[GroupMember]]:
    """The state of a group, and its members."""
    shared = broker.describe_share_groups([group])[group]
    if shared.error is None:
        topics = {one.topic_id: name for name, one in broker.metadata(None).topics.items()}
        return shared.state, [
            GroupMember(
                one.member_id,
                one.client_id,
                None,
                frozenset(
                    TopicPartition(topics[topic], number)
                    for topic, numbers in one.assignment.items()
                    if topic in topics
                    for number in numbers
                ),
            )
            for one in shared.members
        ]
    streams = broker.describe_streams_groups([group])[group]
    if streams.error is None:
        return streams.state, [
            GroupMember(one.member_id, one.client_id, None, _read_by(streams.topology, one.assigned.active))
            for one in streams.members
        ]
    newer = broker.describe_consumer_groups([group])[group]
    if newer.error is None:
        return newer.state, [
            GroupMember(
                one.member_id,
                one.client_id,
                one.instance_id,
                frozenset(
                    TopicPartition(newer.topics[topic], number)
                    for topic, numbers in one.assigned.items()
                    if topic in newer.topics
                    for number in numbers
                ),
            )
            for one in newer.members
        ]
    classic = broker.describe_groups([group])[group]
    return classic.state, [
        GroupMember(one.member_id, one.client_id, one.instance_id, _partitions(one.assignment))
        for one in classic.members
    ]


def take_out(broker: BrokerInterface, group: str, members: Iterable[GroupMember]) -> None:
    """Have members leave, whichever protocol their group has."""
    if broker.describe_share_groups([group])[group].error is None:
        for one in members:
            broker.share_heartbeat(ShareHeartbeat(group, one.member_id, _LEAVE))
            # Its session would last as long as its connection.
            broker.share_acknowledge(ShareRequest(group, one.member_id, CLOSE_SESSION, {}))
        return
    if broker.describe_streams_groups([group])[group].error is None:
        for one in members:
            broker.streams_group_heartbeat(group, StreamsHeartbeat(one.member_id, _LEAVE))
        return
    if broker.describe_consumer_groups([group])[group].error is not None:
        broker.leave_group(group, [LeavingMember(one.member_id) for one in members])
        return
    for one in members:
        broker.consumer_group_heartbeat(group, ConsumerHeartbeat(one.member_id, _LEAVE, one.instance_id))


def _read_by(topology: Topology | None, tasks: Tasks) -> frozenset[TopicPartition]:
    found = () if topology is None else topology.read_by(tasks)
    return frozenset(TopicPartition(*partition) for partition in found)


def _partitions(assignment: bytes) -> frozenset[TopicPartition]:
    if not assignment:
        return frozenset()
    return frozenset(ConsumerProtocolAssignment.decode(assignment).partitions())
