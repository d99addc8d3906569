"""Answers about the committed offsets of groups: OffsetCommit, OffsetFetch, OffsetDelete."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from kafka.errors import (
    GroupIdNotFoundError,
    InvalidGroupIdError,
    StaleMemberEpochError,
    UnknownMemberIdError,
    UnknownTopicIdError,
    UnknownTopicOrPartitionError,
    UnstableOffsetCommitError,
)
from kafka.protocol.consumer.group import OffsetCommitResponse, OffsetDeleteResponse, OffsetFetchResponse

from dafka.broker.codec.errors import coordinator_code, error_code
from dafka.broker.codec.limits import INLINE_ITEMS
from dafka.broker.interface.broker import BrokerInterface, CommittedOffset, Error, TopicPartition
from dafka.broker.server.answers.naming import (
    as_asked,
    as_named,
    by_topic,
    in_two,
    not_there,
    topic_names,
    version_of,
)
from dafka.broker.server.context import Context
from dafka.hub.turns import Pace
from dafka.hub.worker import REQUESTS

BY_MEMBERS = 9  # the first version of OffsetCommit and OffsetFetch for members of the newer groups
BY_ID = 10  # the first version of OffsetCommit and OffsetFetch with topic ids instead of names

_CommitTopic = OffsetCommitResponse.OffsetCommitResponseTopic
_CommitPartition = _CommitTopic.OffsetCommitResponsePartition
_Group = OffsetFetchResponse.OffsetFetchResponseGroup
_MISSING = (UnknownTopicIdError, UnknownTopicOrPartitionError)
_NOBODY = ((None, -1), ("", -1))
_NOTHING = CommittedOffset(-1)
_UNSTABLE = CommittedOffset(-1)  # compared by identity


def offset_commit(broker: BrokerInterface, request: Any, context: Context) -> Any:
    by_id = version_of(request) >= BY_ID
    names = topic_names(broker, [topic.topic_id for topic in request.topics]) if by_id else {}
    offsets: dict[TopicPartition, CommittedOffset] = {}
    for topic in request.topics:
        name = names.get(topic.topic_id) if by_id else topic.name
        if name is not None:
            for one in topic.partitions:
                offsets[name, one.partition_index] = CommittedOffset(
                    one.committed_offset, one.committed_metadata or "", one.committed_leader_epoch
                )
    errors = broker.commit_offsets(
        request.group_id,
        offsets,
        generation=request.generation_id_or_member_epoch,
        member_id=request.member_id,
        instance_id=request.group_instance_id,
        knows_epochs=version_of(request) >= BY_MEMBERS,
    )
    bare = {topic.name for topic in request.topics if not by_id and not topic.partitions}
    missing = not_there(broker, bare)
    asked, gone = [], set()
    for topic in request.topics:
        name = names.get(topic.topic_id) if by_id else topic.name
        outcomes = [
            (one.partition_index, UnknownTopicIdError if name is None else errors[name, one.partition_index])
            for one in topic.partitions
        ]
        asked.append(((topic.name, topic.topic_id), outcomes))
        if not outcomes and (name is None or name in missing):
            gone.add(asked[-1][0])
    return OffsetCommitResponse(
        throttle_time_ms=0,
        topics=[
            _CommitTopic(
                name=name,
                topic_id=topic_id,
                partitions=[
                    _CommitPartition(partition_index=number, error_code=coordinator_code(error))
                    for number, error in partitions
                ],
            )
            for (name, topic_id), partitions in in_two(asked, _MISSING.__contains__, gone)
        ],
    )


def offset_fetch(broker: BrokerInterface, request: Any, context: Context) -> Any:
    """Offsets of one group, or from version 8 on of several."""
    version = version_of(request)
    stable = bool(request.require_stable)
    if version < 8:
        asked = _asked(request.topics)
        return OffsetFetchResponse(
            throttle_time_ms=0,
            error_code=0,
            topics=_offsets(broker, request.group_id, asked, stable, OffsetFetchResponse),
        )
    groups = []
    for group in as_named(request.groups, lambda one: one.group_id):
        names = {}
        if version >= BY_ID and group.topics is not None:
            names = topic_names(broker, [topic.topic_id for topic in group.topics])
        asked = _asked(group.topics, names if version >= BY_ID else None)
        member = group.member_id, group.member_epoch
        if version >= BY_MEMBERS and member not in _NOBODY:
            try:  # checked with no partition, which costs nothing more
                broker.fetch_offsets(group.group_id, [], member_id=member[0], member_epoch=member[1])
            except (UnknownMemberIdError, StaleMemberEpochError) as error:
                groups.append(_Group(group_id=group.group_id, topics=[], error_code=error.errno))
                continue
        topics = _offsets(broker, group.group_id, asked, stable, _Group)
        if version >= BY_ID:
            topics = _with_ids(broker, topics, group.topics, names)
        groups.append(_Group(group_id=group.group_id, topics=topics, error_code=0))
    return OffsetFetchResponse(throttle_time_ms=0, groups=groups)


_Asked = Sequence[tuple[str, Sequence[int]]]


def _asked(topics: Any, names: dict[Any, str] | None = None) -> _Asked | None:
    """The requested partitions by topic; None for all of the group."""
    if topics is None:
        return None
    named = [(topic.name if names is None else names.get(topic.topic_id), topic) for topic in topics]
    return [(name, topic.partition_indexes) for name, topic in named if name is not None]


def _offsets(
    broker: BrokerInterface, group: str, asked: _Asked | None, stable: bool, parent: Any
) -> list[Any]:
    """Committed offsets by topic. A partition without one has offset -1 and no error."""
    wanted = None
    if asked is not None:
        wanted = list(dict.fromkeys((name, number) for name, numbers in asked for number in numbers))
    found = _stable(broker, group, wanted) if stable else broker.fetch_offsets(group, wanted)
    if len(found) > INLINE_ITEMS or len(wanted or ()) > INLINE_ITEMS:
        return REQUESTS.run(_topics, found, asked, parent)
    return _topics(found, asked, parent)


def _topics(found: dict[TopicPartition, CommittedOffset], asked: _Asked | None, parent: Any) -> list[Any]:
    positions = by_topic(found).items() if asked is None else as_asked(asked, defaultdict(_nothing, found))
    topic_class, partition_class = classes_in(parent)
    return [
        topic_class(
            name=name,
            partitions=[
                partition_class(
                    partition_index=number,
                    committed_offset=position.offset,
                    committed_leader_epoch=position.leader_epoch,
                    metadata=position.metadata or "",
                    error_code=UnstableOffsetCommitError.errno if position is _UNSTABLE else 0,
                )
                for number, position in partitions
            ],
        )
        for name, partitions in positions
    ]


def _nothing() -> CommittedOffset:
    return _NOTHING


def _stable(
    broker: BrokerInterface, group: str, wanted: list[TopicPartition] | None
) -> dict[TopicPartition, CommittedOffset]:
    """Committed offsets, with _UNSTABLE for those that an open transaction commits.

    That is asked first: an offset that a transaction replaces meanwhile was stable, and the other one is.
    """
    unstable = broker.unstable_offsets(group, wanted)
    found = broker.fetch_offsets(group, wanted)
    pace = Pace()
    while unstable:
        found[unstable.pop()] = _UNSTABLE
        pace.rest()
    return found


def classes_in(parent: Any) -> tuple[Any, Any]:
    """The classes of a topic and of a partition in an OffsetFetch response, or in a group of one."""
    topic_class = getattr(parent, "OffsetFetchResponseTopics", None) or parent.OffsetFetchResponseTopic
    partition_class = (
        getattr(topic_class, "OffsetFetchResponsePartitions", None)
        or topic_class.OffsetFetchResponsePartition
    )
    return topic_class, partition_class


def no_offset(partition_class: Any, number: int, error: Error) -> Any:
    """A partition of an OffsetFetch response that has an error in place of an offset."""
    return partition_class(
        partition_index=number,
        committed_offset=-1,
        committed_leader_epoch=-1,
        metadata="",
        error_code=error_code(error),
    )


def _with_ids(broker: BrokerInterface, topics: list[Any], asked: Any, names: dict[Any, str]) -> list[Any]:
    """The topics with their ids, and with errors for unknown ids of the request."""
    if asked is None:
        metadata = broker.metadata([topic.name for topic in topics]).topics
        ids = {name: topic.topic_id for name, topic in metadata.items()}
    else:
        ids = {name: topic_id for topic_id, name in names.items()}
    for topic in topics:
        topic.topic_id = ids.get(topic.name)
    topic_class = _Group.OffsetFetchResponseTopics
    partition_class = topic_class.OffsetFetchResponsePartitions
    unknown = [topic for topic in asked or () if topic.topic_id not in names]
    return topics + [
        topic_class(
            topic_id=topic.topic_id,
            partitions=[
                no_offset(partition_class, number, UnknownTopicIdError) for number in topic.partition_indexes
            ],
        )
        for topic in unknown
    ]


_NO_PARTITION = ("", 0)  # of no topic: it asks whether the group is there


def offset_delete(broker: BrokerInterface, request: Any, context: Context) -> Any:
    asked = [(topic.name, [one.partition_index for one in topic.partitions]) for topic in request.topics]
    wanted = list(dict.fromkeys((name, number) for name, numbers in asked for number in numbers))
    errors = broker.delete_offsets(request.group_id, wanted or [_NO_PARTITION])
    kinds = set(errors.values())
    if len(kinds) == 1 and kinds <= {GroupIdNotFoundError, InvalidGroupIdError}:  # the whole group's
        return OffsetDeleteResponse(error_code=error_code(kinds.pop()), throttle_time_ms=0, topics=[])
    topic_class = OffsetDeleteResponse.OffsetDeleteResponseTopic
    partition_class = topic_class.OffsetDeleteResponsePartition
    return OffsetDeleteResponse(
        error_code=0,
        throttle_time_ms=0,
        topics=[
            topic_class(
                name=name,
                partitions=[
                    partition_class(partition_index=number, error_code=error_code(error))
                    for number, error in partitions
                ],
            )
            for name, partitions in in_two(
                as_asked(asked, errors),
                lambda error: error is UnknownTopicOrPartitionError,
                not_there(broker, {name for name, numbers in asked if not numbers}),
            )
        ],
    )
