"""Batches of one partition -> records, with what became of transactions."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from dafka.broker.interface.records import FetchFrom
from dafka.broker.looking.outcomes import check
from dafka.console import limits
from dafka.console.desk import Desk
from dafka.console.records.shown import BatchFacts, Record
from dafka.protocol.aborted import AbortedTransactions
from dafka.protocol.batch import BatchError, BatchHeader, read_header
from dafka.protocol.batch_reader import decode_batch


class Some(NamedTuple):
    """The result of one fetch: batches of records, not decoded yet, and the offset to go on at."""

    batches: list[tuple[BatchHeader, bytes, str | None]]
    octets: int
    next_offset: int
    high_watermark: int


def fetch(
    desk: Desk, topic: str, partition: int, offset: int, *, wait: float = 0.0, marks: bool = True
) -> Some:
    """The next batches of a partition, one at least if there are any. Raises RefusedError and BatchError.

    Nothing is decompressed: a megabyte of batches may grow to gigabytes.

    ``marks``: find out what became of transactions, which may take a second fetch.
    """
    key = topic, partition
    wanted = {key: FetchFrom(offset, limits.FETCH_OCTETS)}
    bounds: dict[str, Any] = {"min_bytes": 1 if wait else 0, "max_bytes": limits.FETCH_OCTETS}
    answer = desk.call("fetch", wanted, max_wait=wait, **bounds).get(key)
    if answer is None:
        return Some([], 0, offset, -1)
    check({key: answer})
    headers = [read_header(batch) for batch in answer.batches]
    stable, aborted = answer.last_stable_offset, None
    if marks and any(one.is_transactional and not one.is_control for one in headers):
        committed = desk.call("fetch", wanted, max_wait=0.0, read_committed=True, **bounds).get(key)
        if committed is not None and committed.error is None:
            aborted = AbortedTransactions(committed.aborted)
            stable = committed.last_stable_offset
    batches = []
    for header, batch in zip(headers, answer.batches, strict=True):
        became = None
        if header.is_transactional and not header.is_control and aborted is not None:
            is_open = 0 <= stable <= header.base_offset
            became = "open" if is_open else "aborted" if aborted.skips(header, batch) else "committed"
        elif header.is_control and aborted is not None:
            aborted.skips(header, batch)
        if not header.is_control and header.count:
            batches.append((header, batch, became))
    return Some(
        batches,
        sum(map(len, answer.batches)),
        headers[-1].next_offset if headers else offset,
        answer.high_watermark,
    )


@contextmanager
def fetched(desk: Desk, topic: str, partition: int, offset: int, *, marks: bool = True) -> Iterator[Some]:
    """A fetch for a stream, whose browser may stop reading while the batches are in memory.

    Of large ones only so many are in memory at a time.
    """
    some = fetch(desk, topic, partition, offset, marks=marks)
    if some.octets <= limits.LARGE_OCTETS:
        yield some
        return
    del some  # while it waits
    with desk.holding_large():
        yield fetch(desk, topic, partition, offset, marks=marks)


def records(partition: int, some: Some, first: int, end: int | None = None) -> Iterator[Record]:
    """The records of a fetch from offset ``first`` on, and below ``end``.

    One batch at a time is decompressed. Raises BatchError.
    """
    for header, batch, became in some.batches:
        if end is not None and header.base_offset >= end:
            return
        columns = decode_batch(batch, shared=True)
        facts = facts_of(header)
        for offset, timestamp, key, value, headers in zip(*columns, strict=True):
            if offset >= first and (end is None or offset < end):
                yield Record(partition, offset, timestamp, key, value, headers, facts, became)


def size_of(record: Record) -> int:
    """Octets of what a record holds."""
    headers = sum(len(name) + len(value or b"") for name, value in record.headers)
    return len(record.key or b"") + len(record.value or b"") + headers


def facts_of(header: BatchHeader) -> BatchFacts:
    """The fields of a batch's header."""
    try:
        compression = header.compression
    except BatchError:
        compression = "unknown"
    return BatchFacts(
        header.base_offset,
        header.count,
        header.size,
        compression,
        header.producer_id,
        header.producer_epoch,
        header.base_sequence,
        header.leader_epoch,
        bool(header.timestamp_type),
    )
