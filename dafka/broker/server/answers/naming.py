"""What the answers share: the version of a request, topics by id, and grouping by topic."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar
from uuid import UUID

from dafka.broker.interface.broker import BrokerInterface, TopicPartition

NO_UUID = UUID(int=0)

T = TypeVar("T")


def version_of(request: Any) -> int:
    """The version of a request; the newest one if the request has none."""
    version = request.API_VERSION
    return int(request.max_version if version is None else version)


def topic_names(broker: BrokerInterface, ids: Iterable[UUID | None]) -> dict[UUID, str]:
    """The names of topics by id; unknown ids are left out."""
    wanted = {one for one in ids if one is not None}
    return broker.topic_names(wanted) if wanted else {}


def by_topic(partitions: Mapping[TopicPartition, T]) -> dict[str, list[tuple[int, T]]]:
    """Values by topic, each with the number of its partition."""
    topics: dict[str, list[tuple[int, T]]] = {}
    for (topic, number), value in partitions.items():
        topics.setdefault(topic, []).append((number, value))
    return topics
