"""The positions of one partition: measured once, and the same for ever.

Measuring goes from the end of what is measured up to the last stable offset, so every record below has its
position for good: transactions are decided there, and nothing compacts a topic that has positions. A
checkpoint that is lost in a crash is found again by measuring, as long as the records are there. So before
any of them are deleted, everything up to there is measured and stored (:meth:`MeasuredPartition.deleting`),
because a process that was killed may have told positions of all of them. Records that are deleted before they
can be seen, because their transaction is open, never get octets: nothing is measured until they are gone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

import gevent.event
from kafka.errors import KafkaError, UnknownTopicOrPartitionError

from dafka.broker.interface.positions import (
    DamagedPositionError,
    PartitionPositions,
    PositionOutOfRangeError,
)
from dafka.broker.positions import measuring
from dafka.broker.positions.checkpoints import Checkpoints
from dafka.broker.positions.lookup import Lookup
from dafka.broker.positions.reading import Reading
from dafka.broker.records.producer_state import ProducerStates
from dafka.broker.topics.table import Partition
from dafka.commit.rows import Rows
from dafka.hub.lines import FifoLock
from dafka.hub.pool import BATCHES
from dafka.hub.turns import Pace
from dafka.log import LogError, LogWriteError
from dafka.protocol import raw

_INLINE_OCTETS = 32 * 1024  # that are taken apart into messages in the hub itself
_BOUNDARIES = 256  # ends of messages that are remembered, for readers that go on from there


P = ParamSpec("P")
R = TypeVar("R")


def _answered(
    method: Callable[Concatenate[MeasuredPartition, P], R],
) -> Callable[Concatenate[MeasuredPartition, P], R]:
    """The method, raising an error that says so if the broker is stopped or the topic deleted meanwhile,
    instead of what that leads to."""

    @wraps(method)
    def call(self: MeasuredPartition, /, *args: P.args, **kwargs: P.kwargs) -> R:
        self._check()
        try:
            return method(self, *args, **kwargs)
        except (KafkaError, LogError, LookupError):
            self._check()
            raise

    return call


class MeasuredPartition(PartitionPositions):
    """:class:`PartitionPositions` of a partition that has a checkpoint.

    ``check()`` raises if the broker is stopped. ``commit(partition, rows)`` has rows committed and waits;
    ``changed(self)`` is called when there is something to store.
    """

    def __init__(
        self,
        partition: Partition,
        checkpoints: Checkpoints,
        reading: Reading,
        producers: ProducerStates,
        check: Callable[[], None],
        commit: Callable[[Partition, Rows], None],
        changed: Callable[[MeasuredPartition], None],
    ) -> None:
        self._partition = partition
        self._checkpoints = checkpoints
        self._reading = reading
        self._lookup = Lookup(partition, checkpoints, reading)
        self._producers = producers
        self._check_running = check
        self._commit = commit
        self._tell_changed = changed
        self._measuring = FifoLock()
        self._storing = FifoLock()
        self._deletions = 0  # under way, of records that cannot be seen yet
        self._released = gevent.event.Event()
        self._released.set()
        self._grown = gevent.event.Event()  # another one each time that the partition has changed
        self._boundaries: dict[int, None] = {}
        partition.watch(self)

    # -- the range ------------------------------------------------------------------------------

    @property
    def begin(self) -> int:
        """The position that they began at."""
        return self._checkpoints.begin.position

    @property
    @_answered
    def first(self) -> int:
        return self._lookup.front().position

    @property
    def end(self) -> int:
        return self._checkpoints.end.position

    @property
    def _next_offset(self) -> int:
        """Where measuring goes on."""
        return max(self._checkpoints.end.offset, self._partition.log_start)

    @property
    def _stable_offset(self) -> int:
        return self._producers.last_stable_offset(self._partition)

    def _check(self) -> None:
        self._check_running()
        if self._partition.topic.deleted:
            raise UnknownTopicOrPartitionError(f"topic {self._partition.topic.name!r} was deleted")

    def _check_range(self, position: int) -> None:
        first, end = self._lookup.front().position, self.end
        if not first <= position <= end:
            raise PositionOutOfRangeError(position, first, end)

    # -- measuring ------------------------------------------------------------------------------

    @_answered
    def catch_up(self) -> None:
        if self._next_offset < self._stable_offset:
            self._measure()

    def _measure(self, until: int | None = None, *, past_damage: bool = False) -> None:
        pace = Pace()
        with self._measuring:
            while True:
                self._check()
                self._released.wait()
                start, stable = self._next_offset, self._stable_offset
                stop = stable if until is None else min(until, stable)
                if start >= stop:
                    return
                pieces = self._reading.pieces(start, stop, measuring.total, past_damage=past_damage)
                if not self._deletions and start == self._next_offset:
                    for piece in pieces:
                        self._checkpoints.grow(piece.end, piece.octets, piece.bytes)
                    self._tell_changed(self)
                    if self._checkpoints.full_rows:
                        with suppress(LogWriteError):  # later: measured positions can be told all the same
                            self.store()
                pace.rest()

    @_answered
    def advance(self, base_offset: int, sizes: Sequence[int]) -> int | None:
        end_offset = base_offset + len(sizes)
        while True:
            self._check()
            self._released.wait()
            if self._stable_offset < end_offset:
                return None
            if base_offset < self._next_offset:
                return self._lookup.position_of(max(base_offset, self._partition.log_start))
            if base_offset == self._next_offset:
                position, octets = self.end, sum(sizes)
                self._checkpoints.grow(end_offset, octets, octets + measuring.BATCH_BYTES)
                self._remember(position)
                self._tell_changed(self)
                return position
            self._measure(base_offset)

    @_answered
    def wait(self, timeout: float) -> bool:
        if self._next_offset < self._stable_offset:
            return True
        return bool(self._grown.wait(timeout))

    def partition_grew(self, partition: Partition) -> None:
        """Called when the partition's end or beginning has moved, and when it is deleted."""
        self.wake()

    def wake(self) -> None:
        """End all waiting."""
        grown, self._grown = self._grown, gevent.event.Event()
        grown.set()

    # -- reading --------------------------------------------------------------------------------

    @_answered
    def read(self, position: int, max_octets: int) -> bytes:
        self._check_range(position)
        return self._lookup.read(position, max_octets)

    @_answered
    def messages(self, position: int, max_octets: int) -> tuple[list[list[bytes]], int]:
        self._check_range(position)
        if position not in self._boundaries:
            position = self._boundary(position)
        room = max(max_octets, 1)
        while position < self.end:
            try:
                octets = self.read(position, room)
            except DamagedPositionError as error:
                position = error.next
                continue
            run = BATCHES.run if len(octets) > _INLINE_OCTETS else _call
            messages, used = run(raw.decode_messages, octets)
            if messages:
                if used > max_octets:  # the first one alone has more
                    used = len(raw.split_messages(octets)[0][0])
                    del messages[1:]
                self._remember(position + used)
                return messages, position + used
            room *= 8
        return [], position

    def _boundary(self, position: int) -> int:
        """The position of the first message that begins at a position or behind it."""
        if position >= self.end:
            return position
        try:
            begin, end = self.bounds(position)
        except DamagedPositionError as error:
            return error.next
        return begin if begin == position else end

    def _remember(self, boundary: int) -> None:
        self._boundaries.pop(boundary, None)
        self._boundaries[boundary] = None
        if len(self._boundaries) > _BOUNDARIES:
            del self._boundaries[next(iter(self._boundaries))]

    @_answered
    def position_of(self, offset: int) -> int:
        return self._lookup.position_of(offset)

    @_answered
    def offset_of(self, position: int) -> int:
        self._check_range(position)
        if position == self.end:
            return self._next_offset
        return self._lookup.message(position)[0]

    @_answered
    def bounds(self, position: int) -> tuple[int, int]:
        self._check_range(position)
        if position == self.end:
            raise PositionOutOfRangeError(position, self.first, self.end)
        _, begin, octets = self._lookup.message(position)
        return begin, begin + octets

    # -- storing --------------------------------------------------------------------------------

    @property
    def is_stored(self) -> bool:
        """Whether everything that was measured is stored, and nothing that nobody needs."""
        below = self._checkpoints.rows_below(self._partition.log_start)
        return self._checkpoints.stored >= self._checkpoints.end.offset and not below

    def store(self) -> None:
        """Have what was measured stored, and rows deleted that nobody needs; raises the log's errors."""
        with self._storing:
            checkpoints = self._checkpoints
            end, rows = checkpoints.end, checkpoints.rows()
            gone = checkpoints.rows_below(self._partition.log_start)
            self._commit(self._partition, {**rows, **gone})
            checkpoints.written(rows, end)
            checkpoints.drop(gone)

    @_answered
    def _store_up_to(self, offset: int) -> None:
        """Measure and store what lies below an offset and can be seen."""
        while True:
            self._measure(offset, past_damage=True)
            if self._checkpoints.stored < min(offset, self._checkpoints.end.offset):
                self.store()
            elif self._next_offset >= min(offset, self._stable_offset):
                return

    @contextmanager
    def deleting(self, offset: int) -> Iterator[None]:
        """For a ``with`` block that deletes the records below ``offset``: they are measured and stored
        before.

        As long as it lasts nothing is measured, if some of them cannot be seen yet.
        """
        self._store_up_to(offset)
        unseen = self._checkpoints.end.offset < offset
        if unseen:
            self._deletions += 1
            self._released.clear()
        try:
            yield
        finally:
            if unseen:
                self._deletions -= 1
                if not self._deletions:
                    self._released.set()
            self._tell_changed(self)


def _call(
    function: Callable[[bytes], tuple[list[list[bytes]], int]], octets: bytes
) -> tuple[list[list[bytes]], int]:
    return function(octets)
