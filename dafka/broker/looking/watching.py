"""A cluster as it is watched: rates, lags and delays, from looks that follow each other.

Theory of operation. A look asks for the ends of all partitions and for the committed offsets of groups; all
other figures come from comparing it with the look before. *Written a second* is the growth of a topic's ends,
*read a second* that of a group's offsets. *Octets a second* is the growth of what a topic takes on the disk;
it is not known while more is deleted than written.

The *delay* of a group is how long a record waits for it. A partition whose end is ahead of the group gets a
mark: where its end was, and when. The delay is the time from there until the group has passed the mark, which
lies between two looks as its offset lies between those of the looks; until it has passed, it is the age of
the mark. So a delay counts from the first look on, and a group that stands still has one that grows.

A look asks for a bounded number of things, however large the cluster is. Groups beyond the bound are looked
at in turns, and keep what was found the last time.
"""

from __future__ import annotations

import time
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from math import ceil
from typing import Any, NamedTuple

from kafka.errors import KafkaConnectionError, KafkaError

from dafka.broker.interface.groups import GroupType, ListedGroup
from dafka.broker.interface.records import EARLIEST, LATEST
from dafka.broker.looking import groups as group_kinds
from dafka.broker.looking.outcomes import Asked
from dafka.protocol.errors import DafkaError

PARTITIONS = 20_000
"""Partitions that are watched, the first ones by name."""

GROUPS_A_LOOK = 200
"""Groups whose offsets one look asks for."""

POSITIONS = 200_000
"""Committed offsets that are remembered from look to look; groups beyond have no rate and no delay."""

ANSWERS = 100
"""Answers whose times are remembered of each kind."""

TopicPartition = tuple[str, int]


class TopicRow(NamedTuple):
    """``records``: offsets from the first one to the end. ``written``: a second, None at the first look.

    ``octets``: what it takes on the disk; ``growth``: a second, None where less is there than before.
    """

    topic: str
    partitions: int
    records: int
    written: float | None
    octets: int | None = None
    growth: float | None = None


class GroupRow(NamedTuple):
    """``read``: a second; ``delay``: seconds. None where it is not known."""

    group: str
    type: str
    state: str
    lag: int | None = None
    read: float | None = None
    delay: float | None = None


class Answers(NamedTuple):
    """How long the broker took to answer one kind of request, in milliseconds."""

    request: str
    last: float
    p50: float
    p99: float


class Look(NamedTuple):
    """The findings. ``left_out``: how much is not watched, or was not looked at this time."""

    cluster: str
    brokers: int
    topics: list[TopicRow]
    groups: list[GroupRow]
    answers: list[Answers]
    left_out: dict[str, int]


class _Waiting(NamedTuple):
    """Where the end of a partition was, and when: there the group is expected."""

    end: int
    since: float


class _Read:
    """The remembered figures of a group."""

    def __init__(self, now: float, offsets: dict[TopicPartition, int]) -> None:
        self.time = now
        self.offsets = offsets
        self.waiting: dict[TopicPartition, _Waiting] = {}


class Watch:
    """Looks at a cluster again and again; ``topics`` and ``groups`` are patterns of names."""

    def __init__(
        self,
        broker: Asked,
        topics: str = "*",
        groups: str = "*",
        internal: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._broker = broker
        self._topics = topics
        self._groups = groups
        self._internal = internal
        self._clock = clock
        self._took: dict[str, deque[float]] = {}
        self._ends: dict[TopicPartition, int] = {}  # at the last look
        self._octets: dict[str, int] = {}  # of topics, likewise
        self._looked: float | None = None
        self._read: dict[str, _Read] = {}
        self._positions = 0  # in all of them
        self._rows: dict[str, GroupRow] = {}
        self._last_group = ""

    def look(self) -> Look:
        """Ask the cluster. Raises KafkaError and DafkaError; the next look goes on from the last good one."""
        metadata = self._ask("Metadata", "metadata", None)
        known = {
            name: sorted(one.number for one in topic.partitions)
            for name, topic in sorted(metadata.topics.items())
            if topic.error is None and fnmatchcase(name, self._topics) and self._is_shown(name)
        }
        keys = [(name, number) for name, numbers in known.items() for number in numbers]
        watched = keys[:PARTITIONS]
        starts = self._offsets(watched, EARLIEST)
        ends = self._offsets(watched, LATEST)
        now = self._clock()
        seconds = None if self._looked is None else now - self._looked
        octets = self._sizes(watched)
        topics = [
            row._replace(octets=octets.get(row.topic), growth=self._growth(row.topic, octets, seconds))
            for row in self._topic_rows(watched, starts, ends, seconds)
        ]
        unread = self._look_at_groups(ends)
        self._ends, self._octets, self._looked = ends, octets, now
        return Look(
            metadata.cluster_id or "",
            len(metadata.brokers),
            topics,
            [self._rows[name] for name in sorted(self._rows)],
            [_answers(request, took) for request, took in sorted(self._took.items())],
            {"partitions": len(keys) - len(watched), "groups": unread},
        )

    def _is_shown(self, topic: str) -> bool:
        return self._internal or not topic.startswith("__")

    def _ask(self, request: str, method: str, *args: Any, **options: Any) -> Any:
        """Call a method of the broker, and remember how long it took."""
        asked = self._clock()
        found = self._broker.call(method, *args, **options)
        self._took.setdefault(request, deque(maxlen=ANSWERS)).append(1000 * (self._clock() - asked))
        return found

    def _offsets(self, keys: list[TopicPartition], place: int) -> dict[TopicPartition, int]:
        """The offsets of the partitions that answer."""
        if not keys:
            return {}
        found = self._ask("ListOffsets", "list_offsets", dict.fromkeys(keys, place))
        return {key: one.offset for key, one in found.items() if one.error is None}

    def _sizes(self, keys: list[TopicPartition]) -> dict[str, int]:
        """The disk space of each topic, where the broker tells it to this client."""
        if not keys:
            return {}
        try:
            found = self._ask("DescribeLogDirs", "log_directories", sorted({topic for topic, _ in keys}))
        except KafkaConnectionError:
            raise
        except (KafkaError, DafkaError):  # it needs a right for the cluster
            return {}
        octets: dict[str, int] = {}
        for folder in found:
            for (topic, _), size in folder.sizes.items():
                octets[topic] = octets.get(topic, 0) + size
        return octets

    def _growth(self, topic: str, octets: Mapping[str, int], seconds: float | None) -> float | None:
        """By how many octets a topic has grown in a second."""
        now, before = octets.get(topic), self._octets.get(topic)
        if not seconds or now is None or before is None or now < before:
            return None
        return (now - before) / seconds

    def _topic_rows(
        self,
        keys: list[TopicPartition],
        starts: Mapping[TopicPartition, int],
        ends: Mapping[TopicPartition, int],
        seconds: float | None,
    ) -> list[TopicRow]:
        counts: dict[str, list[int]] = {}  # of each topic: partitions, records, new ones
        for key in keys:
            count = counts.setdefault(key[0], [0, 0, 0])
            count[0] += 1
            if key in starts and key in ends:
                count[1] += max(ends[key] - starts[key], 0)
                count[2] += max(ends[key] - self._ends.get(key, ends[key]), 0)
        return [
            TopicRow(name, partitions, records, new / seconds if seconds else None)
            for name, (partitions, records, new) in counts.items()
        ]

    def _look_at_groups(self, ends: Mapping[TopicPartition, int]) -> int:
        """Bring the rows of groups up to date; how many were not looked at."""
        found = self._ask("ListGroups", "list_groups")
        listed = {one.group: one for one in found if fnmatchcase(one.group, self._groups)}
        for gone in self._rows.keys() - listed.keys():
            self._forget(gone)
            del self._rows[gone]
        names = sorted(listed)
        first = bisect_right(names, self._last_group) if len(names) > GROUPS_A_LOOK else 0
        chosen = [*names[first:], *names[:first]][:GROUPS_A_LOOK]
        self._last_group = chosen[-1] if chosen else ""
        for name in names:
            one = listed[name]
            row = self._rows.get(name) or GroupRow(name, one.type.value, one.state)
            self._rows[name] = row._replace(type=one.type.value, state=one.state)
        for name in chosen:
            try:
                self._look_at(listed[name], ends)
            except KafkaConnectionError:
                raise
            except (KafkaError, DafkaError):  # it has gone, or this client may not see it
                self._forget(name)
                self._rows[name] = GroupRow(name, listed[name].type.value, listed[name].state)
        return len(names) - len(chosen)

    def _look_at(self, group: ListedGroup, ends: Mapping[TopicPartition, int]) -> None:
        shared = group.type is GroupType.SHARE
        kind = "DescribeShareGroupOffsets" if shared else "OffsetFetch"
        asked = self._clock()
        offsets = group_kinds.offsets(self._broker, group.group, group.type)
        now = self._clock()
        self._took.setdefault(kind, deque(maxlen=ANSWERS)).append(1000 * (now - asked))
        lags = {key: max(ends[key] - offset, 0) for key, offset in offsets.items() if key in ends}
        if shared:
            told = group_kinds.lags(self._broker, group.group)
            lags = {key: told.get(key, lag) for key, lag in lags.items()}
        before = self._forget(group.group)
        row = self._rows[group.group]._replace(lag=sum(lags.values()) if offsets else None)
        row = row._replace(read=None, delay=None)
        if self._positions + len(offsets) <= POSITIONS:
            self._positions += len(offsets)
            after = self._read[group.group] = _Read(now, offsets)
            delay = _delay(before, after, ends)
            if before is not None and now > before.time:
                new = sum(max(at - before.offsets.get(key, at), 0) for key, at in offsets.items())
                row = row._replace(read=new / (now - before.time), delay=delay if offsets else None)
        self._rows[group.group] = row

    def _forget(self, group: str) -> _Read | None:
        """Forget a group; returns its remembered figures."""
        found = self._read.pop(group, None)
        self._positions -= len(found.offsets) if found else 0
        return found


def _delay(before: _Read | None, after: _Read, ends: Mapping[TopicPartition, int]) -> float:
    """The longest delay in a partition, in seconds; gives ``after`` its marks."""
    longest = 0.0
    for key, offset in after.offsets.items():
        end = ends.get(key)
        mark = None if before is None else before.waiting.get(key)
        if mark is not None and before is not None:
            if offset < mark.end:
                after.waiting[key] = mark
                longest = max(longest, after.time - mark.since)
                continue
            was = before.offsets.get(key, offset)
            part = (mark.end - was) / (offset - was) if offset > was else 1.0
            longest = max(longest, before.time + part * (after.time - before.time) - mark.since)
        if end is not None and offset < end:
            after.waiting[key] = _Waiting(end, after.time)
    return longest


def _answers(request: str, took: deque[float]) -> Answers:
    ordered = sorted(took)
    p50, p99 = (ordered[ceil(part * len(ordered)) - 1] for part in (0.5, 0.99))
    return Answers(request, took[-1], p50, p99)
