"""What the answers have in common: error codes, topics by id, and grouping by topic."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar
from uuid import UUID

from dafka.broker.interface.broker import BrokerInterface, Error, TopicPartition

NO_UUID = UUID(int=0)

T = TypeVar("T")


def code(error: Error | None) -> int:
    """The protocol's number of an error."""
    return 0 if error is None else int(error.errno)


def message(error: Error | None, detail: str | None = None) -> str | None:
    """What is wrong in words."""
    return None if error is None else detail or str(error.description) or str(error.message)


def version_of(request: Any) -> int:
    """The version of a request; one that has none is of the newest."""
    version = request.API_VERSION
    return int(request.max_version if version is None else version)


def topic_names(broker: BrokerInterface, ids: Iterable[UUID | None]) -> dict[UUID, str]:
    """The names of the topics with these ids, as far as there are such topics."""
    wanted = {one for one in ids if one is not None}
    return broker.topic_names(wanted) if wanted else {}


def by_topic(partitions: Mapping[TopicPartition, T]) -> dict[str, list[tuple[int, T]]]:
    """Values by topic, each with its partition's number."""
    topics: dict[str, list[tuple[int, T]]] = {}
    for (topic, number), value in partitions.items():
        topics.setdefault(topic, []).append((number, value))
    return topics
