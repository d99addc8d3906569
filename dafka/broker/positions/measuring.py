"""The size of a partition's records in RAW form. Pure functions, for a thread beside the hub.

Which records are visible is decided here, batch by batch. A batch that nobody can read, because it is
malformed inside, has no records: that never changes. One whose codec is not installed raises BatchError
(cause ``codec``), because it may be installed tomorrow.
"""

from __future__ import annotations

import time
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from operator import itemgetter
from typing import Any, NamedTuple

from dafka.protocol import raw
from dafka.protocol.batch import BatchError, BatchHeader, read_header
from dafka.protocol.batch_reader import Columns, decode_batch, decode_plain_values

Aborted = Sequence[tuple[int, int, int]]
"""Aborted transactions: producer id, offset of the first record, offset of the marker."""

_Hidden = dict[int, tuple[list[int], list[int]]]  # first and last offsets of aborted transactions by producer

Form = Callable[[Columns], tuple[int, Any]]
"""The wanted figures of a batch's records: how many octets they take, and a content."""

BATCH_BYTES = 1024  # that looking into a batch costs as much as, however few it has: 20 microseconds
_COURTESY = 64 * 1024  # bytes looked into before other Python threads, the hub's among them, have their turn
_JOINED_OCTETS = 16 * 1024  # of neighbours that become one piece

_NONE = Columns([], [], [], [], [])


class Piece(NamedTuple):
    """Consecutive offsets from ``start`` up to ``end``: a batch, or messages of a native producer.

    ``octets`` is what its visible records take in RAW form, ``bytes`` what it costs to look into it again, as
    bytes of the log. ``damaged``
    says that it cannot be read and is skipped.
    """

    start: int
    end: int
    octets: int
    content: Any
    bytes: int
    damaged: bool = False


def sizes(records: Columns) -> tuple[int, Sequence[int]]:
    """The octets of each record."""
    found = raw.record_sizes(records.keys, records.values, records.headers)
    return sum(found), found


def numbered_sizes(records: Columns) -> tuple[int, Iterable[tuple[int, int]]]:
    """(offset, octets) of each record."""
    octets, found = sizes(records)
    return octets, list(zip(records.offsets, found, strict=True))


def octets(records: Columns) -> tuple[int, bytes]:
    """The records in RAW form."""
    found = raw.octets_of_records(records.keys, records.values, records.headers)
    return len(found), found


def total(records: Columns) -> tuple[int, None]:
    """How many octets they take, and nothing else."""
    return sizes(records)[0], None


def batch_pieces(
    batches: Sequence[tuple[int, int, bytes]], start: int, aborted: Aborted, form: Form, past_damage: bool
) -> list[Piece]:
    """The batches that hold the offsets from ``start`` on; each with base offset, timestamp and content.

    With ``past_damage`` one whose codec is not installed counts as damaged. Otherwise those in front of it
    come, or BatchError if it is the first.
    """
    pieces: list[Piece] = []
    size = 0
    hidden = _by_producer(aborted)
    for base_offset, _, content in batches:
        header = read_header(content)
        first, damaged = max(base_offset, start), False
        records = _NONE
        if _is_visible(header, hidden):
            try:
                records = _records(content)
            except BatchError:
                if not past_damage and not pieces:
                    raise
                if not past_damage:
                    break
                damaged = True
        if first > base_offset:
            records = records.part(bisect_left(records.offsets, first), len(records.offsets))
        pieces.append(Piece(first, header.next_offset, *form(records), len(content) + BATCH_BYTES, damaged))
        size += len(content)
        if size > _COURTESY:
            size = 0
            time.sleep(0)
    return _joined(pieces)


def plain_pieces(
    batches: Sequence[tuple[int, int, bytes]], start: int, aborted: Aborted
) -> list[Piece] | None:
    """The result of :func:`batch_pieces` with :func:`octets` for batches that are whole and have values
    alone, as most batches of ZPER's clients; otherwise None. Takes half a millisecond for a megabyte."""
    pieces = []
    hidden = _by_producer(aborted)
    for base_offset, _, content in batches:
        header = read_header(content)
        if base_offset < start or not _is_visible(header, hidden):
            return None
        try:
            values = decode_plain_values(content)
        except BatchError:
            return None
        if values is None:
            return None
        found = raw.encode_values(values)
        pieces.append(Piece(base_offset, header.next_offset, len(found), found, len(content) + BATCH_BYTES))
    return pieces


def message_pieces(first: int, messages: list[bytes], form: Form) -> list[Piece]:
    """Messages of a native producer, from the offset ``first`` on."""
    count, end = len(messages), first + len(messages)
    records = Columns(list(range(first, end)), [], [None] * count, [*messages], [[]] * count)
    return [Piece(first, end, *form(records), sum(map(len, messages)))]


def no_records(form: Form) -> Any:
    """The content where there are no records."""
    return form(_NONE)[1]


def _joined(pieces: list[Piece]) -> list[Piece]:
    """Small neighbours as one piece: the hub has the less to do."""
    if len(pieces) < 2:
        return pieces
    joined: list[Piece] = []
    run: list[Piece] = []
    size = 0
    for piece in pieces:
        apart = run and (piece.start != run[-1].end or piece.damaged or run[-1].damaged)
        weight = max(piece.octets, piece.bytes)
        if apart or size + weight > _JOINED_OCTETS:
            joined += _join(run)
            run, size = [], 0
        run.append(piece)
        size += weight
    return joined + _join(run)


def _join(run: list[Piece]) -> list[Piece]:
    if len(run) < 2:
        return run
    content = run[0].content
    if content is not None:
        contents = [piece.content for piece in run]
        content = b"".join(contents) if isinstance(content, bytes) else list(chain.from_iterable(contents))
    size = sum(piece.octets for piece in run)
    return [Piece(run[0].start, run[-1].end, size, content, sum(piece.bytes for piece in run))]


def _by_producer(aborted: Aborted) -> _Hidden:
    hidden: _Hidden = {}
    for producer_id, first, last in sorted(aborted, key=itemgetter(1)):
        firsts, lasts = hidden.setdefault(producer_id, ([], []))
        firsts.append(first)
        lasts.append(last)
    return hidden


def _is_visible(header: BatchHeader, hidden: _Hidden) -> bool:
    if header.is_control or not header.count:
        return False
    if not header.is_transactional or header.producer_id not in hidden:
        return True
    firsts, lasts = hidden[header.producer_id]
    place = bisect_right(firsts, header.base_offset) - 1
    return place < 0 or header.base_offset >= lasts[place]


def _records(content: bytes) -> Columns:
    try:
        return decode_batch(content, shared=True)
    except BatchError as error:
        if error.cause == "codec":
            raise
        return _NONE
