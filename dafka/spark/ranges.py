"""Ranges of offsets: the unit of work of a task, and how ranges are cut for parallelism."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from dafka.spark.errors import OptionError

RANGES_LIMIT = 100_000  # tasks of one micro-batch or query


class OffsetRange(NamedTuple):
    """The records of a partition from ``start`` up to, and not with, ``end``."""

    topic: str
    partition: int
    start: int
    end: int

    @property
    def size(self) -> int:
        """Offsets in the range; records may be fewer."""
        return max(self.end - self.start, 0)


def split(
    ranges: Sequence[OffsetRange],
    min_partitions: int | None = None,
    max_records: int | None = None,
) -> list[OffsetRange]:
    """Cut ranges into pieces of at most ``max_records`` offsets and into at least ``min_partitions`` of them.

    Empty ranges are left out. A large range gets more of the pieces than a small one, and no piece is empty,
    so there are fewer than ``min_partitions`` if there are fewer offsets.
    """
    pieces = [offsets for offsets in ranges if offsets.size]
    if max_records is not None:
        wanted = sum(-(-offsets.size // max_records) for offsets in pieces)
        if wanted > RANGES_LIMIT:
            raise OptionError(
                f"maxRecordsPerPartition={max_records} cuts the offsets into {wanted} tasks, more than "
                f"{RANGES_LIMIT}"
            )
        pieces = [piece for offsets in pieces for piece in _cut(offsets, -(-offsets.size // max_records))]
    if min_partitions is None or len(pieces) >= min_partitions or not pieces:
        return pieces
    if min_partitions > RANGES_LIMIT:
        raise OptionError(f"minPartitions={min_partitions} is more than {RANGES_LIMIT} tasks")
    # The piece whose parts are largest is cut once more, until there are enough: proportional, and exact.
    total = sum(piece.size for piece in pieces)
    counts = [min(max(1, piece.size * min_partitions // total), piece.size) for piece in pieces]
    missing = min(min_partitions, total) - sum(counts)
    by_rest = sorted(range(len(pieces)), key=lambda index: counts[index] / pieces[index].size)
    while missing > 0:
        for index in by_rest:
            if missing > 0 and counts[index] < pieces[index].size:
                counts[index] += 1
                missing -= 1
    return [part for piece, count in zip(pieces, counts, strict=True) for part in _cut(piece, count)]


def _cut(offsets: OffsetRange, count: int) -> list[OffsetRange]:
    topic, partition, start, _ = offsets
    marks = [start + offsets.size * number // count for number in range(count + 1)]
    return [OffsetRange(topic, partition, *limits) for limits in pairwise(marks)]
