"""Searching a topic, and following it: events as they come, within bounds.

A browser that does not read is waited for, and what a follower misses meanwhile is counted and passed over:
no event is made before the last one was sent. A search ends when the browser closes the stream.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator, Mapping
from typing import Any

import gevent
from kafka.errors import KafkaError

from dafka.broker.interface.records import FetchFrom
from dafka.broker.looking.outcomes import RefusedError
from dafka.broker.looking.places import bounds
from dafka.console import limits
from dafka.console.decoding.decoder import Decoder
from dafka.console.desk import Desk
from dafka.console.records.batches import Some, fetch, fetched, records, size_of
from dafka.console.records.expressions import Matches
from dafka.console.records.long_values import json_of
from dafka.console.records.shown import Record, shown
from dafka.console.turns import in_turns
from dafka.protocol.batch import BatchError

PROGRESS_SECONDS = 0.2  # between two words of progress
_WAIT = 1.0  # seconds that a follower waits for records before it says that it is there
UNREADABLE = (RefusedError, BatchError, KafkaError)  # raised by reading a partition


def search(
    desk: Desk,
    topic: str,
    starts: Mapping[int, int],
    ends: Mapping[int, int],
    matches: Matches,
    decoder: Decoder,
    limit: int,
) -> Iterator[bytes]:
    """Events ``found`` (records), ``progress`` and ``end``, partition by partition."""
    total = sum(max(ends[one] - start, 0) for one, start in starts.items())
    scanned = found = 0
    told = time.monotonic()
    rows: list[dict[str, Any]] = []
    with desk.streaming():
        for partition, start in starts.items():
            offset, end = start, ends[partition]
            while offset < end and found < limit:
                try:
                    part = _part(desk, topic, partition, offset, end, matches, decoder, limit - found)
                    rows, more, reached = yield from part
                except UNREADABLE as error:
                    yield event("trouble", {"message": f"{topic}-{partition} at {offset}: {error}"})
                    break
                if reached <= offset:
                    break
                found += more
                reached = min(reached, end)
                scanned += reached - offset
                offset = reached
                if rows or time.monotonic() - told > PROGRESS_SECONDS:
                    if rows:
                        yield event("found", {"records": rows})
                        rows = []
                    yield event("progress", {"scanned": scanned, "total": total, "found": found})
                    told = time.monotonic()
        yield event("end", {"scanned": scanned, "total": total, "found": found, "full": found >= limit})


def _part(
    desk: Desk,
    topic: str,
    partition: int,
    offset: int,
    end: int,
    matches: Matches,
    decoder: Decoder,
    most: int,
) -> Generator[bytes, None, tuple[list[dict[str, Any]], int, int]]:
    """Look through what one fetch brings; returns records not told of yet, how many were found, and
    where to go on."""
    rows: list[dict[str, Any]] = []
    found = size = 0
    with fetched(desk, topic, partition, offset) as some:
        for record in _matching(partition, some, offset, end, matches):
            rows.append(shown(record, decoder))
            found += 1
            size += size_of(record)
            if size > limits.FETCH_OCTETS:  # they were compressed: tell what there is
                yield event("found", {"records": rows})
                rows, size = [], 0
            if found == most:
                break
        return rows, found, some.next_offset


def follow(
    desk: Desk, topic: str, partitions: list[int], matches: Matches, decoder: Decoder
) -> Iterator[bytes]:
    """Events ``records`` with what comes from now on: the newest, and how many were passed over.

    An event ``trouble`` is the last one if the topic, or the broker, has gone.
    """
    with desk.streaming():
        began = False
        try:
            for one in _following(desk, topic, partitions, matches, decoder):
                yield one
                began = True
        except UNREADABLE as error:
            if not began:
                raise
            yield event("trouble", {"message": f"{topic}: {error}"})


def _following(
    desk: Desk, topic: str, partitions: list[int], matches: Matches, decoder: Decoder
) -> Iterator[bytes]:
    at = {one: offset for (_, one), offset in bounds(desk, [(topic, n) for n in partitions])[1].items()}
    yield event("following", {"partitions": at})
    while True:
        waited = time.monotonic()
        rows, skipped = _news(desk, topic, at, matches, decoder)
        if rows or skipped:
            yield event("records", {"records": rows, "skipped": skipped})
            gevent.sleep(limits.FOLLOW_PAUSE)
        else:
            _wait(desk, topic, at)
            if time.monotonic() - waited > _WAIT / 2:
                yield b": still here\n\n"


def _news(
    desk: Desk, topic: str, at: dict[int, int], matches: Matches, decoder: Decoder
) -> tuple[list[dict[str, Any]], int]:
    """The newest records from ``at`` on, which moves, as the page shows them, and how many were passed over.

    The records themselves are not kept: the browser may not read for a while.
    """
    rows: list[Record] = []
    skipped = size = 0
    starts, ends = bounds(desk, [(topic, n) for n in at])
    for (_, partition), end in ends.items():
        start = starts[topic, partition]
        if end < at[partition]:  # the topic was deleted, and made again
            at[partition] = start
        elif at[partition] < start:
            skipped += start - at[partition]
            at[partition] = start
        if end <= at[partition]:
            continue
        if end - at[partition] > limits.BEHIND:
            skipped += end - limits.FOLLOWED - at[partition]
            at[partition] = end - limits.FOLLOWED
        some = fetch(desk, topic, partition, at[partition])
        for record in _matching(partition, some, at[partition], None, matches):
            rows.append(record)
            size += size_of(record)
            if len(rows) > 2 * limits.FOLLOWED or size > 2 * limits.PAGE_OCTETS:
                skipped += _keep_newest(rows)
                size = sum(map(size_of, rows))
        at[partition] = max(some.next_offset, at[partition])
    skipped += _keep_newest(rows)
    return [shown(one, decoder) for one in in_turns(rows)], skipped


def _keep_newest(rows: list[Record]) -> int:
    """Sort records by their times, and leave so many as one event may have; how many are taken away."""
    rows.sort(key=lambda one: (one.timestamp, one.partition, one.offset))
    size, kept = 0, 0
    for record in reversed(rows):
        size += size_of(record)
        if kept == limits.FOLLOWED or (kept and size > limits.PAGE_OCTETS):
            break
        kept += 1
    gone = len(rows) - kept
    del rows[:gone]
    return gone


def event(name: str, content: dict[str, Any]) -> bytes:
    """A server-sent event. JSON has no line ends within, so that no record can end the event."""
    return f"event: {name}\ndata: {''.join(json_of(content, compact=True))}\n\n".encode()


def _wait(desk: Desk, topic: str, at: Mapping[int, int]) -> None:
    """Wait until one of the partitions has something new, or for a while."""
    wanted = {(topic, one): FetchFrom(offset, 1) for one, offset in at.items()}
    began = time.monotonic()
    desk.call("fetch", wanted, max_wait=_WAIT, min_bytes=1, max_bytes=1)
    gevent.sleep(max(limits.FOLLOW_PAUSE - (time.monotonic() - began), 0))


def _matching(partition: int, some: Some, first: int, end: int | None, matches: Matches) -> Iterator[Record]:
    """The records that match; others of this thread have their turn in between."""
    return filter(matches, in_turns(records(partition, some, first, end)))
