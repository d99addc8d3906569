"""Checks of a topology by itself, and the topics that it needs."""

from __future__ import annotations

from collections.abc import Iterator

from kafka.errors import InvalidRequestError

from dafka.broker.interface.streams_groups import (
    InternalTopic,
    StreamsInvalidTopologyError,
    Subtopology,
    Topology,
)
from dafka.broker.limits import MEMBER_TEXT, TOPOLOGY_LETTERS, TOPOLOGY_NAMES
from dafka.broker.topics.table import is_legal

RESERVED = ("__consumer_offsets", "__transaction_state", "__share_group_state")
"""Kafka's own topics, which no topology may use."""


def check_topology(topology: Topology) -> None:
    """Raise InvalidRequestError or StreamsInvalidTopologyError for a topology that is refused."""
    check_names(topology)
    check_parts(topology)


def check_names(topology: Topology) -> None:
    """The part of :func:`check_topology` that comes before everything else about a heartbeat."""
    _check_size(topology)
    sinks = {name for one in topology.subtopologies for name in one.repartition_sinks}
    _check_names(required_topics(topology) | sinks)


def check_parts(topology: Topology) -> None:
    """The other part of it."""
    if topology.epoch < 0:
        raise InvalidRequestError(f"The epoch of a topology is 0 or more, not {topology.epoch}.")
    if any(one.regexes for one in topology.subtopologies):
        raise InvalidRequestError("Regular expressions for source topics are not supported yet.")
    if len({one.name for one in topology.subtopologies}) != len(topology.subtopologies):
        raise StreamsInvalidTopologyError("Two subtopologies have the same id.")
    for subtopology in topology.subtopologies:
        if len(subtopology.name) > MEMBER_TEXT:
            raise InvalidRequestError(f"The id of a subtopology has {MEMBER_TEXT} characters at most.")
        for topic in subtopology.changelogs:
            if topic.partitions != 0:
                raise StreamsInvalidTopologyError(
                    f"Changelog topic {topic.name} must have an undefined partition count, but it is set "
                    f"to {topic.partitions}."
                )
        if not subtopology.sources and not subtopology.repartition_sources:
            raise StreamsInvalidTopologyError(f"No source topics found for subtopology {subtopology.name}")
        known = {*subtopology.sources, *subtopology.regexes}
        known.update(topic.name for topic in subtopology.repartition_sources)
        if any(not names <= known for names in subtopology.copartitioned):
            raise InvalidRequestError(
                f"A copartition group names a topic that subtopology {subtopology.name} does not have."
            )
        for topic in internal_of(subtopology):
            if topic.partitions < 0 or any(
                len(text) > MEMBER_TEXT for pair in topic.configs.items() for text in pair
            ):
                raise InvalidRequestError(f"Internal topic {topic.name} cannot be made as it is described.")


def _check_size(topology: Topology) -> None:
    """Raise InvalidRequestError for a topology that is too large, as soon as that is known."""
    total = letters = 0
    for one in topology.subtopologies:
        total += _names(one)
        if total <= TOPOLOGY_NAMES:
            letters += _letters(one)
        if total > TOPOLOGY_NAMES or letters > TOPOLOGY_LETTERS:
            raise InvalidRequestError(
                "The topology has too many topics, settings and the like, or too long names: "
                f"{TOPOLOGY_NAMES} with {TOPOLOGY_LETTERS} characters are the most."
            )


def normal(topology: Topology) -> Topology:
    """The same topology with everything in order, so that equal ones are equal."""
    return topology._replace(
        subtopologies=[
            one._replace(
                sources=sorted(one.sources),
                regexes=sorted(one.regexes),
                changelogs=sorted(one.changelogs, key=_name),
                repartition_sinks=sorted(one.repartition_sinks),
                repartition_sources=sorted(one.repartition_sources, key=_name),
                copartitioned=sorted(one.copartitioned, key=sorted),
            )
            for one in sorted(topology.subtopologies, key=lambda one: one.name)
        ]
    )


def _name(topic: InternalTopic) -> str:
    return topic.name


def _names(one: Subtopology) -> int:
    """How much there is in a subtopology; not all of it is counted if there is too much."""
    topics = len(one.sources) + len(one.regexes) + len(one.changelogs) + len(one.repartition_sources)
    total = 1 + topics + len(one.repartition_sinks) + len(one.copartitioned)
    if total > TOPOLOGY_NAMES:
        return total
    configs = sum(len(topic.configs) for topic in internal_of(one))
    return total + configs + sum(map(len, one.copartitioned))


def _letters(one: Subtopology) -> int:
    """How long all names in a subtopology are."""
    names = [one.name, *one.sources, *one.repartition_sinks]
    for topic in internal_of(one):
        names += [topic.name, *topic.configs, *topic.configs.values()]
    return sum(map(len, names)) + sum(len(name) for group in one.copartitioned for name in group)


def _check_names(names: frozenset[str]) -> None:
    reserved = sorted(names.intersection(RESERVED))
    if reserved:
        listed = ",".join(reserved)
        raise StreamsInvalidTopologyError(
            f"Use of Kafka internal topics {listed} in a Kafka Streams topology is prohibited."
        )
    illegal = sorted(name for name in names if not is_legal(name))
    if illegal:
        listed = ",".join(name[:MEMBER_TEXT] for name in illegal[:3])
        raise StreamsInvalidTopologyError(f"Topic names {listed} are not valid topic names.")


def internal_of(one: Subtopology) -> Iterator[InternalTopic]:
    """The internal topics that a subtopology reads, or keeps its state in."""
    yield from one.repartition_sources
    yield from one.changelogs


def sources_of(one: Subtopology) -> list[str]:
    """The topics that a subtopology reads, without those that hold its state."""
    return [*one.sources, *(topic.name for topic in one.repartition_sources)]


def readers(topology: Topology) -> dict[str, str]:
    """The subtopology that reads each of the topics that members read and commit offsets in."""
    return {name: one.name for one in topology.subtopologies for name in sources_of(one)}


def required_topics(topology: Topology) -> frozenset[str]:
    """All topics that have to be there before a task can run."""
    changelogs = (topic.name for one in topology.subtopologies for topic in one.changelogs)
    return frozenset(readers(topology)).union(changelogs)
