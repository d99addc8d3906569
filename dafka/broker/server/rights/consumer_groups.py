"""Rights of the APIs about consumer groups whose assignment the broker computes."""

from __future__ import annotations

from typing import Any

from dafka.broker.codec.errors import error_code, error_message
from dafka.broker.interface.broker import Error
from dafka.broker.server.answers.consumer_groups import refused
from dafka.broker.server.rights.asked import Asked
from dafka.broker.server.rights.described import described


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

    def topics(group: Any) -> set[str]:
        shares = [one for member in group.members for one in (member.assignment, member.target_assignment)]
        return {topic.topic_name for share in shares for topic in share.topic_partitions}

    def refuse(name: str, error: Error, words: str | None = None) -> Any:
        return refused(name, error_code(error), words or error_message(error))

    return described(asked, topics, refuse)
