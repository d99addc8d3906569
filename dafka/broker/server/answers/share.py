"""Answers about share groups: members, records and acknowledgements, descriptions and offsets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar
from uuid import UUID

from kafka.errors import InvalidRequestError, UnknownError, UnknownTopicOrPartitionError

from dafka.broker.codec.errors import error_code, error_message
from dafka.broker.codec.messages.share_group import (
    AlterShareGroupOffsetsResponse,
    DeleteShareGroupOffsetsResponse,
    DescribeShareGroupOffsetsResponse,
    ShareAcknowledgeResponse,
    ShareFetchResponse,
    ShareGroupDescribeResponse,
    ShareGroupHeartbeatResponse,
)
from dafka.broker.interface.broker import BrokerInterface, Error, TopicPartition
from dafka.broker.interface.share import (
    Acknowledged,
    SharedRecords,
    ShareFetchLimits,
    ShareGroupDescription,
    ShareHeartbeat,
    ShareOffset,
    SharePlace,
    ShareRequest,
)
from dafka.broker.server.answers.naming import as_asked, as_named, topic_names, version_of
from dafka.broker.server.answers.operations import GROUP_OPERATIONS
from dafka.broker.server.context import Context
from dafka.hub.turns import Pace

_NO_TOPIC = UUID(int=0)
_Assignment = ShareGroupHeartbeatResponse.Assignment
_Described = ShareGroupDescribeResponse.DescribedGroup
_Member = _Described.Member
_Fetched = ShareFetchResponse.ShareFetchableTopicResponse
_FetchedPartition = _Fetched.PartitionData
_AcknowledgedTopic = ShareAcknowledgeResponse.ShareAcknowledgeTopicResponse
_Offsets = DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponseGroup
_OffsetsTopic = _Offsets.DescribeShareGroupOffsetsResponseTopic
_Altered = AlterShareGroupOffsetsResponse.AlterShareGroupOffsetsResponseTopic
_Deleted = DeleteShareGroupOffsetsResponse.DeleteShareGroupOffsetsResponseTopic

RENEWING = 2  # the version of ShareFetch that knows renewals

NO_GROUP = "Invalid group id in the request."
UNKNOWN_PARTITION = "This server does not host this topic-partition."
NOTHING_DELETED = "There is no offset information to delete."

STRICT = 1
"""The acquire mode "record limit"; 0 is "batch optimized"."""

V = TypeVar("V")


def share_group_heartbeat(broker: BrokerInterface, request: Any, context: Context) -> Any:
    answer = broker.share_heartbeat(
        ShareHeartbeat(
            request.group_id,
            request.member_id,
            request.member_epoch,
            request.subscribed_topic_names,
            request.rack_id,
            context.client_id,
            context.client_host,
        )
    )
    assignment = None
    if answer.assignment is not None:
        assignment = _Assignment(
            topic_partitions=[
                _Assignment.TopicPartitions(topic_id=topic, partitions=sorted(numbers))
                for topic, numbers in Pace().over(answer.assignment.items())
            ]
        )
    return ShareGroupHeartbeatResponse(
        throttle_time_ms=0,
        error_code=error_code(answer.error),
        error_message=error_message(answer.error, answer.detail),
        member_id=answer.member_id or None,
        member_epoch=answer.member_epoch,
        heartbeat_interval_ms=int(answer.interval * 1000),
        assignment=assignment,
    )


def share_group_describe(broker: BrokerInterface, request: Any, context: Context) -> Any:
    described = broker.describe_share_groups(request.group_ids)
    ids = {topic for one in described.values() for member in one.members for topic in member.assignment}
    names = topic_names(broker, ids)
    operations = GROUP_OPERATIONS if request.include_authorized_operations else None
    return ShareGroupDescribeResponse(
        throttle_time_ms=0,
        groups=[
            _group(name, described[name], names, operations)
            for name in Pace().over(as_named(request.group_ids))
        ],
    )


def refused_group(name: str, error: Error, detail: str = "") -> Any:
    """A group of the response to ShareGroupDescribe that is an error."""
    return _group(name, ShareGroupDescription(error, detail), {}, None)


def _group(name: str, one: ShareGroupDescription, names: Mapping[UUID, str], operations: Any) -> Any:
    return _Described(
        error_code=error_code(one.error),
        error_message=error_message(one.error, one.detail),
        group_id=name,
        group_state=one.state,
        group_epoch=one.epoch,
        assignment_epoch=one.assignment_epoch,
        assignor_name=one.assignor,
        members=[
            _Member(
                member_id=member.member_id,
                rack_id=member.rack,
                member_epoch=member.member_epoch,
                client_id=member.client_id,
                client_host=member.client_host,
                subscribed_topic_names=list(member.topics),
                assignment=_Member.Assignment(
                    topic_partitions=[
                        _Member.Assignment.TopicPartitions(
                            topic_id=topic, topic_name=names[topic], partitions=sorted(numbers)
                        )
                        for topic, numbers in Pace().over(member.assignment.items())
                        if topic in names
                    ]
                ),
            )
            for member in Pace().over(one.members)
        ],
        authorized_operations=operations if one.error is None else None,
    )


# -- records ---------------------------------------------------------------------------------------


def share_fetch(broker: BrokerInterface, request: Any, context: Context) -> Any:
    """Waits for records."""
    words = ""
    if version_of(request) >= RENEWING and request.is_renew_ack and _wants_records(request):
        words = "A request that renews locks asks for no records: its limits are 0."
    if request.group_id is None:
        words = NO_GROUP
    if words:
        return ShareFetchResponse(
            throttle_time_ms=0,
            error_code=InvalidRequestError.errno,
            error_message=words,
            acquisition_lock_timeout_ms=0,
            responses=[],
            node_endpoints=[],
        )
    pace = Pace()
    places = [
        (topic.topic_id, one.partition_index)
        for topic in request.topics
        for one in pace.over(topic.partitions)
    ]
    forgotten = [
        (topic.topic_id, number)
        for topic in request.forgotten_topics_data
        for number in pace.over(topic.partitions)
    ]
    limits = ShareFetchLimits(
        max(request.max_wait_ms, 0) / 1000,
        request.min_bytes,
        request.max_bytes,
        request.max_records,
        request.batch_size,
        request.share_acquire_mode == STRICT,
    )
    fetched = broker.share_fetch(asked_of(request), places, forgotten, limits, context.connection)
    return ShareFetchResponse(
        throttle_time_ms=0,
        error_code=error_code(fetched.error),
        error_message=error_message(fetched.error, fetched.detail),
        acquisition_lock_timeout_ms=int(fetched.lock * 1000),
        responses=[
            _Fetched(
                topic_id=topic, partitions=[fetched_partition(number, one) for number, one in pace.over(some)]
            )
            for topic, some in by_topic(fetched.partitions).items()
        ],
        node_endpoints=[],
    )


def _wants_records(request: Any) -> bool:
    return any((request.max_wait_ms, request.min_bytes, request.max_bytes, request.max_records))


def refused_fetch(topic: UUID, numbers: Iterable[int], error: Error) -> Any:
    """A topic of the response to ShareFetch that is an error."""
    partitions = [fetched_partition(number, SharedRecords(error)) for number in numbers]
    return _Fetched(topic_id=topic, partitions=partitions)


def fetched_partition(number: int, one: SharedRecords) -> Any:
    """A partition of the response to ShareFetch."""
    return _FetchedPartition(
        partition_index=number,
        error_code=error_code(one.error),
        error_message=error_message(one.error, one.detail),
        acknowledge_error_code=error_code(one.acknowledge_error),
        acknowledge_error_message=error_message(one.acknowledge_error, one.detail),
        current_leader=_FetchedPartition.LeaderIdAndEpoch(leader_id=0, leader_epoch=0),
        records=b"".join(one.batches),
        acquired_records=[
            _FetchedPartition.AcquiredRecords(
                first_offset=first, last_offset=last, delivery_count=min(deliveries, 2**15 - 1)
            )
            for first, last, deliveries in one.acquired
        ],
    )


def share_acknowledge(broker: BrokerInterface, request: Any, context: Context) -> Any:
    if request.group_id is None:
        return ShareAcknowledgeResponse(
            throttle_time_ms=0,
            error_code=InvalidRequestError.errno,
            error_message=NO_GROUP,
            acquisition_lock_timeout_ms=0,
            responses=[],
            node_endpoints=[],
        )
    answer = broker.share_acknowledge(asked_of(request))
    pace = Pace()
    return ShareAcknowledgeResponse(
        throttle_time_ms=0,
        error_code=error_code(answer.error),
        error_message=error_message(answer.error, answer.detail),
        acquisition_lock_timeout_ms=int(answer.lock * 1000),
        responses=[
            _AcknowledgedTopic(
                topic_id=topic,
                partitions=[
                    acknowledged_partition(number, one.acknowledge_error or one.error, one.detail)
                    for number, one in pace.over(some)
                ],
            )
            for topic, some in by_topic(answer.partitions).items()
        ],
        node_endpoints=[],
    )


def refused_acknowledgements(topic: UUID, numbers: Iterable[int], error: Error) -> Any:
    """A topic of the response to ShareAcknowledge that is an error."""
    partitions = [acknowledged_partition(number, error) for number in numbers]
    return _AcknowledgedTopic(topic_id=topic, partitions=partitions)


def acknowledged_partition(number: int, error: Error | None, message: str | None = None) -> Any:
    """A partition of the response to ShareAcknowledge."""
    return _AcknowledgedTopic.PartitionData(
        partition_index=number,
        error_code=error_code(error),
        error_message=error_message(error, message),
        current_leader=_AcknowledgedTopic.PartitionData.LeaderIdAndEpoch(leader_id=0, leader_epoch=0),
    )


def asked_of(request: Any) -> ShareRequest:
    """The common part of ShareFetch and ShareAcknowledge."""
    acknowledged: dict[SharePlace, list[Acknowledged]] = {}
    bare: list[SharePlace] = []
    pace = Pace()
    for topic in request.topics:
        for one in pace.over(topic.partitions):
            if one.acknowledgement_batches:
                acknowledged.setdefault((topic.topic_id, one.partition_index), []).extend(
                    Acknowledged(batch.first_offset, batch.last_offset, batch.acknowledge_types)
                    for batch in pace.over(one.acknowledgement_batches)
                )
            else:
                bare.append((topic.topic_id, one.partition_index))
    return ShareRequest(
        request.group_id,
        request.member_id or "",
        request.share_session_epoch,
        acknowledged,
        bool(request.is_renew_ack),
        bare,
    )


def by_topic(answers: Mapping[tuple[Any, int], V]) -> dict[Any, list[tuple[int, V]]]:
    """(number, answer) by topic."""
    found: dict[Any, list[tuple[int, V]]] = {}
    for (topic, number), one in Pace().over(answers.items()):
        found.setdefault(topic, []).append((number, one))
    return found


# -- offsets ---------------------------------------------------------------------------------------


def describe_share_group_offsets(broker: BrokerInterface, request: Any, context: Context) -> Any:
    return DescribeShareGroupOffsetsResponse(
        throttle_time_ms=0, groups=[_offsets(broker, group) for group in request.groups]
    )


def _offsets(broker: BrokerInterface, group: Any) -> Any:
    asked = [(topic.topic_name, topic.partitions) for topic in group.topics or ()]
    ids = _ids(broker, [name for name, _ in asked])
    if any(name in ids and not numbers for name, numbers in asked):
        return refused_offsets(group.group_id, UnknownError)  # as in Kafka
    wanted = None if group.topics is None else [(name, number) for name, some in asked for number in some]
    found = broker.share_offsets(group.group_id, wanted)
    topics = list(by_topic(found.partitions).items())
    if wanted is None:
        ids = _ids(broker, [name for name, _ in topics])
    elif found.error is None:  # topics that are not there come first, and as often as they are named
        unknown = as_asked([one for one in asked if one[0] not in ids], found.partitions)
        topics = [*unknown, *(one for one in topics if one[0] in ids)]
    return _Offsets(
        group_id=group.group_id,
        topics=[
            _OffsetsTopic(
                topic_name=topic,
                topic_id=ids.get(topic, _NO_TOPIC),
                partitions=[offset_of(number, one) for number, one in some],
            )
            for topic, some in topics
        ],
        error_code=error_code(found.error),
        error_message=error_message(found.error, found.detail),
    )


def refused_offsets(name: str, error: Error) -> Any:
    """A group of the response to DescribeShareGroupOffsets that is an error."""
    return _Offsets(
        group_id=name, topics=[], error_code=error_code(error), error_message=error_message(error)
    )


def offset_topic(name: str, numbers: Iterable[int], error: Error) -> Any:
    """A topic of that response that is an error."""
    partitions = [offset_of(number, ShareOffset(error)) for number in numbers]
    return _OffsetsTopic(topic_name=name, topic_id=_NO_TOPIC, partitions=partitions)


def offset_of(number: int, one: ShareOffset) -> Any:
    """A partition of the response to DescribeShareGroupOffsets."""
    return _OffsetsTopic.DescribeShareGroupOffsetsResponsePartition(
        partition_index=number,
        start_offset=one.start,
        leader_epoch=one.leader_epoch,
        lag=one.lag,
        error_code=error_code(one.error),
        error_message=error_message(one.error),
    )


def alter_share_group_offsets(broker: BrokerInterface, request: Any, context: Context) -> Any:
    offsets: dict[TopicPartition, int] = {
        (topic.topic_name, one.partition_index): one.start_offset
        for topic in request.topics
        for one in topic.partitions
    }
    outcome = broker.alter_share_offsets(request.group_id, offsets)
    topics: dict[str, list[tuple[int, Error | None]]] = {}
    asked = [(one.topic_name, [each.partition_index for each in one.partitions]) for one in request.topics]
    for topic, some in as_asked(asked if outcome.error is None else (), outcome.parts):
        if some:
            topics.setdefault(topic, []).extend(some)
    ids = _ids(broker, topics)
    return AlterShareGroupOffsetsResponse(
        throttle_time_ms=0,
        error_code=error_code(outcome.error),
        error_message=error_message(outcome.error, outcome.detail),
        responses=[
            _Altered(
                topic_name=topic,
                topic_id=ids.get(topic, _NO_TOPIC),
                partitions=[altered_partition(number, error) for number, error in topics[topic]],
            )
            for topic in sorted(topics, key=ids.__contains__)  # as in Kafka: first those that are not there
        ],
    )


def altered_topic(name: str, numbers: Iterable[int], error: Error) -> Any:
    """A topic of the response to AlterShareGroupOffsets that is an error."""
    partitions = [altered_partition(number, error) for number in numbers]
    return _Altered(topic_name=name, topic_id=_NO_TOPIC, partitions=partitions)


def altered_partition(number: int, error: Error | None) -> Any:
    """A partition of the response to AlterShareGroupOffsets."""
    return _Altered.AlterShareGroupOffsetsResponsePartition(
        partition_index=number,
        error_code=error_code(error),
        error_message=error_message(error, _words(error)),
    )


def delete_share_group_offsets(broker: BrokerInterface, request: Any, context: Context) -> Any:
    names = [topic.topic_name for topic in request.topics]
    outcome = broker.delete_share_offsets(request.group_id, names)
    ids = _ids(broker, (topic for topic, _ in outcome.parts))
    return DeleteShareGroupOffsetsResponse(
        throttle_time_ms=0,
        error_code=error_code(outcome.error),
        error_message=error_message(outcome.error, outcome.detail),
        responses=[
            deleted_topic(topic, error, ids.get(topic, _NO_TOPIC))
            for (topic, _), error in outcome.parts.items()
        ],
    )


def deleted_topic(topic: str, error: Error | None, topic_id: UUID = _NO_TOPIC) -> Any:
    """A topic of the response to DeleteShareGroupOffsets."""
    return _Deleted(
        topic_name=topic,
        topic_id=topic_id,
        error_code=error_code(error),
        error_message=error_message(error, NOTHING_DELETED if topic_id != _NO_TOPIC else _words(error)),
    )


def _words(error: Error | None) -> str | None:
    """Kafka's words, which its tools print, where kafka-python has others."""
    return UNKNOWN_PARTITION if error is UnknownTopicOrPartitionError else None


def _ids(broker: BrokerInterface, topics: Iterable[str]) -> dict[str, UUID]:
    found = broker.metadata(list(topics)).topics
    return {name: topic.topic_id for name, topic in found.items() if topic.error is None}
