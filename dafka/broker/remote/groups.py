"""The group part of a remote broker: each call goes to the group's coordinator.

A coordinator that has moved, is loading or cannot be reached is looked for again. If that
fails the error is CoordinatorNotAvailableError, after which the caller may try again.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import gevent
from kafka.errors import (
    CoordinatorNotAvailableError,
    KafkaError,
    UnknownTopicOrPartitionError,
    for_code,
)
from kafka.protocol.admin import (
    DeleteGroupsRequest,
    DescribeGroupsRequest,
    ListGroupsRequest,
)
from kafka.protocol.consumer import (
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    OffsetCommitRequest,
    OffsetDeleteRequest,
    OffsetFetchRequest,
    SyncGroupRequest,
)

from dafka.broker.codec.errors import error_of
from dafka.broker.interface.groups import (
    NO_GENERATION,
    NO_MEMBER,
    CommittedOffset,
    Error,
    GroupDescription,
    GroupInterface,
    GroupType,
    Joined,
    JoinedMember,
    JoinRequest,
    LeavingMember,
    ListedGroup,
    MemberDescription,
    Synced,
    TopicPartition,
)
from dafka.broker.remote.cluster import GROUP, Cluster
from dafka.broker.remote.connection import CLIENT_ID
from dafka.broker.remote.coordinators import ask_coordinator, describe_each, partition_errors, unavailable
from dafka.broker.remote.group_offsets import ask_by_partition, committed_topics
from dafka.broker.remote.limits import HEARTBEAT_PAUSE, JOIN_MARGIN
from dafka.hub.lines import KeyedFifoLocks

_SYNC_WAIT = 300.0  # seconds that a leader may take to assign; the coordinator ends it much earlier

_GENERATIONS = 8  # the last version of OffsetCommit without member epochs


class RemoteGroups(GroupInterface):
    """Groups of a cluster."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._committing = KeyedFifoLocks()

    def join_group(self, group: str, request: JoinRequest) -> Joined:
        join = JoinGroupRequest(
            group_id=group,
            session_timeout_ms=_ms(request.session_timeout),
            rebalance_timeout_ms=_ms(request.rebalance_timeout),
            member_id=request.member_id,
            group_instance_id=request.instance_id,
            protocol_type=request.protocol_type,
            protocols=[
                JoinGroupRequest.JoinGroupRequestProtocol(name=name, metadata=metadata)
                for name, metadata in request.protocols
            ],
            reason=None,
        )
        # Versions below 4 admit a member at once; the ones above 8 may leave the assignment out.
        highest = 3 if not request.require_known_member and request.instance_id is None else 9
        try:
            response = ask_coordinator(
                self._cluster,
                GROUP,
                group,
                join,
                highest=highest if request.can_skip_assignment else min(highest, 8),
                lowest=0 if request.instance_id is None else 5,
                wait=request.rebalance_timeout + JOIN_MARGIN,
                client_id=request.client_id or CLIENT_ID,
            )
        except KafkaError as error:
            return Joined(unavailable(error), member_id=request.member_id)
        return Joined(
            error_of(response.error_code),
            response.generation_id,
            response.protocol_type or request.protocol_type,
            response.protocol_name,
            response.leader,
            response.member_id,
            [
                JoinedMember(one.member_id, one.group_instance_id, bytes(one.metadata))
                for one in response.members
            ],
            bool(response.skip_assignment),
        )

    def sync_group(
        self,
        group: str,
        generation: int,
        member_id: str,
        instance_id: str | None = None,
        *,
        protocol_type: str | None = None,
        protocol: str | None = None,
        assignments: Mapping[str, bytes] | None = None,
    ) -> Synced:
        request = SyncGroupRequest(
            group_id=group,
            generation_id=generation,
            member_id=member_id,
            group_instance_id=instance_id,
            protocol_type=protocol_type,
            protocol_name=protocol,
            assignments=[
                SyncGroupRequest.SyncGroupRequestAssignment(member_id=one, assignment=assignment)
                for one, assignment in (assignments or {}).items()
            ],
        )
        lowest = 0 if instance_id is None else 3
        try:
            response = ask_coordinator(self._cluster, GROUP, group, request, lowest=lowest, wait=_SYNC_WAIT)
        except KafkaError as error:
            return Synced(unavailable(error))
        return Synced(
            error_of(response.error_code),
            bytes(response.assignment or b""),
            response.protocol_type or protocol_type,
            response.protocol_name or protocol,
        )

    def heartbeat(
        self,
        group: str,
        generation: int,
        member_id: str,
        instance_id: str | None = None,
        *,
        max_wait: float = 0.0,
    ) -> Error | None:
        request = HeartbeatRequest(
            group_id=group, generation_id=generation, member_id=member_id, group_instance_id=instance_id
        )
        deadline = time.monotonic() + max_wait
        while True:
            try:
                response = ask_coordinator(
                    self._cluster, GROUP, group, request, lowest=0 if instance_id is None else 3
                )
            except KafkaError as error:
                return unavailable(error)
            left = deadline - time.monotonic()
            if response.error_code or left <= 0:
                return error_of(response.error_code)
            gevent.sleep(min(left, HEARTBEAT_PAUSE))
            if left <= HEARTBEAT_PAUSE:
                return None

    def leave_group(self, group: str, members: Sequence[LeavingMember]) -> list[Error | None]:
        answers: dict[tuple[str, str | None], Error | None] = {}
        request = LeaveGroupRequest(
            group_id=group,
            member_id=members[0].member_id if members else "",
            members=[
                LeaveGroupRequest.MemberIdentity(
                    member_id=one.member_id, group_instance_id=one.instance_id, reason=one.reason
                )
                for one in members
            ],
        )
        one_by_one = len(members) > 1 or any(one.instance_id is not None for one in members)
        try:
            response = ask_coordinator(self._cluster, GROUP, group, request, lowest=3 if one_by_one else 0)
        except KafkaError as error:
            return [unavailable(error)] * len(members)
        if response.error_code or not response.members:
            return [error_of(response.error_code)] * len(members)
        for one in response.members:
            answers[one.member_id, one.group_instance_id] = error_of(one.error_code)
        return [answers.get((one.member_id, one.instance_id)) for one in members]

    def describe_groups(self, groups: Iterable[str]) -> dict[str, GroupDescription]:
        return describe_each(
            self._cluster,
            groups,
            lambda group: DescribeGroupsRequest(groups=[group], include_authorized_operations=False),
            _description,
            lambda error, _: GroupDescription(error, ""),
        )

    def list_groups(self, states: Iterable[str] = (), types: Iterable[str] = ()) -> list[ListedGroup]:
        """All groups; each broker is asked for those it coordinates. Raises KafkaError."""
        wanted = {state.lower() for state in states}
        kinds = {one.lower() for one in types}
        lowest = 5 if kinds else 4 if wanted else 0
        request = ListGroupsRequest(states_filter=[], types_filter=[])
        groups: dict[str, ListedGroup] = {}
        for node in self._cluster.nodes:
            response = self._cluster.ask(node, request, lowest=lowest)
            if response.error_code:
                raise for_code(response.error_code)(f"listing the groups of broker {node.node_id}")
            for one in response.groups:
                groups[one.group_id] = ListedGroup(
                    one.group_id, one.protocol_type, one.group_state or "", _type(one.group_type)
                )
        return [
            one
            for one in groups.values()
            if (not wanted or one.state.lower() in wanted) and (not kinds or one.type.value in kinds)
        ]

    def delete_groups(self, groups: Iterable[str]) -> dict[str, Error | None]:
        answers: dict[str, Error | None] = {}
        for group in groups:
            request = DeleteGroupsRequest(groups_names=[group])
            try:
                response = ask_coordinator(
                    self._cluster,
                    GROUP,
                    group,
                    request,
                    lambda response: [one.error_code for one in response.results],
                )
            except KafkaError as error:
                answers[group] = unavailable(error)
                continue
            codes = [one.error_code for one in response.results if one.group_id == group]
            answers[group] = error_of(codes[0]) if codes else CoordinatorNotAvailableError
        return answers

    def commit_offsets(
        self,
        group: str,
        offsets: Mapping[TopicPartition, CommittedOffset],
        *,
        generation: int = NO_GENERATION,
        member_id: str = NO_MEMBER,
        instance_id: str | None = None,
        knows_epochs: bool = True,
    ) -> dict[TopicPartition, Error | None]:
        topic_class = OffsetCommitRequest.OffsetCommitRequestTopic
        request = OffsetCommitRequest(
            group_id=group,
            generation_id_or_member_epoch=generation,
            member_id=member_id,
            group_instance_id=instance_id,
            retention_time_ms=-1,
            topics=committed_topics(topic_class, topic_class.OffsetCommitRequestPartition, offsets),
        )
        # One commit of a member after the other: one that is repeated, because the coordinator has moved,
        # would overwrite what the member has committed since.
        with self._committing.held((group, member_id)):
            return ask_by_partition(
                self._cluster,
                group,
                request,
                offsets,
                lowest=1 if instance_id is None else 7,
                highest=None if knows_epochs else _GENERATIONS,
            )

    def fetch_offsets(
        self,
        group: str,
        partitions: Iterable[TopicPartition] | None = None,
        *,
        require_stable: bool = False,
        member_id: str | None = None,
        member_epoch: int = NO_GENERATION,
    ) -> dict[TopicPartition, CommittedOffset]:
        """A group's positions. Raises KafkaError: the coordinator cannot be reached, or an error for one of
        the partitions."""
        topics: dict[str, Any] | None = None
        topic_class = OffsetFetchRequest.OffsetFetchRequestTopic
        if partitions is not None:
            topics = {}
            for name, number in partitions:
                topic = topics.setdefault(name, topic_class(name=name, partition_indexes=[]))
                topic.partition_indexes.append(number)
        request = OffsetFetchRequest(
            group_id=group,
            topics=None if topics is None else list(topics.values()),
            require_stable=require_stable,
        )
        lowest = 7 if require_stable else 2 if topics is None else 1
        response = ask_coordinator(
            self._cluster,
            GROUP,
            group,
            request,
            lambda response: (response.error_code or 0, *partition_errors(response)),
            lowest=lowest,
        )
        found: dict[TopicPartition, CommittedOffset] = {}
        if response.error_code:
            raise for_code(response.error_code)(f"fetching the offsets of group {group!r}")
        for topic in response.topics or ():
            for one in topic.partitions:
                if one.error_code and for_code(one.error_code) is not UnknownTopicOrPartitionError:
                    where = f"{topic.name!r} {one.partition_index}"
                    raise for_code(one.error_code)(f"fetching the offset of group {group!r} in {where}")
                if one.committed_offset >= 0:
                    committed = CommittedOffset(
                        one.committed_offset, one.metadata, one.committed_leader_epoch
                    )
                    found[topic.name, one.partition_index] = committed
        return found

    def delete_offsets(
        self, group: str, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, Error | None]:
        wanted = list(partitions)
        topic_class = OffsetDeleteRequest.OffsetDeleteRequestTopic
        topics: dict[str, Any] = {}
        for name, number in wanted:
            topic = topics.setdefault(name, topic_class(name=name, partitions=[]))
            topic.partitions.append(topic_class.OffsetDeleteRequestPartition(partition_index=number))
        request = OffsetDeleteRequest(group_id=group, topics=list(topics.values()))
        return ask_by_partition(self._cluster, group, request, wanted)


def _description(found: Any) -> GroupDescription:
    members = [
        MemberDescription(
            one.member_id,
            one.group_instance_id,
            one.client_id,
            one.client_host,
            bytes(one.member_metadata or b""),
            bytes(one.member_assignment or b""),
        )
        for one in found.members
    ]
    return GroupDescription(
        error_of(found.error_code), found.group_state, found.protocol_type, found.protocol_data, members
    )


def _type(word: str | None) -> GroupType:
    """The type of a group; older brokers and unknown words mean the classic one."""
    known = (word or "").lower()
    return GroupType(known) if known in {one.value for one in GroupType} else GroupType.CLASSIC


def _ms(seconds: float) -> int:
    return min(int(seconds * 1000), 2**31 - 1)
