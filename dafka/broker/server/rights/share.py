"""Rights of the APIs about share groups."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any
from uuid import UUID

from dafka.broker.interface.broker import Error
from dafka.broker.server.answers.naming import topic_names
from dafka.broker.server.answers.share import (
    altered_topic,
    deleted_topic,
    offset_topic,
    refused_acknowledgements,
    refused_fetch,
    refused_group,
    refused_offsets,
)
from dafka.broker.server.answers.share_states import refused_states
from dafka.broker.server.rights.asked import Asked
from dafka.broker.server.rights.described import described


def states(asked: Asked) -> Any:
    """The stored states of groups are for brokers."""
    (need,) = asked.needs
    if not asked.may(need):
        return refused_states(asked.response_class, asked.request, need.error)
    return asked.answer()


def describe(asked: Asked) -> Any:
    """Groups that may be described, if their topics may be, with the operations allowed on each."""

    def topics(group: Any) -> set[str]:
        return {topic.topic_name for one in group.members for topic in one.assignment.topic_partitions}

    return described(asked, topics, refused_group)


def fetch(asked: Asked) -> Any:
    """Records need the group, and their topics.

    Rights that were taken away since a session has begun, or while the fetch waited, count as well: the
    records are then locked for nobody until their locks expire.
    """
    response = _of_records(asked, refused_fetch)
    _, need = asked.needs
    names = topic_names(asked.broker, {topic.topic_id for topic in response.responses or ()})
    allowed = asked.allowed(need, names.values())
    response.responses = [
        topic
        if names.get(topic.topic_id) in allowed or topic.topic_id not in names
        else refused_fetch(topic.topic_id, [one.partition_index for one in topic.partitions], need.error)
        for topic in response.responses or ()
    ]
    return response


def acknowledge(asked: Asked) -> Any:
    """The same for acknowledgements."""
    return _of_records(asked, refused_acknowledgements)


def _of_records(asked: Asked, refused: Callable[[UUID, Iterable[int], Error], Any]) -> Any:
    group, need = asked.needs
    request = asked.request
    if not asked.may(group, request.group_id or ""):
        return asked.refused(group.error)
    names = topic_names(asked.broker, {topic.topic_id for topic in request.topics})
    allowed = asked.allowed(need, names.values())
    kept: list[Any] = []
    left_out: list[Any] = []
    for topic in request.topics:
        # Rights do not matter for a topic that does not exist.
        may = topic.topic_id not in names or names[topic.topic_id] in allowed
        (kept if may else left_out).append(topic)
    request.topics = kept
    response = asked.answer()
    if not response.error_code:
        for topic in left_out:
            numbers = [one.partition_index for one in topic.partitions]
            response.responses.append(refused(topic.topic_id, numbers, need.error))
    return response


def describe_offsets(asked: Asked) -> Any:
    """Groups and topics that may be described; of those that are not named, only these."""
    group_need, named, seen = asked.needs
    request = asked.request
    allowed = asked.allowed(group_need, (group.group_id for group in request.groups))
    refused = [group.group_id for group in request.groups if group.group_id not in allowed]
    request.groups = [group for group in request.groups if group.group_id in allowed]
    hidden: dict[str, list[Any]] = {}
    for group in request.groups:
        if group.topics is not None:
            known = asked.allowed(named, (topic.topic_name for topic in group.topics))
            hidden[group.group_id] = [topic for topic in group.topics if topic.topic_name not in known]
            group.topics = [topic for topic in group.topics if topic.topic_name in known]
    response = asked.answer()
    for group in response.groups:
        if group.group_id in hidden:
            group.topics.extend(
                offset_topic(topic.topic_name, topic.partitions, named.error)
                for topic in hidden[group.group_id]
            )
        else:
            known = asked.allowed(seen, (topic.topic_name for topic in group.topics))
            group.topics = [topic for topic in group.topics if topic.topic_name in known]
    response.groups.extend(refused_offsets(name, group_need.error) for name in refused)
    return response


def alter_offsets(asked: Asked) -> Any:
    """The group, and each of the topics."""
    return _of_topics(
        asked,
        lambda topic, error: altered_topic(
            topic.topic_name, [one.partition_index for one in topic.partitions], error
        ),
    )


def delete_offsets(asked: Asked) -> Any:
    """The group, and each of the topics."""
    return _of_topics(asked, lambda topic, error: deleted_topic(topic.topic_name, error))


def _of_topics(asked: Asked, refused: Callable[[Any, Error], Any]) -> Any:
    group, need = asked.needs
    request = asked.request
    if not asked.may(group, request.group_id):
        return asked.refused(group.error)
    allowed = asked.allowed(need, (topic.topic_name for topic in request.topics))
    left_out = [topic for topic in request.topics if topic.topic_name not in allowed]
    request.topics = [topic for topic in request.topics if topic.topic_name in allowed]
    response = asked.answer()
    if not response.error_code:
        response.responses.extend(refused(topic, need.error) for topic in left_out)
    return response
