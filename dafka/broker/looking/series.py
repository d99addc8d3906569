"""The state of a broker's topics, partitions and groups, as series of numbers for monitoring.

Names are those of Apache Kafka's metrics as its JMX exporter writes them, where Kafka has such a metric, and
of kafka_exporter for groups and their lag, which Kafka does not have. Rates come from the ends of partitions:
``rate(kafka_log_log_logendoffset[1m])`` is records a second.

Each labelled series costs the monitoring, so their number is bounded: of those beyond only the number is
told. Finding them costs the broker, so the result is kept for some time, however many ask, and however often
(:class:`SeriesCache`).
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from kafka.errors import KafkaError

from dafka.broker.interface.records import EARLIEST, LATEST
from dafka.broker.looking.outcomes import Asked
from dafka.protocol.errors import DafkaError

ROWS = 2000
"""Partitions that have series of their own, and partitions of groups."""

GROUPS = 2000
"""Groups whose offsets are asked for."""

FRESH_SECONDS = 1.0
"""So old may what was found be, at least."""

SHARE = 0.05
"""Of the time, that may be spent on finding it."""

OLDEST_SECONDS = 60.0
"""So old it may become when finding it has taken long: a broker that was slow once is not slow for ever."""

LEFT_OUT = "dafka_broker_series_left_out"

TopicPartition = tuple[str, int]


class Series(NamedTuple):
    """A gauge: a number for each of ``rows``, whose labels have the names ``labels``."""

    name: str
    description: str
    labels: tuple[str, ...]
    rows: Sequence[tuple[tuple[str, ...], float]]


def series_of(broker: Asked, limit: int = ROWS) -> list[Series]:
    """The series of a broker, with ``limit`` partitions at most, in the order of their names."""
    topics = broker.call("metadata", None).topics
    known = sorted((name, one.number) for name, topic in topics.items() for one in topic.partitions)
    shown = known[:limit]
    starts, ends = (_offsets(broker, shown, place) for place in (EARLIEST, LATEST))
    found = [
        Series("kafka_controller_kafkacontroller_globaltopiccount", "Topics", (), [((), len(topics))]),
        Series("kafka_server_replicamanager_partitioncount", "Partitions", (), [((), len(known))]),
        _of_partitions("kafka_log_log_logstartoffset", "First offset of a partition", starts),
        _of_partitions("kafka_log_log_logendoffset", "Offset behind the last record of a partition", ends),
        *_of_disks(broker, shown),
    ]
    of_groups, left_out = _of_groups(broker, limit)
    left = {"partitions": len(known) - len(shown), "groups": left_out}
    rows = [((kind,), float(count)) for kind, count in left.items()]
    description = "Partitions, and partitions of groups or whole groups, that have no series of their own"
    return [*found, *of_groups, Series(LEFT_OUT, description, ("kind",), rows)]


class SeriesCache:
    """The last result of :func:`series_of`, shared by all callers; from any thread.

    It is found anew if it is older than FRESH_SECONDS, and if no more than SHARE of the time goes into that;
    once in OLDEST_SECONDS in any case.
    """

    def __init__(self, find: Callable[[], list[Series]], clock: Callable[[], float] = time.monotonic) -> None:
        self._find = find
        self._clock = clock
        self._lock = threading.Lock()  # one finds it, the others wait for what it has found
        self._found: list[Series] = []
        self._until = float("-inf")

    def __call__(self) -> list[Series]:
        with self._lock:
            began = self._clock()
            if began >= self._until:
                self._found = self._find()
                now = self._clock()
                self._until = now + max(FRESH_SECONDS, min((now - began) * (1 / SHARE - 1), OLDEST_SECONDS))
            return self._found


def _of_groups(broker: Asked, limit: int) -> tuple[list[Series], int]:
    """The series of groups, and how many of their partitions are left out, or of themselves."""
    groups = sorted(broker.call("list_groups"))
    positions: dict[tuple[str, str, int], int] = {}
    left_out = 0
    asked = 0
    for group in groups[:GROUPS]:
        asked += 1
        for (topic, number), committed in sorted(_committed(broker, group.group).items()):
            if len(positions) < limit:
                positions[group.group, topic, number] = committed
            else:
                left_out += 1
        if left_out:
            break  # groups behind it are not asked for: that would cost without a bound
    left_out += len(groups) - asked
    ends = _offsets(broker, sorted({(topic, number) for _, topic, number in positions}), LATEST)
    labels = ("consumergroup", "topic", "partition")
    there = [(key, at) for key, at in positions.items() if key[1:] in ends]
    lags = [(_labelled(key), float(max(0, ends[key[1:]] - at))) for key, at in there]
    states = Counter((group.type.value, group.state) for group in groups)
    return [
        Series(
            "kafka_consumergroup_current_offset",
            "Committed offset of a group in a partition",
            labels,
            [(_labelled(key), float(at)) for key, at in there],
        ),
        Series("kafka_consumergroup_lag", "Records behind the committed offset of a group", labels, lags),
        Series(
            "kafka_coordinator_group_groupmetadatamanager_numgroups",
            "Groups by their type and state",
            ("type", "state"),
            [(state, float(count)) for state, count in sorted(states.items())],
        ),
    ], left_out


def _of_partitions(name: str, description: str, numbers: dict[TopicPartition, int]) -> Series:
    rows = [((topic, str(number)), float(value)) for (topic, number), value in numbers.items()]
    return Series(name, description, ("topic", "partition"), rows)


def _labelled(key: tuple[str, str, int]) -> tuple[str, ...]:
    return tuple(map(str, key))


def _offsets(broker: Asked, partitions: Iterable[TopicPartition], place: int) -> dict[TopicPartition, int]:
    """The offsets of the partitions that are still there."""
    found = broker.call("list_offsets", dict.fromkeys(partitions, place))
    return {key: one.offset for key, one in found.items() if one.error is None}


def _of_disks(broker: Asked, partitions: list[TopicPartition]) -> list[Series]:
    directories = broker.call("log_directories", sorted({topic for topic, _ in partitions}))
    sizes = {key: size for directory in directories for key, size in directory.sizes.items()}
    known = [one for one in directories if one.total_bytes >= 0]
    return [
        _of_partitions(
            "kafka_log_log_size",
            "Stored octets of a partition",
            {key: sizes[key] for key in partitions if key in sizes},
        ),
        Series(
            "dafka_broker_disk_total_bytes",
            "Size of the file system that records are on",
            ("folder",),
            [((one.path,), float(one.total_bytes)) for one in known],
        ),
        Series(
            "dafka_broker_disk_usable_bytes",
            "What is free there",
            ("folder",),
            [((one.path,), float(one.usable_bytes)) for one in known],
        ),
    ]


def _committed(broker: Asked, group: str) -> dict[TopicPartition, int]:
    try:
        found = broker.call("fetch_offsets", group)
    except (KafkaError, DafkaError):  # it has gone meanwhile, or keeps its offsets in another way
        return {}
    return {key: committed.offset for key, committed in found.items()}
