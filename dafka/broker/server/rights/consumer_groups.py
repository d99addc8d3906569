"""Rights of the APIs about consumer groups whose assignment the broker computes."""

from __future__ import annotations

from typing import Any

from dafka.broker.codec.errors import error_code, error_message
from dafka.broker.server.answers.consumer_groups import refused
from dafka.broker.server.rights.asked import Asked
from dafka.security.acls.terms import ResourceType


def heartbeat(asked: Asked) -> Any:
    """A member needs its group, and the topics that it names; of others it learns nothing."""
    group, topic = asked.needs
    if not asked.may(group, asked.request.group_id):
        return asked.refused(group.error)
    names = set(asked.request.subscribed_topic_names or ())
    if asked.allowed(topic, names) != names:
        return asked.refused(topic.error)
    return asked.answer()


def describe(asked: Asked) -> Any:
    """Groups that may be described, if their topics may be, with the operations allowed on each."""
    group_need, topic_need = asked.needs
    request = asked.request
    names = list(dict.fromkeys(request.group_ids))
    allowed = asked.allowed(group_need, names)
    request.group_ids = [name for name in names if name in allowed]
    response = asked.answer()
    groups = [_visible(asked, group, topic_need) for group in response.groups]
    if request.include_authorized_operations:
        described = [group for group in groups if not group.error_code]
        found = asked.operations(ResourceType.GROUP, (group.group_id for group in described))
        for group in described:
            group.authorized_operations = found[group.group_id]
    code, words = error_code(group_need.error), error_message(group_need.error)
    response.groups = groups + [refused(name, code, words) for name in names if name not in allowed]
    return response


def _visible(asked: Asked, group: Any, need: Any) -> Any:
    topics = {
        topic.topic_name
        for member in group.members
        for share in (member.assignment, member.target_assignment)
        for topic in share.topic_partitions
    }
    if asked.allowed(need, topics) == topics:
        return group
    words = "The group has described topic(s) that the client is not authorized to describe."
    return refused(group.group_id, error_code(need.error), words)
