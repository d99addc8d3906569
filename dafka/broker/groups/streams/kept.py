"""The topologies of Streams groups over restarts: the log's table ``topologies``, a row for each group.

A group's topology does not change as long as it has one, as in Apache Kafka: members with another one of the
same epoch are refused, until the group is deleted or its offsets have expired.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any
from weakref import WeakKeyDictionary

from kafka.errors import BrokerResponseError, KafkaStorageError

from dafka.broker.groups.streams.group import StreamsGroup
from dafka.broker.groups.streams.topology import check_topology, normal
from dafka.broker.interface.groups import Error
from dafka.broker.interface.streams_groups import InternalTopic, Subtopology, Topology
from dafka.commit.writer import Writer
from dafka.log import Log, LogClosedError, LogError, shapes
from dafka.log.repeating import bounded_logger

log = bounded_logger(__name__)

TOPOLOGIES = "topologies"

_TEXTS = shapes.list_of(shapes.text)
_INTERNAL = shapes.list_of(
    shapes.row_of(shapes.text, shapes.natural, shapes.number, shapes.mapping_of(shapes.text))
)
_PART = shapes.row_of(
    shapes.text, _TEXTS, _TEXTS, _INTERNAL, _TEXTS, _INTERNAL, shapes.list_of(shapes.list_of(shapes.text))
)
_ROW = shapes.row_of(shapes.natural, shapes.list_of(_PART))


class KeptTopologies:
    """The topologies of one broker's groups. Hub side."""

    def __init__(self, log: Log, writer: Writer) -> None:
        self._table = log.table(TOPOLOGIES, shapes.rows(shapes.any_key, _ROW))
        self._writer = writer
        self._noted: WeakKeyDictionary[StreamsGroup, Topology] = WeakKeyDictionary()
        self._writing: Counter[str] = Counter()  # writes of each row that are under way

    def restore(self, name: str, group: StreamsGroup) -> StreamsGroup:
        """Give a group that is known from before a restart its topology."""
        row = self._table.get(name)
        if row is not None:
            topology = decoded(row)
            try:
                check_topology(topology)
            except BrokerResponseError as error:
                log.warning("the topology of group %r that was kept is not used: %s", name, error)
            else:
                group.begin_with(normal(topology))
        return group

    def note(self, name: str, group: StreamsGroup) -> None:
        """Write the topology of a group, if it has one that is not written. Does not wait for the commit."""
        topology = group.topology
        if topology is None or self._noted.get(group) is topology:
            return
        self._noted[group] = topology
        row = encoded(topology)
        if row == self._table.get(name) and name not in self._writing:
            return

        def done(error: Exception | None) -> None:
            self._written([name])
            # Without it the first member after a restart brings the topology again.
            if error is not None and not isinstance(error, LogClosedError):
                log.warning("the topology of group %r was not written: %s", name, error)

        self._writing[name] += 1
        self._writer.put({(TOPOLOGIES, name): row}, done)

    def forget(self, names: Iterable[str]) -> Error | None:
        """Delete the rows of these groups; waits as a green thread."""
        gone = [name for name in names if self._table.get(name) is not None or name in self._writing]
        self._writing.update(gone)
        try:
            if gone:
                self._writer.put_and_wait({(TOPOLOGIES, name): None for name in gone})
        except LogError as error:
            log.error("topologies of groups were not deleted: %s", error)
            return KafkaStorageError
        finally:
            self._written(gone)
        return None

    def _written(self, names: Iterable[str]) -> None:
        for name in names:
            self._writing[name] -= 1
            if not self._writing[name]:
                del self._writing[name]

    def forget_others(self, known: Iterable[str]) -> None:
        """Delete the rows of all other groups; waits as a green thread."""
        self.forget(set(self._table.unordered()).difference(known))


def encoded(topology: Topology) -> list[Any]:
    """A topology as a row has it."""
    return [topology.epoch, [_encoded_part(one) for one in topology.subtopologies]]


def _encoded_part(one: Subtopology) -> list[Any]:
    return [
        one.name,
        list(one.sources),
        list(one.regexes),
        _encoded_topics(one.changelogs),
        list(one.repartition_sinks),
        _encoded_topics(one.repartition_sources),
        [sorted(names) for names in one.copartitioned],
    ]


def _encoded_topics(topics: Sequence[InternalTopic]) -> list[Any]:
    return [[one.name, one.partitions, one.replicas, dict(one.configs)] for one in topics]


def decoded(row: Sequence[Any]) -> Topology:
    """The topology of a row."""
    epoch, parts = row
    return Topology(epoch, [_decoded_part(*part) for part in parts])


def _decoded_part(
    name: str,
    sources: list[str],
    regexes: list[str],
    changelogs: list[Any],
    sinks: list[str],
    repartition: list[Any],
    copartitioned: list[list[str]],
) -> Subtopology:
    return Subtopology(
        name,
        sources,
        regexes,
        [InternalTopic(*topic) for topic in changelogs],
        sinks,
        [InternalTopic(*topic) for topic in repartition],
        [frozenset(names) for names in copartitioned],
    )
