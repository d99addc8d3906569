"""The stored form of a share partition, in bytes: a snapshot, or the changes since.

Both are a header with the state epoch and the start offset that tools see, and runs of offsets with state and
number of deliveries. A snapshot has all runs; a change has those that take the place of what was there. What
is done with between that start and the own one is a run as well. Acquired runs are stored as available: a
restart ends all locks.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from dafka.broker.share.partition import SharePartition
from dafka.broker.share.runs import RecordState, Run, Runs

NO_START = -1
"""The start offset of a share partition that nobody has read yet."""

_UNSETTLED = NO_START - 1
"""A start offset that is not settled is stored as this less the offset."""

_HEADER = struct.Struct(">?iq")
_RUN = struct.Struct(">qqbh")
_MOST = 2**15 - 1

StoredRun = tuple[int, int, RecordState, int]
"""First and last offset, state, number of deliveries."""

Over = Callable[[Iterable[tuple[Any, ...]]], Iterable[tuple[Any, ...]]]


class Stored(NamedTuple):
    """A share partition as it is stored; ``start`` may be NO_START, and is not ``settled`` before anybody has
    acknowledged anything."""

    state_epoch: int
    start: int
    runs: list[StoredRun]
    settled: bool = True

    @property
    def told(self) -> int:
        """The start as tools see it."""
        return self.start if self.settled else NO_START

    def revived(self) -> SharePartition:
        """The share partition itself; its start is not NO_START."""
        partition = SharePartition(self.start)
        partition.restore(self.start, self.runs)
        partition.told = self.start if self.settled else None
        return partition


def is_stored(value: object) -> bool:
    """Whether a value can be a snapshot or a change."""
    if type(value) is not bytes or len(value) < _HEADER.size or (len(value) - _HEADER.size) % _RUN.size:
        return False
    _, epoch, _ = _HEADER.unpack_from(value)
    if epoch < 0:
        return False
    at = 0
    for first, last, state, count in _RUN.iter_unpack(memoryview(value)[_HEADER.size :]):
        if not at <= first <= last or state not in _STATES or count < 0:
            return False
        at = last + 1
    return True


_STATES = frozenset(map(int, RecordState)) - {RecordState.ACQUIRED}


def snapshot(state_epoch: int, partition: SharePartition | None) -> bytes:
    """Everything about a share partition; None: nobody has read it yet."""
    if partition is None:
        return _HEADER.pack(True, state_epoch, NO_START)
    header = _HEADER.pack(True, state_epoch, _start_of(partition)) + _done_with(partition)
    return header + _packed(partition.within(partition.start, partition.end))


def change(state_epoch: int, partition: SharePartition, ranges: Iterable[tuple[int, int]]) -> bytes:
    """A change: the states of these ranges of offsets, in bytes."""
    packed = bytearray(_HEADER.pack(False, state_epoch, _start_of(partition)) + _done_with(partition))
    at = partition.start
    for first, last in sorted(ranges):
        first = max(first, at)
        if first <= last:
            packed += _packed(partition.within(first, last))
            at = last + 1
    return bytes(packed)


def restored(values: Iterable[bytes], over: Over = iter) -> Stored | None:
    """The state after a snapshot and the changes that follow; changes before the first snapshot do not count.

    There may be a million runs in them: ``over`` goes through those of each value.
    """
    found: Stored | None = None
    runs: Runs | None = None
    for value in values:
        is_snapshot, epoch, start = _HEADER.unpack_from(value)
        settled = start >= NO_START
        start = start if settled else _UNSETTLED - start
        # A start goes back only where the log has lost everything that was in flight.
        if is_snapshot or (runs is not None and 0 <= start < runs.start):
            runs = Runs(max(start, 0))
        if runs is None:
            continue
        found = Stored(epoch, start, [], settled)
        for first, last, state, count in over(_RUN.iter_unpack(memoryview(value)[_HEADER.size :])):
            overlay(runs, first, last, RecordState(state), count)
        runs.move_start(start)
    if found is None or runs is None:
        return None
    return found._replace(runs=[(run.first, run.last, run.state, run.count) for run in runs])


def _start_of(partition: SharePartition) -> int:
    if partition.told is None:
        return _UNSETTLED - partition.start
    return min(partition.told, partition.start)


def _done_with(partition: SharePartition) -> bytes:
    """The run from the start that tools see up to the start."""
    first = partition.start if partition.told is None else partition.told
    done = [(first, partition.start - 1, RecordState.ACKNOWLEDGED, 0)]
    return _packed(done if first < partition.start else [])


def overlay(runs: Runs, first: int, last: int, state: RecordState, count: int) -> None:
    """Put a run in the place of what is there; offsets that nobody has looked at are available in between."""
    first = max(first, runs.start)
    if first < runs.end:
        for run in runs.cut(first, last):
            run.change(state, count)
        runs.join(first, last)
    elif first > runs.end:
        runs.append(Run(runs.end, first - 1, RecordState.AVAILABLE, 0))
    if last >= runs.end:
        runs.append(Run(runs.end, last, state, count))


def _packed(runs: Iterable[StoredRun]) -> bytes:
    """Runs as they are stored, joined where they are alike then."""
    numbers: list[int] = []  # of all runs, one after the other
    like: tuple[int, int] | None = None
    for first, last, state, count in runs:
        if state is RecordState.ACQUIRED:
            state, count = RecordState.AVAILABLE, count - 1
        count = min(count, _MOST)
        if like == (state, count):
            numbers[-3] = last
        else:
            numbers += first, last, state, count
            like = state, count
    return struct.pack(">" + "qqbh" * (len(numbers) // 4), *numbers)
