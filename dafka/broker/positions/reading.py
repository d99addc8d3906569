"""Reading a partition for its positions: stretches of the log as pieces of visible records."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Collection, Sequence
from typing import Any

from kafka.errors import UnsupportedCompressionTypeError

from dafka.broker.limits import POSITIONS_CACHE, POSITIONS_READ
from dafka.broker.positions import measuring
from dafka.broker.positions.measuring import Form, Piece
from dafka.broker.records.producer_state import ProducerStates
from dafka.broker.topics.table import Partition
from dafka.hub.pool import BATCHES
from dafka.log import DamagedError, Log
from dafka.protocol.batch import ATTRIBUTES, COMPRESSION_MASK, BatchError

_MESSAGES = 10_000  # of a native producer, read at a time; they may be empty and weigh nothing
_PLAIN_BYTES = 4 * 1024 * 1024  # of batches of values alone, which are read so fast that beside is slower
_INLINE_BYTES = 16 * 1024  # of batches that are looked into in the hub itself: a millisecond at most


class OctetCache:
    """Pieces in RAW form for the next reader: several read the same, and one may take a batch in parts."""

    def __init__(self, limit: int = POSITIONS_CACHE) -> None:
        self._limit = limit
        self._octets = 0
        self._pieces: OrderedDict[tuple[Partition, int], Piece] = OrderedDict()

    def get(self, partition: Partition, start: int) -> Piece | None:
        """The piece of a partition that begins at an offset."""
        piece = self._pieces.get((partition, start))
        if piece is not None:
            self._pieces.move_to_end((partition, start))
        return piece

    def add(self, partition: Partition, pieces: Sequence[Piece]) -> None:
        for piece in pieces:
            if piece.octets > self._limit or piece.damaged:
                continue
            before = self._pieces.pop((partition, piece.start), None)
            self._octets += _weight(piece) - (0 if before is None else _weight(before))
            self._pieces[partition, piece.start] = piece
        while self._octets > self._limit:
            self._octets -= _weight(self._pieces.popitem(last=False)[1])

    def forget(self, partitions: Collection[Partition]) -> None:
        """Drop what is there of partitions."""
        for key in [key for key in self._pieces if key[0] in partitions]:
            self._octets -= _weight(self._pieces.pop(key))


class Reading:
    """Reads the visible records of one partition. Hub side; long work is done beside the hub."""

    def __init__(self, log: Log, producers: ProducerStates, partition: Partition, cache: OctetCache) -> None:
        self._log = log
        self._producers = producers
        self._partition = partition
        self._cache = cache

    def octets(self, start: int, end: int) -> list[Piece]:
        """:meth:`pieces` in RAW form."""
        pieces: list[Piece] = []
        while start < end:
            known = self._cache.get(self._partition, start)
            if known is None or known.end > end:
                break
            pieces.append(known)
            start = known.end
        if not pieces:
            pieces = self.pieces(start, end, measuring.octets)
            self._cache.add(self._partition, pieces)
        return pieces

    def pieces(self, start: int, end: int, form: Form, *, past_damage: bool = False) -> list[Piece]:
        """At least one piece from the offset ``start`` on, not beyond ``end``, one behind the other; about
        POSITIONS_READ bytes of them. Offsets between two of them have no records.

        Raises DamagedError if what comes first is damaged, unless damage is skipped, by the log or with
        ``past_damage``; LogReadError, and UnsupportedCompressionTypeError.
        """
        try:
            found = self._read(start, end, form, past_damage)
        except DamagedError:
            if not past_damage:
                raise
            index = self._partition.stored.index
            damaged_end = index.ends[index.at_offset(start)]
            return [self._nothing(start, min(damaged_end, end), form, damaged=True)]
        except BatchError as error:
            where = f"({self._partition.topic.name!r}, {self._partition.number})"
            raise UnsupportedCompressionTypeError(f"positions of {where} from {start} on: {error}") from error
        pieces = []
        for piece in found:
            if self._is_damaged(start, piece.start):
                pieces.append(self._nothing(start, piece.start, form, damaged=True))
            pieces.append(piece)
            start = piece.end
        if not pieces:
            pieces.append(self._nothing(start, end, form, damaged=self._is_damaged(start, end)))
        return pieces

    def _read(self, start: int, end: int, form: Form, past_damage: bool) -> list[Piece]:
        stored = self._partition.stored
        if stored.kind == "raw":
            count = min(end - start, _MESSAGES)
            first, messages = self._log.read(stored, start, count=count, max_bytes=POSITIONS_READ)
            del messages[max(end - first, 0) :]
            size = sum(map(len, messages)) + len(messages)
            return _computed(size, measuring.message_pieces, first, messages, form) if messages else []
        batches = self._log.read_offsets(stored, start, max_bytes=POSITIONS_READ)
        if batches and batches[-1][0] >= end:
            batches = [batch for batch in batches if batch[0] < end]
        # Of the transactions in these batches alone: up to the end of the partition there may be very many.
        last = batches[-1][0] + 1 if batches else start
        aborted = [one[:3] for one in self._producers.aborted(self._partition, start, last)]
        size = sum(len(content) for _, _, content in batches)
        if form is measuring.octets and size <= _PLAIN_BYTES:
            pieces = measuring.plain_pieces(batches, start, aborted)
            if pieces is not None:
                return pieces
        if size <= _INLINE_BYTES and any(one[2][ATTRIBUTES] & COMPRESSION_MASK for one in batches):
            size = _INLINE_BYTES + 1
        return _computed(size, measuring.batch_pieces, batches, start, aborted, form, past_damage)

    def _is_damaged(self, start: int, end: int) -> bool:
        """Whether a stored value is missing in what was read: the gap holds all of one. Other gaps are
        offsets that compaction or a native producer has left without a record."""
        index = self._partition.stored.index
        place = index.at_offset(start)
        return start < end and place < len(index) and index.ends[place] <= end

    def _nothing(self, start: int, end: int, form: Form, *, damaged: bool) -> Piece:
        return Piece(start, end, 0, measuring.no_records(form), 0, damaged)


def _computed(size: int, compute: Callable[..., list[Piece]], *args: Any) -> list[Piece]:
    return compute(*args) if size <= _INLINE_BYTES else BATCHES.run(compute, *args)


def _weight(piece: Piece) -> int:
    return piece.octets + 200
