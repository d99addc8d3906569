"""Searching a topic, and following it: events as they come, within bounds.

A browser that does not read is waited for, and what a follower misses meanwhile is counted and passed over:
no event is made before the last one was sent. A search ends when the browser closes the stream.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from typing import Any

import gevent

from dafka.broker.interface.records import FetchFrom
from dafka.broker.looking.outcomes import RefusedError
from dafka.broker.looking.places import bounds
from dafka.console import limits
from dafka.console.desk import Desk
from dafka.console.records.batches import Some, fetch, records
from dafka.console.records.expressions import Matches
from dafka.console.records.shown import Record, shown
from dafka.protocol.batch import BatchError

PROGRESS_SECONDS = 0.2  # between two words of progress
_WAIT = 1.0  # seconds that a follower waits for records before it says that it is there
_TURN = 0.01  # seconds that a search computes before it lets others


def search(
    desk: Desk, topic: str, starts: Mapping[int, int], ends: Mapping[int, int], matches: Matches, limit: int
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
                    some = fetch(desk, topic, partition, offset)
                except (RefusedError, BatchError) as error:
                    yield event("trouble", {"message": f"{topic}-{partition} at {offset}: {error}"})
                    break
                if some.next_offset <= offset:
                    break
                for record in _matching(partition, some, offset, end, matches):
                    rows.append(shown(record))
                    found += 1
                    if found == limit:
                        break
                reached = min(some.next_offset, end)
                scanned += reached - offset
                offset = reached
                if rows or time.monotonic() - told > PROGRESS_SECONDS:
                    if rows:
                        yield event("found", {"records": rows})
                        rows = []
                    yield event("progress", {"scanned": scanned, "total": total, "found": found})
                    told = time.monotonic()
        yield event("end", {"scanned": scanned, "total": total, "found": found, "full": found >= limit})


def follow(desk: Desk, topic: str, partitions: list[int], matches: Matches) -> Iterator[bytes]:
    """Events ``records`` with what comes from now on: the newest, and how many were passed over."""
    with desk.streaming():
        at = {one: offset for (_, one), offset in bounds(desk, [(topic, n) for n in partitions])[1].items()}
        yield event("following", {"partitions": at})
        while True:
            rows: list[Record] = []
            skipped = 0
            waited = time.monotonic()
            ends = {one: end for (_, one), end in bounds(desk, [(topic, n) for n in partitions])[1].items()}
            for partition, end in ends.items():
                if end <= at[partition]:
                    continue
                if end - at[partition] > limits.BEHIND:
                    skipped += end - limits.FOLLOWED - at[partition]
                    at[partition] = end - limits.FOLLOWED
                some = fetch(desk, topic, partition, at[partition])
                rows += _matching(partition, some, at[partition], None, matches)
                at[partition] = max(some.next_offset, at[partition])
                if len(rows) > 2 * limits.FOLLOWED:
                    rows.sort(key=lambda one: one.timestamp)
                    skipped += len(rows) - limits.FOLLOWED
                    del rows[: -limits.FOLLOWED]
            rows.sort(key=lambda one: (one.timestamp, one.partition, one.offset))
            if len(rows) > limits.FOLLOWED:
                skipped += len(rows) - limits.FOLLOWED
                del rows[: -limits.FOLLOWED]
            if rows or skipped:
                yield event("records", {"records": [shown(one) for one in rows], "skipped": skipped})
                gevent.sleep(limits.FOLLOW_PAUSE)
            else:
                _wait(desk, topic, at)
                if time.monotonic() - waited > _WAIT / 2:
                    yield b": still here\n\n"


def event(name: str, content: Mapping[str, Any]) -> bytes:
    """A server-sent event. JSON has no line ends within, so that no record can end the event."""
    return f"event: {name}\ndata: {json.dumps(content, separators=(',', ':'))}\n\n".encode()


def _wait(desk: Desk, topic: str, at: Mapping[int, int]) -> None:
    """Wait until one of the partitions has something new, or for a while."""
    wanted = {(topic, one): FetchFrom(offset, 1) for one, offset in at.items()}
    began = time.monotonic()
    desk.call("fetch", wanted, max_wait=_WAIT, min_bytes=1, max_bytes=1)
    gevent.sleep(max(limits.FOLLOW_PAUSE - (time.monotonic() - began), 0))


def _matching(partition: int, some: Some, first: int, end: int | None, matches: Matches) -> Iterator[Record]:
    """The records that match; others of this thread have their turn in between."""
    turn = time.monotonic() + _TURN
    for number, record in enumerate(records(partition, some, first, end)):
        if not number % 64 and time.monotonic() > turn:
            gevent.sleep(0)
            turn = time.monotonic() + _TURN
        if matches(record):
            yield record
