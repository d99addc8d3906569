"""Shared by the answers: the version of a request, names and fields of topics, and grouping by topic."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar
from uuid import UUID

from dafka.broker.codec.errors import error_code
from dafka.broker.interface.broker import BrokerInterface, PartitionMetadata, TopicMetadata, TopicPartition
from dafka.hub.turns import Pace

NO_UUID = UUID(int=0)
REPEATED = 20

K = TypeVar("K")
T = TypeVar("T")


def version_of(request: Any) -> int:
    """The version of a request; the newest one if the request has none."""
    version = request.API_VERSION
    return int(request.max_version if version is None else version)


def not_there(broker: BrokerInterface, names: Collection[str]) -> set[str]:
    """The names without a topic."""
    if not names:
        return set()
    return {name for name, topic in broker.metadata(names).topics.items() if topic.error is not None}


def topic_names(broker: BrokerInterface, ids: Iterable[UUID | None]) -> dict[UUID, str]:
    """The names of topics by id; unknown ids are left out."""
    wanted = {one for one in ids if one is not None}
    return broker.topic_names(wanted) if wanted else {}


def prefer_ids(request: Any) -> None:
    """Have a Metadata request name a topic by its id alone where it has both, as Java's Admin does."""
    for topic in request.topics or ():
        if topic.topic_id not in (None, NO_UUID):
            topic.name = None


def by_topic(partitions: Mapping[TopicPartition, T]) -> dict[str, list[tuple[int, T]]]:
    """Values by topic, each with the number of its partition."""
    topics: dict[str, list[tuple[int, T]]] = {}
    for (topic, number), value in partitions.items():
        topics.setdefault(topic, []).append((number, value))
    return topics


class _Repeats:
    """Names that a request repeats: as in Kafka they are answered again, but REPEATED times at most in all,
    for the answer to a short name may be long."""

    def __init__(self) -> None:
        self._seen: set[Any] = set()
        self._left = REPEATED

    def are_answered(self, name: Any) -> bool:
        if name not in self._seen:
            self._seen.add(name)
            return True
        self._left -= 1
        return self._left >= 0


def as_named(items: Iterable[T], name: Callable[[T], Any] = lambda one: one) -> Iterator[T]:
    """The items of a request, in its order; those that have a ``name`` again come REPEATED times at most."""
    repeats = _Repeats()
    return (one for one in items if repeats.are_answered(name(one)))


def as_asked(
    asked: Iterable[tuple[str, Iterable[int]]], answers: Mapping[TopicPartition, T]
) -> Iterator[tuple[str, list[tuple[int, T]]]]:
    """Values by topic in the order of a request: twice what it names twice, topics without partitions too.

    So it is with REPEATED partitions at most.
    """
    repeats = _Repeats()
    for topic, numbers in Pace().over(list(asked)):
        some = [number for number in numbers if repeats.are_answered((topic, number))]
        yield topic, [(number, answers[topic, number]) for number in some]


def in_two(
    asked: Iterable[tuple[K, list[tuple[int, T]]]], is_unknown: Callable[[T], bool], gone: Collection[K] = ()
) -> list[tuple[K, list[tuple[int, T]]]]:
    """Topics in the order of Kafka, which looks for partitions before it does something with them.

    Partitions that do not exist come first, by topic; existing ones are added to their topic there, or else
    come as they were asked. Of topics of which no partition was named those that are not there, ``gone``, are
    answered.
    """
    unknown: dict[K, list[tuple[int, T]]] = {}
    known: list[tuple[K, list[tuple[int, T]]]] = []
    pace = Pace()
    for topic, partitions in pace.over(asked):
        there = [one for one in pace.over(partitions) if not is_unknown(one[1])]
        if len(there) < len(partitions) or topic in gone:
            unknown.setdefault(topic, []).extend(one for one in partitions if is_unknown(one[1]))
        if there:
            known.append((topic, there))
    if not unknown:
        return known
    for topic, there in known:
        unknown.setdefault(topic, []).extend(there)
    return list(unknown.items())


def topic_fields(
    topic: TopicMetadata,
    partition_class: Any,
    node: int,
    partitions: Sequence[PartitionMetadata] | None = None,
    **more: Any,
) -> dict[str, Any]:
    """The fields that a topic has in Metadata and in DescribeTopicPartitions.

    ``node`` is the only broker, ``partitions`` the partitions to describe (None: all), and ``more`` further
    fields of each partition.
    """
    nodes, none = [node], list[int]()
    return {
        "error_code": error_code(topic.error),
        "name": topic.name,
        "topic_id": topic.topic_id,
        "is_internal": False,
        "partitions": [
            partition_class(
                error_code=0,
                partition_index=one.number,
                leader_id=node,
                leader_epoch=one.leader_epoch,
                replica_nodes=nodes,
                isr_nodes=nodes,
                offline_replicas=none,
                **more,
            )
            for one in (topic.partitions if partitions is None else partitions)
        ],
    }
