"""The share groups of a cluster over TCP: members and tools ask the coordinator, records come from leaders.

Share sessions are kept by the leaders of the partitions, and end with connections. So the fetches of each
member have one to themselves: where one is given up it is closed, and no other member's session ends. Members
are members of clusters of one node here: with several of them, each would have a session of its own.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any
from uuid import UUID

from kafka.errors import KafkaError, UnsupportedVersionError

from dafka.broker.codec.errors import error_of
from dafka.broker.codec.fetch_response import cut_batches
from dafka.broker.codec.messages.share_group import (
    AlterShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequest,
    ShareAcknowledgeRequest,
    ShareFetchRequest,
    ShareGroupDescribeRequest,
    ShareGroupHeartbeatRequest,
)
from dafka.broker.interface.broker import Error, TopicPartition
from dafka.broker.interface.share import (
    Acknowledged,
    Acquired,
    SharedRecords,
    ShareFetched,
    ShareFetchLimits,
    ShareGroupDescription,
    ShareHeartbeat,
    ShareHeartbeatAnswer,
    ShareInterface,
    ShareMember,
    ShareOffset,
    ShareOffsets,
    ShareOutcome,
    SharePlace,
    ShareRequest,
    ShareStandings,
)
from dafka.broker.remote.cluster import GROUP, Cluster
from dafka.broker.remote.connection import CLIENT_ID
from dafka.broker.remote.coordinators import ask_coordinator, describe_each, unavailable
from dafka.broker.remote.share_standings import standings

_FetchTopic = ShareFetchRequest.FetchTopic
_AcknowledgeTopic = ShareAcknowledgeRequest.AcknowledgeTopic
_BatchOf = {
    ShareFetchRequest: _FetchTopic.FetchPartition.AcknowledgementBatch,
    ShareAcknowledgeRequest: _AcknowledgeTopic.AcknowledgePartition.AcknowledgementBatch,
}
_OffsetsGroup = DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestGroup
_AlterTopic = AlterShareGroupOffsetsRequest.AlterShareGroupOffsetsRequestTopic


class RemoteShare(ShareInterface):
    """Share groups of a cluster."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def share_heartbeat(self, heartbeat: ShareHeartbeat) -> ShareHeartbeatAnswer:
        request = ShareGroupHeartbeatRequest(
            group_id=heartbeat.group,
            member_id=heartbeat.member_id,
            member_epoch=heartbeat.member_epoch,
            rack_id=heartbeat.rack,
            subscribed_topic_names=None if heartbeat.topics is None else sorted(heartbeat.topics),
        )
        try:
            response = self._ask(heartbeat.group, request, client_id=heartbeat.client_id or CLIENT_ID)
        except KafkaError as error:
            return ShareHeartbeatAnswer(unavailable(error), str(error))
        assignment = None
        if response.assignment is not None:
            assignment = {one.topic_id: tuple(one.partitions) for one in response.assignment.topic_partitions}
        return ShareHeartbeatAnswer(
            error_of(response.error_code),
            response.error_message,
            response.member_id or heartbeat.member_id,
            response.member_epoch,
            response.heartbeat_interval_ms / 1000,
            assignment,
        )

    # -- records -----------------------------------------------------------------------------------

    def share_fetch(
        self,
        request: ShareRequest,
        partitions: Collection[SharePlace],
        forgotten: Collection[SharePlace],
        limits: ShareFetchLimits,
        connection: object = None,
    ) -> ShareFetched:
        topics: dict[UUID, dict[int, Sequence[Acknowledged]]] = {}
        for topic, number in partitions:
            topics.setdefault(topic, {})[number] = ()
        for (topic, number), batches in request.acknowledgements.items():
            topics.setdefault(topic, {})[number] = batches
        without: dict[UUID, list[int]] = {}
        for topic, number in forgotten:
            without.setdefault(topic, []).append(number)
        asked = ShareFetchRequest(
            group_id=request.group,
            member_id=request.member_id,
            share_session_epoch=request.session_epoch,
            max_wait_ms=int(limits.max_wait * 1000),
            min_bytes=limits.min_bytes,
            max_bytes=limits.max_bytes,
            max_records=limits.max_records,
            batch_size=limits.batch_size or limits.max_records,
            share_acquire_mode=int(limits.strict),
            is_renew_ack=request.is_renewal,
            topics=[
                _FetchTopic(
                    topic_id=topic,
                    partitions=[
                        _FetchTopic.FetchPartition(
                            partition_index=number, acknowledgement_batches=_batches(ShareFetchRequest, some)
                        )
                        for number, some in numbers.items()
                    ],
                )
                for topic, numbers in topics.items()
            ],
            forgotten_topics_data=[
                ShareFetchRequest.ForgottenTopic(topic_id=topic, partitions=numbers)
                for topic, numbers in without.items()
            ],
        )
        lowest = 2 if limits.strict or request.is_renewal else 1
        try:
            response = self._cluster.ask(
                self._leader(), asked, wait=limits.max_wait, owner=connection, lowest=lowest
            )
        except KafkaError as error:
            return ShareFetched(unavailable(error), str(error))
        answers = {
            (topic.topic_id, one.partition_index): _records(one)
            for topic in response.responses
            for one in topic.partitions
        }
        lock = response.acquisition_lock_timeout_ms / 1000
        return ShareFetched(error_of(response.error_code), response.error_message, lock, answers)

    def share_acknowledge(self, request: ShareRequest) -> ShareFetched:
        topics: dict[UUID, list[Any]] = {}
        for (topic, number), batches in request.acknowledgements.items():
            topics.setdefault(topic, []).append(
                _AcknowledgeTopic.AcknowledgePartition(
                    partition_index=number, acknowledgement_batches=_batches(ShareAcknowledgeRequest, batches)
                )
            )
        asked = ShareAcknowledgeRequest(
            group_id=request.group,
            member_id=request.member_id,
            share_session_epoch=request.session_epoch,
            is_renew_ack=request.is_renewal,
            topics=[_AcknowledgeTopic(topic_id=topic, partitions=some) for topic, some in topics.items()],
        )
        try:
            lowest = 2 if request.is_renewal else 1
            response = self._cluster.ask(self._leader(), asked, wait=0.0, lowest=lowest)
        except KafkaError as error:
            return ShareFetched(unavailable(error), str(error))
        answers = {
            (topic.topic_id, one.partition_index): SharedRecords(
                None, error_of(one.error_code), detail=one.error_message or ""
            )
            for topic in response.responses
            for one in topic.partitions
        }
        lock = (response.acquisition_lock_timeout_ms or 0) / 1000
        return ShareFetched(error_of(response.error_code), response.error_message, lock, answers)

    def forget_connection(self, connection: object) -> None:
        self._cluster.forget(connection)

    def _leader(self) -> Any:
        """The node that leads everything: share groups are read from clusters of one node."""
        nodes = self._cluster.nodes
        if len(nodes) > 1:
            raise UnsupportedVersionError("share groups of clusters with several nodes are not read over TCP")
        return nodes[0]

    # -- tools -------------------------------------------------------------------------------------

    def describe_share_groups(self, groups: Iterable[str]) -> dict[str, ShareGroupDescription]:
        return describe_each(
            self._cluster,
            groups,
            lambda group: ShareGroupDescribeRequest(group_ids=[group], include_authorized_operations=False),
            _description,
            ShareGroupDescription,
        )

    def share_offsets(self, group: str, partitions: Iterable[TopicPartition] | None = None) -> ShareOffsets:
        topics: dict[str, list[int]] | None = None
        if partitions is not None:
            topics = {}
            for topic, number in partitions:
                topics.setdefault(topic, []).append(number)
        request = DescribeShareGroupOffsetsRequest(
            groups=[
                _OffsetsGroup(
                    group_id=group,
                    topics=None
                    if topics is None
                    else [
                        _OffsetsGroup.DescribeShareGroupOffsetsRequestTopic(topic_name=name, partitions=some)
                        for name, some in topics.items()
                    ],
                )
            ]
        )
        try:
            (found,) = self._ask(group, request, _group_errors).groups
        except KafkaError as error:
            return ShareOffsets(unavailable(error), {}, str(error))
        offsets = {
            (topic.topic_name, one.partition_index): ShareOffset(
                error_of(one.error_code),
                one.start_offset,
                one.leader_epoch,
                -1 if one.lag is None else one.lag,
            )
            for topic in found.topics
            for one in topic.partitions
        }
        return ShareOffsets(error_of(found.error_code), offsets, found.error_message)

    def share_standings(self, group: str) -> ShareStandings:
        offsets = self.share_offsets(group)
        if offsets.error is not None:
            return ShareStandings(offsets.error, {}, offsets.detail)
        try:
            metadata = self._cluster.refresh({topic for topic, _ in offsets.partitions})
        except KafkaError as error:
            return ShareStandings(unavailable(error), {}, str(error))
        ids = {one.name: one.topic_id for one in metadata.topics if not one.error_code}
        places = {key: ids[key[0]] for key in sorted(offsets.partitions) if key[0] in ids}
        return standings(self._cluster, group, places)

    def alter_share_offsets(self, group: str, offsets: Mapping[TopicPartition, int]) -> ShareOutcome:
        topics: dict[str, list[Any]] = {}
        for (topic, number), offset in offsets.items():
            topics.setdefault(topic, []).append(
                _AlterTopic.AlterShareGroupOffsetsRequestPartition(
                    partition_index=number, start_offset=offset
                )
            )
        request = AlterShareGroupOffsetsRequest(
            group_id=group,
            topics=[_AlterTopic(topic_name=name, partitions=some) for name, some in topics.items()],
        )
        try:
            response = self._ask(group, request)
        except KafkaError as error:
            return ShareOutcome(unavailable(error), {}, str(error))
        parts: dict[TopicPartition, Error | None] = {
            (topic.topic_name, one.partition_index): error_of(one.error_code)
            for topic in response.responses
            for one in topic.partitions
        }
        return ShareOutcome(error_of(response.error_code), parts, response.error_message or "")

    def delete_share_offsets(self, group: str, topics: Iterable[str]) -> ShareOutcome:
        asked = DeleteShareGroupOffsetsRequest.DeleteShareGroupOffsetsRequestTopic
        request = DeleteShareGroupOffsetsRequest(
            group_id=group, topics=[asked(topic_name=name) for name in topics]
        )
        try:
            response = self._ask(group, request)
        except KafkaError as error:
            return ShareOutcome(unavailable(error), {}, str(error))
        parts: dict[TopicPartition, Error | None] = {
            (topic.topic_name, -1): error_of(topic.error_code) for topic in response.responses
        }
        return ShareOutcome(error_of(response.error_code), parts, response.error_message or "")

    def _ask(self, group: str, request: Any, errors: Any = None, **options: Any) -> Any:
        given = {} if errors is None else {"errors": errors}
        return ask_coordinator(self._cluster, GROUP, group, request, **given, **options)


def _group_errors(response: Any) -> list[int]:
    return [one.error_code for one in response.groups]


def _batches(kind: Any, batches: Sequence[Acknowledged]) -> list[Any]:
    made = _BatchOf[kind]
    return [
        made(first_offset=first, last_offset=last, acknowledge_types=list(types))
        for first, last, types in batches
    ]


def _records(one: Any) -> SharedRecords:
    batches, _ = cut_batches(memoryview(one.records or b""))
    return SharedRecords(
        error_of(one.error_code),
        error_of(one.acknowledge_error_code),
        batches,
        [Acquired(part.first_offset, part.last_offset, part.delivery_count) for part in one.acquired_records],
        one.error_message or one.acknowledge_error_message,
    )


def _description(found: Any) -> ShareGroupDescription:
    return ShareGroupDescription(
        error_of(found.error_code),
        found.error_message,
        found.group_state,
        found.group_epoch,
        found.assignment_epoch,
        found.assignor_name,
        [
            ShareMember(
                one.member_id,
                one.rack_id,
                one.member_epoch,
                one.client_id,
                one.client_host,
                list(one.subscribed_topic_names),
                {part.topic_id: tuple(part.partitions) for part in one.assignment.topic_partitions},
            )
            for one in found.members
        ],
    )
