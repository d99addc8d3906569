"""Finding positions by checkpoints, and reading what is there.

A stretch between two checkpoints is read from its front: the octets of its visible records follow each other.
Where the front of the partition has been deleted, the position of the first record that exists is found
backwards, from the next checkpoint. Records behind a damaged stored value keep their positions in the same
way where damage is skipped, if the value was measured before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate

from kafka.errors import OffsetOutOfRangeError, UnsupportedCompressionTypeError

from dafka.broker.interface.positions import DamagedPositionError, PositionOutOfRangeError
from dafka.broker.limits import POSITIONS_READ
from dafka.broker.positions import measuring
from dafka.broker.positions.checkpoints import OFFSET, POSITION, Checkpoint, Checkpoints
from dafka.broker.positions.measuring import Piece
from dafka.broker.positions.reading import Reading
from dafka.broker.topics.table import Partition
from dafka.hub.turns import Pace
from dafka.log import LogError

Located = tuple[int, Piece]
"""A position, and what is there."""


class _DeletedError(Exception):
    """The records that were being read from a known position on have been deleted: what was read may be of
    others, behind them."""


class Lookup:
    """Finds and reads positions of one partition between its first record and what is measured. Hub side;
    may wait as a green thread."""

    def __init__(self, partition: Partition, checkpoints: Checkpoints, reading: Reading) -> None:
        self._partition = partition
        self._checkpoints = checkpoints
        self._reading = reading
        self._front = Checkpoint(-1, -1)  # the first record that exists,
        self._front_start = -1  # if the log starts at this offset

    def front(self) -> Checkpoint:
        """The first record that exists and whose position is known."""
        while self._front_start != (start := self._partition.log_start):
            following = self._checkpoints.at_or_after(OFFSET, start)
            front = Checkpoint(start, self._checkpoints.end.position)
            if following is not None:
                front = self._backwards(start, following)
            if start == self._partition.log_start:  # it may have waited
                self._front, self._front_start = front, start
        return self._front

    def _backwards(self, start: int, following: Checkpoint) -> Checkpoint:
        """The first record from the offset ``start`` on whose position is known from a checkpoint behind."""
        octets, offset = 0, start
        while offset < following.offset:
            for piece in self._reading.pieces(offset, following.offset, measuring.total, past_damage=True):
                octets += piece.octets
                offset = piece.end
                if piece.damaged:
                    octets, start = 0, piece.end
        return Checkpoint(start, following.position - octets)

    def read(self, position: int, max_octets: int) -> bytes:
        """:meth:`dafka.broker.interface.positions.PartitionPositions.read` of a position in range."""
        pace = Pace()
        parts: list[bytes] = []
        left = min(max_octets, self._checkpoints.end.position - position)
        while left > 0:
            start = self._last_before(position)
            reach = max(min(position + left, start.position + POSITIONS_READ), position + 1)
            stop = self._checkpoints.at_or_after(POSITION, reach)
            assert stop is not None  # reach is not beyond the end
            try:
                located, stop, error = self._octets_between(start, stop)
            except _DeletedError:
                if parts and position < self.front().position:
                    break
                self._check_exists(position)
                continue
            taken = _part(located, position, left)
            if not taken:
                if parts:
                    break
                behind = _next_position(located, position, stop.position)
                raise error or DamagedPositionError(position, behind)
            parts.append(taken)
            position += len(taken)
            left -= len(taken)
            pace.rest()
            if position < self.front().position:
                break  # deleted meanwhile
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def position_of(self, offset: int) -> int:
        """The position of the first record at an offset or behind it."""
        front, end = self.front(), self._checkpoints.end
        start, stop = self._partition.log_start, max(end.offset, self._partition.log_start)
        if not start <= offset <= stop:
            raise OffsetOutOfRangeError(f"offset {offset} is not between {start} and {stop}")
        following = self._checkpoints.at_or_after(OFFSET, offset)
        if following is None or offset <= front.offset:
            return end.position if following is None else front.position
        before = self._checkpoints.at_or_before(OFFSET, offset)
        nearest = front if before is None or before.offset < front.offset else before
        if nearest.offset == offset:
            return nearest.position
        try:
            for record, position, _ in self._records_between(nearest, following):
                if record >= offset:
                    return position
        except _DeletedError:
            return self.position_of(offset)
        return following.position

    def message(self, position: int) -> tuple[int, int, int]:
        """(offset, position, octets) of the record whose message holds a position before the end."""
        following = self._checkpoints.at_or_after(POSITION, position + 1)
        assert following is not None  # there is one at the end
        try:
            for offset, begin, octets in self._records_between(self._last_before(position), following):
                if begin <= position < begin + octets:
                    return offset, begin, octets
                if begin > position:
                    raise DamagedPositionError(position, begin)
        except _DeletedError:
            self._check_exists(position)
            return self.message(position)
        raise DamagedPositionError(position, following.position)

    def _check_exists(self, position: int) -> None:
        first = self.front().position
        if position < first:
            raise PositionOutOfRangeError(position, first, self._checkpoints.end.position)

    def _last_before(self, position: int) -> Checkpoint:
        front = self.front()
        found = self._checkpoints.at_or_before(POSITION, position)
        return front if found is None or found.offset < front.offset else found

    def _records_between(self, start: Checkpoint, stop: Checkpoint) -> Iterator[tuple[int, int, int]]:
        """(offset, position, octets) of the records between two checkpoints; behind them, the error that has
        ended it."""
        pieces, error = self._pieces_between(start, stop, self._numbered)
        for position, piece in _locate(start, stop, pieces):
            begin = position
            for offset, size in piece.content:
                yield offset, begin, size
                begin += size
        if error is not None:
            raise error

    def _octets_between(
        self, start: Checkpoint, stop: Checkpoint
    ) -> tuple[list[Located], Checkpoint, Exception | None]:
        """The pieces between two checkpoints that can be read, in RAW form, ``stop``, and the error that has
        ended it; around damage those up to a nearer checkpoint, and that."""
        pieces, error = self._pieces_between(start, stop, self._reading.octets)
        if any(piece.damaged for piece in pieces):
            nearest = self._checkpoints.at_or_after(OFFSET, start.offset + 1)
            if nearest is not None and nearest.offset < stop.offset:
                if nearest.position == start.position:
                    start, nearest = nearest, stop
                return self._octets_between(start, nearest)
        return _locate(start, stop, pieces), stop, error

    def _numbered(self, start: int, end: int) -> list[Piece]:
        return self._reading.pieces(start, end, measuring.numbered_sizes)

    def _pieces_between(
        self, start: Checkpoint, stop: Checkpoint, read: Callable[[int, int], list[Piece]]
    ) -> tuple[list[Piece], Exception | None]:
        """All pieces between two checkpoints, or those before one that cannot be read, and why it cannot.

        Raises _DeletedError: while it waited for what it reads, records from ``start`` on may be deleted.
        """
        pieces: list[Piece] = []
        offset, failed = start.offset, None
        while offset < stop.offset and failed is None:
            try:
                pieces += read(offset, stop.offset)
                offset = pieces[-1].end
            except (LogError, UnsupportedCompressionTypeError) as error:
                failed = error
            if self._partition.log_start > start.offset:
                raise _DeletedError from failed
        return pieces, failed


def _locate(start: Checkpoint, stop: Checkpoint, pieces: Sequence[Piece]) -> list[Located]:
    """The pieces whose positions are known: if the octets of one that is damaged are missing, those in front
    of it are found from ``start`` and those behind it from ``stop``."""
    whole = bool(pieces) and pieces[-1].end >= stop.offset
    ends = list(accumulate((piece.octets for piece in pieces), initial=start.position))
    if not whole or ends[-1] == stop.position:
        return [(position, piece) for position, piece in zip(ends, pieces, strict=False) if not piece.damaged]
    damaged = [place for place, piece in enumerate(pieces) if piece.damaged] or [0]
    missing = stop.position - ends[-1]
    front = zip(ends[: damaged[0]], pieces, strict=False)
    back = [(ends[place] + missing, pieces[place]) for place in range(damaged[-1] + 1, len(pieces))]
    return [*front, *back]


def _part(located: Sequence[Located], position: int, max_octets: int) -> bytes:
    """Octets from ``position`` on, as long as they are known."""
    parts = []
    for begin, piece in located:
        end = begin + piece.octets
        if end <= position or max_octets <= 0:
            continue
        if begin > position:
            break
        part = piece.content[position - begin : position - begin + max_octets]
        parts.append(part)
        position += len(part)
        max_octets -= len(part)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _next_position(located: Sequence[Located], position: int, otherwise: int) -> int:
    return next((begin for begin, piece in located if begin > position and piece.octets), otherwise)
