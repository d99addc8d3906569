"""Rights of the APIs about topics, their partitions and their records."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kafka.errors import TopicAuthorizationFailedError, UnknownTopicOrPartitionError
from kafka.protocol.admin.topics import (
    CreatePartitionsResponse,
    CreateTopicsResponse,
    DeleteRecordsResponse,
    DeleteTopicsResponse,
    DescribeTopicPartitionsResponse,
)
from kafka.protocol.consumer.offsets import ListOffsetsResponse, OffsetForLeaderEpochResponse
from kafka.protocol.metadata.metadata import MetadataRequest, MetadataResponse

from dafka.broker.codec.errors import error_code, error_message
from dafka.broker.interface.admin import Resource, ResourceType
from dafka.broker.interface.broker import Error
from dafka.broker.server.answers.naming import NO_UUID, prefer_ids, topic_names
from dafka.broker.server.rights.asked import Asked, Items, each
from dafka.security.acls.terms import CLUSTER_NAME
from dafka.security.acls.terms import ResourceType as Kind

_AUTO_CREATE = "auto.create.topics.enable"

_Listed = ListOffsetsResponse.ListOffsetsTopicResponse
_Ended = OffsetForLeaderEpochResponse.OffsetForLeaderTopicResult
_Deleted = DeleteRecordsResponse.DeleteRecordsTopicResult
_Created = CreateTopicsResponse.CreatableTopicResult
_Removed = DeleteTopicsResponse.DeletableTopicResult
_Topic = MetadataResponse.MetadataResponseTopic
_Described = DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponseTopic


def _name(topic: Any) -> str:
    return topic.name or ""


def _no_offsets(topic: Any, error: Error) -> Any:
    return _Listed(
        name=topic.name,
        partitions=[
            _Listed.ListOffsetsPartitionResponse(
                partition_index=one.partition_index,
                error_code=error_code(error),
                timestamp=-1,
                offset=-1,
                leader_epoch=-1,
            )
            for one in topic.partitions
        ],
    )


def _no_ends(topic: Any, error: Error) -> Any:
    return _Ended(
        topic=topic.topic,
        partitions=[
            _Ended.EpochEndOffset(
                error_code=error_code(error), partition=one.partition, leader_epoch=-1, end_offset=-1
            )
            for one in topic.partitions
        ],
    )


def _no_records(topic: Any, error: Error) -> Any:
    return _Deleted(
        name=topic.name,
        partitions=[
            _Deleted.DeleteRecordsPartitionResult(
                partition_index=one.partition_index, low_watermark=-1, error_code=error_code(error)
            )
            for one in topic.partitions
        ],
    )


def _no_partitions(topic: Any, error: Error) -> Any:
    return CreatePartitionsResponse.CreatePartitionsTopicResult(
        name=topic.name, error_code=error_code(error), error_message=error_message(error)
    )


def _no_topic(topic: Any, error: Error) -> Any:
    return _Created(
        name=topic.name,
        topic_id=NO_UUID,
        error_code=error_code(error),
        error_message=error_message(error),
        num_partitions=-1,
        replication_factor=-1,
        configs=[],
    )


def _no_description(topic: Any, error: Error) -> Any:
    return _Described(
        error_code=error_code(error), name=topic.name, topic_id=NO_UUID, is_internal=False, partitions=[]
    )


list_offsets = each(Items("topics", "topics", _name, _no_offsets))
offset_for_leader_epoch = each(Items("topics", "topics", lambda topic: topic.topic, _no_ends))
delete_records = each(Items("topics", "topics", _name, _no_records))
create_partitions = each(Items("topics", "results", _name, _no_partitions))

_creations = Items("topics", "topics", _name, _no_topic)
_descriptions = Items("topics", "topics", _name, _no_description)


def create_topics(asked: Asked) -> Any:
    """The configuration of a new topic is told only to those who may describe configurations."""
    create, describe = asked.needs
    response = _creations.answer(asked, create)
    made = [topic for topic in response.topics if not topic.error_code]
    seen = asked.allowed(describe, (topic.name for topic in made))
    for topic in made:
        if topic.name not in seen:
            topic.topic_config_error_code = error_code(describe.error)
            topic.num_partitions = topic.replication_factor = -1
            topic.configs = []
    return response


def delete_topics(asked: Asked) -> Any:
    """A topic that is named by its id keeps its name to itself, unless it may be described."""
    delete, describe = asked.needs
    request = asked.request
    refused: list[Any] = []

    def refuse(name: str | None, topic_id: Any, error: Error = delete.error) -> None:
        code, words = error_code(error), error_message(error)
        refused.append(_Removed(name=name, topic_id=topic_id, error_code=code, error_message=words))

    def refuse_named(names: Iterable[str]) -> None:
        seen = asked.allowed(describe, names)
        found = asked.broker.metadata(seen, False).topics if seen else {}
        for name in names:
            is_missing = name in seen and found[name].error is UnknownTopicOrPartitionError
            refuse(name, NO_UUID, UnknownTopicOrPartitionError if is_missing else delete.error)

    if asked.version < 6 or not request.topics:
        allowed = asked.allowed(delete, request.topic_names)
        refuse_named([name for name in request.topic_names if name not in allowed])
        request.topic_names = [name for name in request.topic_names if name in allowed]
        request.topics = []
    else:
        by_id = topic_names(asked.broker, [one.topic_id for one in request.topics if one.name is None])
        named = [(one, by_id.get(one.topic_id) if one.name is None else one.name) for one in request.topics]
        names = {name for _, name in named if name is not None}
        allowed, seen = asked.allowed(delete, names), asked.allowed(describe, names)
        for one, name in named:
            if name is not None and one.name is None and name not in allowed:
                refuse(name if name in seen else None, one.topic_id)
        refuse_named([one.name for one in request.topics if one.name is not None and one.name not in allowed])
        request.topics = [one for one, name in named if name is None or name in allowed]
        if not request.topics:
            request.topic_names = []
    response = asked.answer()
    response.responses.extend(refused)
    return response


def describe_topic_partitions(asked: Asked) -> Any:
    """With the operations that are allowed on each topic."""
    named, all_ = asked.needs
    names = [topic.name for topic in asked.request.topics]
    if not names:
        names = sorted(asked.allowed(all_, asked.broker.metadata(None).topics))
        topic_class = type(asked.request).TopicRequest
        asked.request.topics = [topic_class(name=name) for name in names]
        refused: list[Any] = []
    else:
        refused = _descriptions.split(asked, named)
    if not asked.request.topics:
        return DescribeTopicPartitionsResponse(throttle_time_ms=0, topics=refused, next_cursor=None)
    response = asked.answer()
    found = asked.operations(Kind.TOPIC, (topic.name for topic in response.topics))
    for topic in response.topics:
        topic.topic_authorized_operations = sum(1 << one for one in found[topic.name])
    response.topics.extend(refused)
    return response


# -- Metadata --------------------------------------------------------------------------------------


def metadata(asked: Asked) -> Any:
    """Topics that may be described; of all topics the others are left out."""
    describe, see, create, _ = asked.needs
    request = asked.request
    prefer_ids(request)
    refused: list[Any] = []
    if request.topics is None or (asked.version == 0 and not request.topics):
        response = asked.answer()
        seen = asked.allowed(see, (topic.name for topic in response.topics))
        response.topics = [topic for topic in response.topics if topic.name in seen]
    else:
        by_id = topic_names(asked.broker, [topic.topic_id for topic in request.topics if topic.name is None])

        def name_of(topic: Any) -> str | None:
            return by_id.get(topic.topic_id) if topic.name is None else topic.name

        names = {name for name in map(name_of, request.topics) if name is not None}
        allowed = asked.allowed(describe, names)
        missing = _not_to_be_created(asked, create, allowed)
        kept = []
        for topic in request.topics:
            name = name_of(topic)
            error = missing.get(name or "") if name in allowed else describe.error
            if name is None or error is None:
                kept.append(topic)
            else:
                refused.append(_refused_topic(topic, error, asked.version))
        if not kept:  # to ask version 0 for no topics is to ask for all of them
            asked.request = _without_topics()
        else:
            request.topics = kept
        response = asked.answer()
    if request.include_topic_authorized_operations:
        found = asked.operations(Kind.TOPIC, (topic.name for topic in response.topics if topic.name))
        for topic in response.topics:
            topic.authorized_operations = found.get(topic.name)
    if request.include_cluster_authorized_operations:
        response.authorized_operations = cluster_operations(asked)
    response.topics.extend(refused)
    return response


def cluster_operations(asked: Asked) -> Any:
    """The allowed operations on the cluster; nothing for clients that may not describe it."""
    if not asked.may(asked.needs[-1]):
        return frozenset[Any]()
    return asked.operations(Kind.CLUSTER, [CLUSTER_NAME])[CLUSTER_NAME]


def _without_topics() -> Any:
    return MetadataRequest(
        topics=[],
        allow_auto_topic_creation=False,
        include_cluster_authorized_operations=False,
        include_topic_authorized_operations=False,
        version=1,
    )


def _not_to_be_created(asked: Asked, create: Any, names: set[str]) -> dict[str, Error]:
    """The missing topics that would be created and may not be, with their errors."""
    may_create = bool(asked.request.allow_auto_topic_creation) if asked.version >= 4 else True
    if not may_create or not names:
        return {}
    found = asked.broker.metadata(names, False).topics
    missing = {name for name, topic in found.items() if topic.error is UnknownTopicOrPartitionError}
    refused = missing - asked.allowed(create, missing)
    if not refused:
        return {}
    node = Resource(ResourceType.BROKER, str(asked.broker.metadata(()).controller_id))
    entries = asked.broker.describe_configs({node: [_AUTO_CREATE]})[node].entries
    creates = any(entry.name == _AUTO_CREATE and entry.value == "true" for entry in entries)
    error = TopicAuthorizationFailedError if creates else UnknownTopicOrPartitionError
    return dict.fromkeys(refused, error)


def _refused_topic(topic: Any, error: Error, version: int) -> Any:
    by_id = topic.name is None
    return _Topic(
        error_code=error_code(error),
        name=(None if version >= 12 else "") if by_id else topic.name,
        topic_id=topic.topic_id if by_id else NO_UUID,
        is_internal=False,
        partitions=[],
        authorized_operations=None,
    )
