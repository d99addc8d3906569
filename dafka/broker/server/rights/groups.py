"""Rights of the APIs about groups and their offsets."""

from __future__ import annotations

from typing import Any

from kafka.errors import TopicAuthorizationFailedError
from kafka.protocol.admin.groups import DeleteGroupsResponse, DescribeGroupsResponse
from kafka.protocol.consumer.group import OffsetCommitResponse, OffsetDeleteResponse, OffsetFetchResponse
from kafka.protocol.metadata.find_coordinator import CoordinatorType, FindCoordinatorResponse

from dafka.broker.codec.errors import error_code, error_message
from dafka.broker.interface.broker import Error
from dafka.broker.server.answers.group_offsets import BY_ID, classes_in, no_offset
from dafka.broker.server.answers.metadata import SHARES_SINCE
from dafka.broker.server.answers.naming import topic_names
from dafka.broker.server.rights.asked import Asked, Items
from dafka.security.acls.terms import ResourceType

_Described = DescribeGroupsResponse.DescribedGroup
_Committed = OffsetCommitResponse.OffsetCommitResponseTopic
_OfGroup = OffsetFetchResponse.OffsetFetchResponseGroup
_ForgottenTopic = OffsetDeleteResponse.OffsetDeleteResponseTopic


def of_group(asked: Asked) -> Any:
    """An API of members, which needs one right on the group."""
    (need,) = asked.needs
    if not asked.may(need, asked.request.group_id):
        return asked.refused(need.error)
    return asked.answer()


def find_coordinator(asked: Asked) -> Any:
    """Coordinators of groups, of transactional ids and of share partitions."""
    group, transaction, share = asked.needs
    request = asked.request
    kind = CoordinatorType.GROUP if asked.version == 0 else request.key_type
    need = {CoordinatorType.GROUP: group, CoordinatorType.TRANSACTION: transaction}.get(kind)
    if kind == CoordinatorType.SHARE and asked.version >= SHARES_SINCE and not asked.may(share):
        need = share
    if need is None:
        return asked.answer()
    code, words = error_code(need.error), error_message(need.error)
    if asked.version < 4:
        if asked.may(need, request.key):
            return asked.answer()
        return FindCoordinatorResponse(
            throttle_time_ms=0, error_code=code, error_message=words, node_id=-1, host="", port=-1
        )
    allowed = asked.allowed(need, request.coordinator_keys) if need is not share else frozenset()
    refused = [key for key in request.coordinator_keys if key not in allowed]
    request.coordinator_keys = [key for key in request.coordinator_keys if key in allowed]
    response = asked.answer()
    response.coordinators.extend(
        FindCoordinatorResponse.Coordinator(
            key=key, node_id=-1, host="", port=-1, error_code=code, error_message=words
        )
        for key in refused
    )
    return response


def describe_groups(asked: Asked) -> Any:
    """With the operations that are allowed on each group."""
    (need,) = asked.needs
    request = asked.request
    allowed = asked.allowed(need, request.groups)
    refused = [name for name in request.groups if name not in allowed]
    request.groups = [name for name in request.groups if name in allowed]
    response = asked.answer()
    if request.include_authorized_operations:
        found = asked.operations(ResourceType.GROUP, (group.group_id for group in response.groups))
        for group in response.groups:
            group.authorized_operations = found[group.group_id]
    response.groups.extend(
        _Described(
            error_code=error_code(need.error),
            error_message=error_message(need.error),
            group_id=name,
            group_state="",
            protocol_type="",
            protocol_data="",
            members=[],
            authorized_operations=None,
        )
        for name in refused
    )
    return response


def list_groups(asked: Asked) -> Any:
    """Only the groups that may be described."""
    (need,) = asked.needs
    response = asked.answer()
    seen = asked.allowed(need, (group.group_id for group in response.groups))
    response.groups = [group for group in response.groups if group.group_id in seen]
    return response


def delete_groups(asked: Asked) -> Any:
    """Groups that may be deleted."""
    (need,) = asked.needs
    names = asked.request.groups_names
    allowed = asked.allowed(need, names)
    asked.request.groups_names = [name for name in names if name in allowed]
    response = asked.answer()
    deleted = DeleteGroupsResponse.DeletableGroupResult
    response.results.extend(
        deleted(group_id=name, error_code=error_code(need.error)) for name in names if name not in allowed
    )
    return response


# -- offsets ---------------------------------------------------------------------------------------


def offset_commit(asked: Asked) -> Any:
    """From version 10 on topics have ids; rights do not decide about unknown ones."""
    topics = asked.request.topics
    names: dict[Any, str] = {}
    if asked.version >= BY_ID:
        names = topic_names(asked.broker, [topic.topic_id for topic in topics])

    def refused(topic: Any, error: Error) -> Any:
        return _Committed(
            name=topic.name,
            topic_id=topic.topic_id,
            partitions=[
                _Committed.OffsetCommitResponsePartition(
                    partition_index=one.partition_index, error_code=error_code(error)
                )
                for one in topic.partitions
            ],
        )

    group, read = asked.needs
    items = Items(
        "topics", "topics", lambda topic: names.get(topic.topic_id, "") if names else topic.name, refused
    )
    if not asked.may(group, asked.request.group_id):
        return items.all_refused(asked, group.error)
    if asked.version < BY_ID:
        return items.answer(asked, read)
    known = [topic for topic in topics if topic.topic_id in names]
    unknown = [topic for topic in topics if topic.topic_id not in names]
    asked.request.topics = known
    out = items.split(asked, read)
    asked.request.topics = [*asked.request.topics, *unknown]
    response = asked.answer()
    response.topics.extend(out)
    return response


def _not_forgotten(topic: Any, error: Error) -> Any:
    return _ForgottenTopic(
        name=topic.name,
        partitions=[
            _ForgottenTopic.OffsetDeleteResponsePartition(
                partition_index=one.partition_index, error_code=error_code(error)
            )
            for one in topic.partitions
        ],
    )


_forgotten = Items("topics", "topics", lambda topic: topic.name, _not_forgotten)


def offset_delete(asked: Asked) -> Any:
    """Offsets of a group that may be deleted, in topics that may be read."""
    group, read = asked.needs
    if not asked.may(group, asked.request.group_id):
        return asked.refused(group.error)
    refused = _forgotten.split(asked, read)
    response = asked.answer()
    if not response.error_code:
        response.topics = [*(response.topics or ()), *refused]
    return response


def offset_fetch(asked: Asked) -> Any:
    """Offsets of groups that may be described; those of topics that may not be are errors, or left out of
    all."""
    request = asked.request
    group_need = asked.needs[0]
    if asked.version < 8:
        if not asked.may(group_need, request.group_id):
            return _no_group_before_8(asked, group_need.error)
        refused = _refuse_topics(asked, request, OffsetFetchResponse, {})
        response = asked.answer()
        response.topics = _seen(asked, response.topics, request.topics is None) + refused
        return response
    allowed = asked.allowed(group_need, (group.group_id for group in request.groups))
    groups = request.groups
    request.groups = [group for group in groups if group.group_id in allowed]
    every = [group.topics is None for group in request.groups]
    names: dict[Any, str] = {}
    if asked.version >= BY_ID:
        ids = [topic.topic_id for group in request.groups for topic in group.topics or ()]
        names = topic_names(asked.broker, ids)
    refused_of = [_refuse_topics(asked, group, _OfGroup, names) for group in request.groups]
    response = asked.answer()
    for group, all_, refused in zip(response.groups, every, refused_of, strict=True):
        group.topics = _seen(asked, group.topics, all_) + refused
    response.groups.extend(
        _OfGroup(group_id=group.group_id, topics=[], error_code=error_code(group_need.error))
        for group in groups
        if group.group_id not in allowed
    )
    return response


def _no_group_before_8(asked: Asked, error: Error) -> Any:
    """Version 1 has errors of partitions only."""
    topics = []
    if asked.version < 2:
        topics = [_no_offset(topic, error, OffsetFetchResponse) for topic in asked.request.topics or ()]
    return OffsetFetchResponse(throttle_time_ms=0, error_code=error_code(error), topics=topics)


def _refuse_topics(asked: Asked, group: Any, parent: Any, names: dict[Any, str]) -> list[Any]:
    """Take topics that may not be described out of the request; returns the answers for them."""
    if group.topics is None:
        return []
    named = [(topic, names.get(topic.topic_id) if names else topic.name) for topic in group.topics]
    allowed = asked.allowed(asked.needs[1], {name for _, name in named if name})
    group.topics = [topic for topic, name in named if not name or name in allowed]
    return [
        _no_offset(topic, TopicAuthorizationFailedError, parent)
        for topic, name in named
        if name and name not in allowed
    ]


def _seen(asked: Asked, topics: list[Any], every: bool) -> list[Any]:
    if not every:
        return topics
    allowed = asked.allowed(asked.needs[2], (topic.name for topic in topics))
    return [topic for topic in topics if topic.name in allowed]


def _no_offset(topic: Any, error: Error, parent: Any) -> Any:
    topic_class, partition_class = classes_in(parent)
    made = topic_class(
        name=topic.name,
        partitions=[no_offset(partition_class, number, error) for number in topic.partition_indexes],
    )
    if parent is _OfGroup:
        made.topic_id = topic.topic_id
    return made
