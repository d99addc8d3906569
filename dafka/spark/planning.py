"""From options to ranges of offsets: where a query begins and ends, and what each micro-batch reads.

Everything here runs on the driver and asks brokers for offsets only. Offsets of a streaming query belong to
Spark, which keeps them in its checkpoint as JSON, ``{"topic": {"0": 23}}``, the form of its own Kafka source.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping

from dafka.spark.cluster import Cluster
from dafka.spark.errors import DataLossError, OffsetError, OptionError, UnknownTopicError
from dafka.spark.option_values import TopicPartition
from dafka.spark.options import EARLIEST, LATEST, Position, ReadOptions
from dafka.spark.ranges import OffsetRange, split

log = logging.getLogger(__name__)

Offsets = dict[TopicPartition, int]
OffsetsJson = dict[str, dict[str, int]]


def to_json(offsets: Mapping[TopicPartition, int]) -> OffsetsJson:
    """Offsets as Spark stores them."""
    tree: OffsetsJson = {}
    for (topic, number), offset in sorted(offsets.items()):
        tree.setdefault(topic, {})[str(number)] = offset
    return tree


def from_json(tree: Mapping[str, Mapping[str, int]]) -> Offsets:
    """Parse what :func:`to_json` wrote. Raises OffsetError for other JSON, such as another source's."""
    try:
        return {
            (topic, int(number)): int(offset)
            for topic, partitions in tree.items()
            for number, offset in partitions.items()
        }
    except (AttributeError, TypeError, ValueError):
        raise OffsetError(f"the checkpoint holds offsets of another source: {tree!r}") from None


def check_batch(options: ReadOptions) -> None:
    """Raises OptionError for options that a batch query cannot have, as Spark's own source does."""
    starting, ending = options.starting, options.ending
    if starting is not None:
        if starting.everywhere == LATEST:
            raise OptionError(
                "startingOffsets=latest: a batch query would read nothing; say earliest or offsets"
            )
        _refuse_offset(starting, LATEST, "latest (-1)", "start")
    if ending is not None:
        if ending.everywhere == EARLIEST:
            raise OptionError(
                "endingOffsets=earliest: a batch query would read nothing; say latest or offsets"
            )
        _refuse_offset(ending, EARLIEST, "earliest (-2)", "end")
    if starting is not None and ending is not None:
        _refuse_going_back(starting, ending)
    if options.min_offsets_per_trigger is not None or options.max_offsets_per_trigger is not None:
        log.warning(
            "minOffsetsPerTrigger and maxOffsetsPerTrigger are for streaming queries; a batch query has no "
            "triggers and takes no notice of them"
        )


def check_streaming(options: ReadOptions) -> None:
    """Raises OptionError for options that a streaming query cannot have."""
    if options.ending is not None:
        raise OptionError(f"{options.ending.option} is not valid in a streaming query, which has no end")


class Planner:
    """Plans the reading of one query."""

    def __init__(self, cluster: Cluster, options: ReadOptions) -> None:
        self._cluster = cluster
        self._options = options

    def batch(self) -> list[OffsetRange]:
        """The ranges of a batch query, not cut yet. Raises UnknownTopicError, also if no topic matches."""
        options = self._options
        partitions = self._partitions()
        if not partitions:
            raise UnknownTopicError(
                f"no topic at {options.access.servers} matches the pattern {options.subscription.pattern!r}"
            )
        starting = options.starting or Position("startingOffsets", everywhere=EARLIEST)
        ending = options.ending or Position("endingOffsets", everywhere=LATEST)
        starts = self._resolve(partitions, starting, at_end=False)
        ends = self._resolve(partitions, ending, at_end=True)
        for (topic, number), start in starts.items():
            end = ends[topic, number]
            if start > end and starting.offsets is not None and ending.offsets is not None:
                raise OffsetError(
                    f"partition {number} of topic {topic!r}: {starting.option} ({start}) is behind "
                    f"{ending.option} ({end})"
                )
        return [OffsetRange(*place, start, max(ends[place], start)) for place, start in starts.items()]

    def initial(self) -> Offsets:
        """Where a new streaming query begins; the latest offsets unless options say otherwise."""
        starting = self._options.starting or Position("startingOffsets", everywhere=LATEST)
        return self._resolve(self._partitions(), starting, at_end=False)

    def latest(self, start: Mapping[TopicPartition, int]) -> Offsets:
        """The end of every partition there is now, and never behind ``start``, up to which was read."""
        return self.reconciled(start, self._ends(self._partitions(known=start)))

    def reconciled(self, start: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int]) -> Offsets:
        """``ends``, and never behind ``start``. A partition that was read before and is gone, or has become
        shorter, is lost data."""
        latest = dict(ends)
        for place, before in start.items():
            if place not in latest:
                self.lost(place, before, None, "the partition does not exist any more")
            elif latest[place] < before:
                self.lost(place, latest[place], before, "the partition ends before what was read already")
                latest[place] = before
        return latest

    def with_added(
        self, start: Mapping[TopicPartition, int], latest: Mapping[TopicPartition, int]
    ) -> Offsets:
        """``start`` with the partitions that came into being since, which are read from their beginning."""
        added = [place for place in latest if place not in start]
        return {**start, **self._cluster.offsets(dict.fromkeys(added, EARLIEST))}

    def ranges(
        self, start: Mapping[TopicPartition, int], end: Mapping[TopicPartition, int]
    ) -> list[OffsetRange]:
        """The ranges of a micro-batch, cut as options say. Records that an added partition has
        lost at its beginning were never read: they are lost data.

        A query that was killed in its very first micro-batch begins anew where options say, with the end that
        was planned. Where that is in front of the beginning, because the query begins at the latest offsets,
        the range is empty.
        """
        begins = dict(start)
        added = dict.fromkeys((place for place in end if place not in start), EARLIEST)
        for place, first in self._cluster.list_offsets(added).items():
            if first.error is not None:
                self.lost(place, 0, end[place], "the partition does not exist any more")
                continue
            if first.offset:
                self.lost(place, 0, first.offset, "they were deleted before they were read")
            begins[place] = first.offset
        return self.cut(
            OffsetRange(*place, begins[place], last) for place, last in end.items() if place in begins
        )

    def cut(self, ranges: Iterable[OffsetRange]) -> list[OffsetRange]:
        """Ranges cut into pieces for tasks, without the empty ones."""
        options = self._options
        return split(list(ranges), options.min_partitions, options.max_records_per_partition)

    def from_timestamp(self, ranges: Iterable[OffsetRange], timestamp: int) -> list[OffsetRange]:
        """The ranges without the records in front that are all older than ``timestamp`` (ms)."""
        ranges = list(ranges)
        found = self._cluster.offsets({(topic, number): timestamp for topic, number, _, _ in ranges})
        return [
            offsets._replace(
                start=offsets.end if (first := found[offsets[:2]]) < 0 else max(first, offsets.start)
            )
            for offsets in ranges
        ]

    def lost(self, place: TopicPartition, start: int, end: int | None, why: str) -> None:
        """Records are gone: fails or warns, as ``failOnDataLoss`` says."""
        report_loss(place, start, end, why, self._options.fail_on_data_loss)

    # -- inside ---------------------------------------------------------------------------------

    def _partitions(self, known: Mapping[TopicPartition, int] | None = None) -> list[TopicPartition]:
        subscription = self._options.subscription
        if known and not self._options.fail_on_data_loss:
            # Topics that were deleted in the meantime are not asked for by name: they are a warning.
            there = self._cluster.metadata(None).topics
            gone = {topic for topic, _ in known if topic not in there}
            subscription = subscription._replace(
                topics=tuple(topic for topic in subscription.topics if topic not in gone),
                partitions=tuple(place for place in subscription.partitions if place[0] not in gone),
            )
            if not any(subscription):
                return []
        return self._cluster.partitions(subscription)

    def _ends(self, partitions: Iterable[TopicPartition]) -> Offsets:
        return self._cluster.offsets(dict.fromkeys(partitions, LATEST), self._options.read_committed)

    def _resolve(self, partitions: list[TopicPartition], position: Position, at_end: bool) -> Offsets:
        """A position as numbers, for exactly these partitions."""
        if position.everywhere is not None:
            return self._at(dict.fromkeys(partitions, position.everywhere))
        if position.timestamp is not None:
            return self._by_time(dict.fromkeys(partitions, position.timestamp), position, at_end)
        named = position.timestamps if position.timestamps is not None else position.offsets
        assert named is not None
        _check_same(position.option, named, partitions)
        if position.timestamps is not None:
            return self._by_time(position.timestamps, position, at_end)
        return self._checked(self._at(named), position)

    def _at(self, wanted: Mapping[TopicPartition, int]) -> Offsets:
        """EARLIEST and LATEST as numbers; numbers stay."""
        firsts = self._cluster.offsets({place: at for place, at in wanted.items() if at == EARLIEST})
        ends = self._ends([place for place, at in wanted.items() if at == LATEST])
        return {place: firsts.get(place, ends.get(place, at)) for place, at in wanted.items()}

    def _by_time(self, times: Mapping[TopicPartition, int], position: Position, at_end: bool) -> Offsets:
        found = self._cluster.offsets(times)
        late = [place for place, offset in found.items() if offset < 0]
        if late and not at_end and not self._options.latest_for_late_timestamp:
            topic, number = late[0]
            raise OffsetError(
                f"{position.option}: partition {number} of topic {topic!r} has no record at or after "
                f"{times[late[0]]}; startingOffsetsByTimestampStrategy=latest reads only what is yet to come"
            )
        return {**found, **self._ends(late)}

    def _checked(self, offsets: Offsets, position: Position) -> Offsets:
        """Offsets that partitions have; those in front of the first record are lost data."""
        firsts = self._cluster.offsets(dict.fromkeys(offsets, EARLIEST))
        ends = self._ends(offsets)
        for place, offset in list(offsets.items()):
            topic, number = place
            if offset > ends[place]:
                raise OffsetError(
                    f"{position.option}: partition {number} of topic {topic!r} ends at offset {ends[place]}, "
                    f"{offset} is out of range"
                )
            if offset < firsts[place]:
                self.lost(
                    place, offset, firsts[place], f"{position.option} asks for records that were deleted"
                )
                offsets[place] = firsts[place]
        return offsets


def report_loss(place: TopicPartition, start: int, end: int | None, why: str, fail: bool) -> None:
    """Raise DataLossError, or log a warning, for records from ``start`` to ``end`` (None: all)."""
    topic, number = place
    which = f"offsets from {start}" + (f" to {end}" if end is not None else " on")
    message = f"data lost in partition {number} of topic {topic!r}, {which}: {why}"
    if fail:
        raise DataLossError(f"{message}; with failOnDataLoss=false the query goes on without them")
    log.warning("%s", message)


def _refuse_going_back(starting: Position, ending: Position) -> None:
    named = {*(starting.timestamps or ()), *(ending.timestamps or ())}
    for place in sorted(named) or [None]:
        first, last = (
            position.timestamp if position.timestamps is None else position.timestamps.get(place)
            for position in (starting, ending)
        )
        if first is not None and last is not None and first > last:
            where = "" if place is None else f", partition {place[1]} of topic {place[0]!r}"
            raise OptionError(f"{starting.option} ({first}) is after {ending.option} ({last}){where}")


def _refuse_offset(position: Position, offset: int, name: str, side: str) -> None:
    for (topic, number), value in (position.offsets or {}).items():
        if value == offset:
            raise OptionError(
                f"{position.option}: {name} cannot be the {side} of a batch query, "
                f"partition {number} of {topic!r}"
            )


def _check_same(option: str, named: Iterable[TopicPartition], partitions: list[TopicPartition]) -> None:
    named, there = set(named), set(partitions)
    if unknown := named - there:
        topic, number = min(unknown)
        raise OffsetError(f"{option}: partition {number} of topic {topic!r} is not among those that are read")
    if missing := there - named:
        topic, number = min(missing)
        raise OffsetError(
            f"{option} names some partitions and not partition {number} of topic {topic!r}; name all "
            "(-1 latest, -2 earliest)"
        )
