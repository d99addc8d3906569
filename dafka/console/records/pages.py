"""Pages of records: so many from some offsets on, or up to them, of several partitions by their times."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from heapq import nlargest, nsmallest
from typing import NamedTuple

from dafka.broker.looking.places import bounds
from dafka.console import limits
from dafka.console.desk import Desk
from dafka.console.errors import ApiError
from dafka.console.records.batches import fetch, records, size_of
from dafka.console.records.shown import Record

Offsets = Mapping[int, int]

_CURSOR = re.compile(r"(\d{1,10}):(\d{1,19})", re.ASCII)


class Page(NamedTuple):
    """Records in the order of their times; ``start`` and ``end`` lead to the pages beside."""

    records: list[Record]
    start: dict[int, int]
    end: dict[int, int]
    first: dict[int, int]
    last: dict[int, int]


def read_cursor(text: str) -> dict[int, int]:
    """Offsets of partitions, as ``0:17,1:4``. Raises ApiError."""
    found = {}
    for one in text.split(","):
        match = _CURSOR.fullmatch(one)
        if match is None:
            raise ApiError(f"{one[:50]!r} is not PARTITION:OFFSET")
        found[int(match[1])] = int(match[2])
    return found


def write_cursor(offsets: Offsets) -> str:
    """The same as text."""
    return ",".join(f"{partition}:{offset}" for partition, offset in sorted(offsets.items()))


def page_after(desk: Desk, topic: str, starts: Offsets, limit: int) -> Page:
    """The ``limit`` oldest records at or after these offsets. Raises RefusedError."""
    first, last = _bounds(desk, topic, starts)
    at = {one: min(max(offset, first[one]), last[one]) for one, offset in starts.items()}
    found, reached = _read(desk, topic, at, last, limit, limits.PAGE_OCTETS)
    shown = nsmallest(limit, found, key=_order)
    end = dict(reached)  # where nothing was left out, what was read is behind us
    kept = {(one.partition, one.offset) for one in shown}
    for one in found:
        if (one.partition, one.offset) not in kept:
            end[one.partition] = min(end[one.partition], one.offset)
    return Page(shown, at, end, first, last)


def page_before(desk: Desk, topic: str, ends: Offsets, limit: int) -> Page:
    """The ``limit`` newest records below these offsets, fewer if they are large. Raises RefusedError.

    The shown records have no gap to those behind them: a partition of which not all was read, for the bound
    of octets, is left for the page before.
    """
    first, last = _bounds(desk, topic, ends)
    below = {one: min(max(offset, first[one]), last[one]) for one, offset in ends.items()}
    window = limit
    while True:
        at = {one: max(offset - window, first[one]) for one, offset in below.items()}
        found, reached = _read(desk, topic, at, below, limit, math.inf)  # the window bounds it
        unread = {one for one, offset in below.items() if reached[one] < offset}
        if not unread or window == 1:
            break
        window //= 2
    found = [one for one in found if one.partition not in unread]
    at.update((one, below[one]) for one in unread)
    shown = sorted(nlargest(limit, found, key=_order), key=_order)
    start = dict(at)
    kept = {(one.partition, one.offset) for one in shown}
    for one in found:
        if (one.partition, one.offset) not in kept:
            start[one.partition] = max(start[one.partition], one.offset + 1)
    return Page(shown, start, below, first, last)


def _order(record: Record) -> tuple[int, int, int]:
    return record.timestamp, record.partition, record.offset


def _bounds(desk: Desk, topic: str, partitions: Offsets) -> tuple[dict[int, int], dict[int, int]]:
    keys = [(topic, one) for one in partitions]
    first, last = bounds(desk, keys)
    return {one: first[topic, one] for one in partitions}, {one: last[topic, one] for one in partitions}


def _read(
    desk: Desk, topic: str, starts: Offsets, ends: Offsets, limit: int, most: float
) -> tuple[list[Record], dict[int, int]]:
    """The first ``limit`` records of each partition, and how far each was read.

    It ends when ``most`` octets of batches were fetched, or PAGE_OCTETS of records are kept.
    """
    found: list[Record] = []
    reached = dict(starts)
    octets = kept = 0  # that were fetched, and of the records that are kept: batches may be compressed
    for partition, start in starts.items():
        count, offset, end = 0, start, ends[partition]
        while offset < end and count < limit and octets < most and kept < limits.PAGE_OCTETS:
            some = fetch(desk, topic, partition, offset)
            if some.next_offset <= offset:
                break
            octets += some.octets
            for record in records(partition, some, offset, end):
                if count == limit or kept >= limits.PAGE_OCTETS:
                    offset = record.offset
                    break
                found.append(record)
                count += 1
                kept += size_of(record)
            else:
                offset = min(some.next_offset, end)
        reached[partition] = offset
    return found, reached
