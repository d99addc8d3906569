"""Rights of the APIs about groups of Kafka Streams."""

from __future__ import annotations

from typing import Any

from dafka.broker.codec.errors import error_code, error_message
from dafka.broker.groups.streams.topology import RESERVED
from dafka.broker.interface.broker import Error
from dafka.broker.server.answers.streams_groups import refused
from dafka.broker.server.rights.asked import Asked
from dafka.broker.server.rights.described import described
from dafka.broker.topics.table import is_legal

TOPICS_REFUSED = "The described group uses topics that the client is not authorized to describe."


def heartbeat(asked: Asked) -> Any:
    """A member needs its group, and the topics of its topology. Internal topics that it may not create stay
    missing."""
    group, topic = asked.needs[:2]
    if not asked.may(group, asked.request.group_id):
        return asked.refused(group.error)
    names = _topics(asked.request.topology)
    are_topics = all(is_legal(name) and name not in RESERVED for name in names)  # others are refused anyway
    if are_topics and asked.allowed(topic, names) != names:
        return asked.refused(topic.error)
    return asked.answer()


def _topics(topology: Any) -> set[str]:
    names: set[str] = set()
    for one in () if topology is None else topology.subtopologies:
        names.update(one.source_topics, one.repartition_sink_topics)
        names.update(topic.name for topic in (*one.repartition_source_topics, *one.state_changelog_topics))
    return names


def describe(asked: Asked) -> Any:
    """Groups that may be described, if their topics may be, with the operations allowed on each."""

    def refuse(name: str, error: Error, words: str | None = None) -> Any:
        return refused(name, error_code(error), words or error_message(error))

    return described(asked, lambda group: _topics(group.topology), refuse, TOPICS_REFUSED)
