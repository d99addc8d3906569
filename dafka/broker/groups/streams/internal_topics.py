"""How many tasks each subtopology has, and how many partitions the topology's internal topics.

- A repartition topic has the partitions that the topology says; otherwise as many as the largest topic that
  a subtopology reads which writes it.
- Copartitioned topics have equally many: as many as those of them that others have made or the topology
  says. The other ones follow.
- A changelog has as many as its subtopology has tasks, which is as many as the largest topic that it reads.

Topics that exist are as they are; if they do not fit, no task can run.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import NamedTuple

from dafka.broker.groups.streams.topology import internal_of, sources_of
from dafka.broker.interface.streams_groups import (
    InternalTopic,
    Status,
    StatusCode,
    StreamsInvalidTopologyError,
    Topology,
)
from dafka.broker.limits import GROUP_TASKS

SUMMARIZED = 3  # topics in the words of a status

Partitions = Callable[[str], int | None]


class Configured(NamedTuple):
    """A topology with topics.

    ``problem``: why no task can run. ``tasks``: how many each subtopology has; empty if that is unknown.
    ``missing``: internal topics that have to be made.
    """

    topology: Topology
    problem: Status | None
    tasks: Mapping[str, int] = {}
    missing: Mapping[str, InternalTopic] = {}

    @property
    def is_ready(self) -> bool:
        """Whether tasks can run."""
        return self.problem is None


class _UnfitError(Exception):
    """Topics do not fit."""

    def __init__(self, code: StatusCode, detail: str) -> None:
        self.status = Status(code, detail)
        super().__init__(detail)


def configure(topology: Topology, partitions: Partitions) -> Configured:
    """The topology with the topics that there are; ``partitions(name)`` is None if one is not.

    Raises StreamsInvalidTopologyError if the number of partitions of a topic cannot be known.
    """
    try:
        return _configured(topology, partitions)
    except _UnfitError as error:
        return Configured(topology, error.status)


def _configured(topology: Topology, partitions: Partitions) -> Configured:
    sources = {name for one in topology.subtopologies for name in one.sources}
    absent = sorted(name for name in sources if partitions(name) is None)
    if absent:
        raise _UnfitError(
            StatusCode.MISSING_SOURCE_TOPICS, f"Source topics {summarized(absent)} are missing."
        )
    decided = _repartition(topology, partitions)

    def count(name: str) -> int:
        found = partitions(name)
        if found is None:
            found = decided.get(name)
        if found is None:
            raise StreamsInvalidTopologyError(f"Number of partitions is not set for topic: {name}")
        return found

    _copartition(topology, decided, count)
    tasks = {one.name: max(map(count, sources_of(one))) for one in topology.subtopologies}
    if sum(tasks.values()) > GROUP_TASKS:
        raise _UnfitError(
            StatusCode.INCORRECTLY_PARTITIONED_TOPICS,
            f"The topology has {sum(tasks.values())} tasks; {GROUP_TASKS} are the most.",
        )
    for one in topology.subtopologies:
        decided.update((topic.name, tasks[one.name]) for topic in one.changelogs)
    whole = _with_partitions(topology, decided)
    missing = _missing(whole, partitions)
    problem = None
    if missing:
        words = f"Internal topics are missing: {summarized(missing)}"
        problem = Status(StatusCode.MISSING_INTERNAL_TOPICS, words)
    return Configured(whole, problem, tasks, missing)


def _repartition(topology: Topology, partitions: Partitions) -> dict[str, int]:
    """The partitions of all repartition topics."""
    decided = {
        topic.name: topic.partitions
        for one in topology.subtopologies
        for topic in one.repartition_sources
        if topic.partitions
    }
    if _decide(topology, partitions, decided):
        raise StreamsInvalidTopologyError(
            "Failed to compute number of partitions for all repartition topics. There may be loops in "
            "the topology that cannot be resolved."
        )
    if any(topic.name not in decided for one in topology.subtopologies for topic in one.repartition_sources):
        raise StreamsInvalidTopologyError(
            "Failed to compute number of partitions for all repartition topics, because a repartition "
            "source topic is never used as a sink topic."
        )
    return decided


def _decide(topology: Topology, partitions: Partitions, decided: dict[str, int]) -> set[int]:
    """Decide about topics that subtopologies write; the places of those for which nothing is known to go by.

    That is done in rounds over all of them, of which only those are looked at that read a topic decided last:
    a chain in the wrong order would take a round for each link.
    """
    readers: dict[str, list[int]] = {}
    for place, one in enumerate(topology.subtopologies):
        for topic in one.repartition_sources:
            readers.setdefault(topic.name, []).append(place)
    due = [(0, place) for place in range(len(topology.subtopologies))]  # a heap of rounds and places
    waiting: set[int] = set()
    while due:
        round_, place = heapq.heappop(due)
        one = topology.subtopologies[place]
        waiting.discard(place)
        sinks = [name for name in one.repartition_sinks if name not in decided]
        if not sinks:
            continue
        known = [decided[topic.name] for topic in one.repartition_sources if topic.name in decided]
        known += [found for name in one.sources if (found := partitions(name)) is not None]
        if not known:
            waiting.add(place)
            continue
        decided.update(dict.fromkeys(sinks, max(known)))
        for other in {other for name in sinks for other in readers.get(name, ())} & waiting:
            heapq.heappush(due, (round_ if other > place else round_ + 1, other))
    return {
        place
        for place in waiting
        if not decided.keys() >= set(topology.subtopologies[place].repartition_sinks)
    }


def _copartition(topology: Topology, decided: dict[str, int], count: Callable[[str], int]) -> None:
    """Give copartitioned topics equally many partitions."""
    repartition = [topic for one in topology.subtopologies for topic in one.repartition_sources]
    fixed = {topic.name for topic in repartition if topic.partitions}
    flexible = {topic.name for topic in repartition} - fixed
    for one in topology.subtopologies:
        for group in one.copartitioned:
            ours = [name for name in sorted(group) if name in fixed or name in flexible]
            others = [name for name in sorted(group) if name not in fixed and name not in flexible]
            said = [name for name in ours if name in fixed]
            if others:
                number = _same(others, count)
            elif said:
                number = _same(said, count)
            else:
                number = max(map(count, ours), default=0)
            for name in ours:
                if name in fixed and count(name) != number:
                    raise _UnfitError(
                        StatusCode.INCORRECTLY_PARTITIONED_TOPICS,
                        f"Number of partitions [{count(name)}] of repartition topic [{name}] doesn't match "
                        f"number of partitions [{number}] of the source topic.",
                    )
                decided[name] = number


def _same(names: Iterable[str], count: Callable[[str], int]) -> int:
    """The number of partitions that all of these have."""
    numbers = {name: count(name) for name in names}
    if len(set(numbers.values())) > 1:
        listed = ", ".join(f"{name}={number}" for name, number in numbers.items())
        raise _UnfitError(
            StatusCode.INCORRECTLY_PARTITIONED_TOPICS,
            f"Following topics do not have the same number of partitions: [{{{listed}}}]",
        )
    return next(iter(numbers.values()))


def _with_partitions(topology: Topology, decided: Mapping[str, int]) -> Topology:
    def of(topics: Iterable[InternalTopic]) -> list[InternalTopic]:
        return [topic._replace(partitions=topic.partitions or decided[topic.name]) for topic in topics]

    return topology._replace(
        subtopologies=[
            one._replace(changelogs=of(one.changelogs), repartition_sources=of(one.repartition_sources))
            for one in topology.subtopologies
        ]
    )


def _missing(topology: Topology, partitions: Partitions) -> dict[str, InternalTopic]:
    """The internal topics that are not there; those that are have the right number of partitions."""
    missing: dict[str, InternalTopic] = {}
    for one in topology.subtopologies:
        for topic in internal_of(one):
            found = partitions(topic.name)
            if found is None:
                missing[topic.name] = topic
            elif found != topic.partitions:
                raise _UnfitError(
                    StatusCode.INCORRECTLY_PARTITIONED_TOPICS,
                    f"Existing topic {topic.name} has different number of partitions: expected "
                    f"{topic.partitions}, found {found}",
                )
    return missing


def summarized(names: Collection[str]) -> str:
    """The first names, and how many there are besides."""
    if not names:
        return "<none>"
    words = ", ".join(sorted(names)[:SUMMARIZED])
    more = len(names) - SUMMARIZED
    return f"{words} and {more} additional topics" if more > 0 else words
