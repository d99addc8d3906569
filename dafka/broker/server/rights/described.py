"""Descriptions of groups whose topics are known: the parts that the client may see."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from dafka.broker.server.rights.asked import Asked
from dafka.security.acls.terms import ResourceType

TOPICS_REFUSED = "The group has described topic(s) that the client is not authorized to describe."


def described(
    asked: Asked,
    topics_of: Callable[[Any], Iterable[str]],
    refused: Callable[..., Any],
    words: str = TOPICS_REFUSED,
) -> Any:
    """Groups that may be described, if their topics may be, with the operations allowed on each.

    ``topics_of(group)`` are the topics of a group; ``refused(group_id, error, words)`` describes a group that
    may not be seen, the words being the error's own if there are none. ``words`` are for one whose topics may
    not be described.
    """
    group_need, topic_need = asked.needs
    request = asked.request
    names = list(dict.fromkeys(request.group_ids))
    allowed = asked.allowed(group_need, names)
    request.group_ids = [name for name in names if name in allowed]
    response = asked.answer()
    for place, group in enumerate(response.groups):
        topics = {*topics_of(group)}
        if asked.allowed(topic_need, topics) != topics:
            response.groups[place] = refused(group.group_id, topic_need.error, words)
    if request.include_authorized_operations:
        seen = [group for group in response.groups if not group.error_code]
        found = asked.operations(ResourceType.GROUP, (group.group_id for group in seen))
        for group in seen:
            group.authorized_operations = found[group.group_id]
    response.groups += [refused(name, group_need.error) for name in names if name not in allowed]
    return response
