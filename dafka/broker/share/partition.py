"""The state of a share partition: which records of a partition a share group still has to deliver.

Theory of operation. The records of a share group are between a *start* offset and an *end* offset. All below
the start are done with, and nobody has looked at those from the end on. Each record in between is
*available*, *acquired* by one member until its lock expires, *acknowledged*, or *archived* (rejected, or
delivered as often as the limit says, or an aborted record, or a gap). The start moves over what is
acknowledged and archived. KIP-932, "In-flight records".

As in Kafka members acquire ranges of offsets, in which there may be markers, and gaps between batches that
were read together; they say of each that it is a gap. A gap that a read begins with is archived.

    available --acquire--> acquired --accept--> acknowledged
        ^                   |  |  |
        |   release, expiry |  |  +--reject, gap--> archived
        +-------------------+  +--release or expiry after the last delivery--> archived

How many records an acquisition takes is in :mod:`dafka.broker.share.acquisition`. As in Kafka released
records and the room that others make are there for it when that is on disk (:meth:`SharePartition.written`).

No I/O and no clock: times go in as seconds of any clock. :meth:`SharePartition.expire` is called at
:attr:`SharePartition.wake_at`.

Changes to store are noted as ranges of offsets (:attr:`SharePartition.changed`), and taken by
:mod:`dafka.broker.share.states`. An acquisition alone is not stored: after a restart the record is available.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from math import inf
from typing import NamedTuple

from dafka.broker.interface.share import Acknowledged, AcknowledgeType
from dafka.broker.share.acknowledgements import BeyondError, RenewalError, all_by_type, check_acquired
from dafka.broker.share.acquisition import Acquisition, Terms
from dafka.broker.share.batches import Batches
from dafka.broker.share.limits import (
    ACQUIRED_AT_ONCE,
    ACQUIRED_OFFSETS,
    EXPIRED_AT_ONCE,
    PART_OFFSETS,
    RELEASED_AT_ONCE,
    RUNS,
)
from dafka.broker.share.runs import RecordState, Run, Runs

AVAILABLE, ACQUIRED = RecordState.AVAILABLE, RecordState.ACQUIRED
ACKNOWLEDGED, ARCHIVED = RecordState.ACKNOWLEDGED, RecordState.ARCHIVED
_ACCEPT, _RELEASE, _RENEW = AcknowledgeType.ACCEPT, AcknowledgeType.RELEASE, AcknowledgeType.RENEW

_ALL = 2**63


class LogBatch(NamedTuple):
    """A record batch that was read from the log. ``deliver``: whether its records are for members, which
    those of aborted transactions are not."""

    first: int
    last: int
    deliver: bool = True


class SharePartition:
    """The records of one partition for one share group, from the offset ``start`` on."""

    def __init__(self, start: int) -> None:
        self._runs = Runs(start)
        self._in_flight = 0  # offsets that are available or acquired
        self._seek = start  # no offset below is available
        self._batches = Batches()
        self._locks: list[tuple[float, int, int]] = []  # a heap: a run of these offsets was locked until
        self.changed: list[tuple[int, int]] = []  # ranges of offsets to be stored
        self._released: list[tuple[int, int]] = []  # by members, since take_changes(); _writing: before
        self._writing: list[tuple[int, int]] = []
        self._start_writing = self._start_written = start
        self.told: int | None = start
        """The start that tools see, as in Kafka that before the last change by a member; None before one."""

    @property
    def start(self) -> int:
        """The first offset that is not done with."""
        return self._runs.start

    @property
    def end(self) -> int:
        """The first offset that nobody has looked at."""
        return self._runs.end

    @property
    def in_flight(self) -> int:
        """Offsets between start and end that are available or acquired."""
        return self._in_flight

    @property
    def size(self) -> int:
        """How many runs of offsets there are."""
        return len(self._runs)

    @property
    def finished(self) -> int:
        """Offsets between start and end that are not."""
        return self.end - self.start - self._in_flight

    @property
    def is_held(self) -> bool:
        """Whether any records are acquired."""
        return any(run.state is ACQUIRED for run in self._runs)

    @property
    def runs(self) -> Iterator[Run]:
        """The runs of offsets in the same state, in their order; they belong to this object."""
        return iter(self._runs)

    def within(self, first: int, last: int) -> Iterator[tuple[int, int, RecordState, int]]:
        """First and last offset, state and deliveries of the runs from ``first`` to ``last``."""
        for run in self._runs.within(first, last):
            yield max(run.first, first), min(run.last, last), run.state, run.count

    @property
    def wake_at(self) -> float:
        """When the next lock expires, or earlier."""
        return self._locks[0][0] if self._locks else inf

    # -- delivering ------------------------------------------------------------------------------------

    def next_offset(self, terms: Terms) -> int | None:
        """The offset from which to read for :meth:`acquire`; None if nothing can be acquired now."""
        available = self._first_available() if self._in_flight else None
        if available is not None:
            return available
        full = self._room(terms) <= 0 or len(self._runs) >= RUNS
        return None if full else self._runs.end

    def _room(self, terms: Terms) -> int:
        """How many offsets may come into flight. As in Kafka all behind the start on disk are in flight."""
        return terms.in_flight - (self._runs.end - self._start_written)

    def begin(
        self,
        member: str,
        read_from: int,
        terms: Terms,
        *,
        records: int,
        strict: bool = False,
        batch_size: int = 0,
    ) -> Acquisition:
        """Begin an acquisition of what is available from an offset on, which :meth:`acquire` goes on with.

        As soon as there are ``records`` no further batch is begun, neither of the log nor of those in flight;
        with ``strict`` there are no more than that. What is new is listed in parts of ``batch_size``, or
        somewhat more: they end where batches end. As in Kafka ``records`` are no more than there is room for
        in flight, though what is there already needs none; without any room that is all there is.
        """
        room = self._room(terms)
        known_only = room <= 0
        records = min(records, max(self.end - read_from, 0) if known_only else room)
        taking = Acquisition(member, terms, records, strict, batch_size if batch_size > 0 else _ALL)
        taking.known_only = known_only
        return taking

    def acquire(self, now: float, taking: Acquisition, read_from: int, batches: Iterable[LogBatch]) -> None:
        """Give a member what is available of the batches that were read from an offset on."""
        taking.go_on(now)
        at = min(read_from, self.end)
        is_first = True
        for batch in batches:
            if taking.is_over or (taking.has_enough and batch.first >= self.end):
                break
            if batch.last < at:
                continue
            if batch.first > at and is_first:
                self._archive(at, batch.first - 1)
            elif batch.first > at:
                taking.exact = True
                self._take(at, batch.first - 1, taking)
                taking.exact = False
                if taking.is_over:
                    break
            is_first = False
            first = max(batch.first, at, self.start)
            if batch.deliver:
                taking.new_batch = True
                self._take(first, batch.last, taking)
            else:
                self._archive(first, batch.last)
                taking.pass_over(batch.last - first + 1)
            at = batch.last + 1
        self._advance()

    def _take(self, first: int, last: int, taking: Acquisition) -> None:
        """Acquire what is available from ``first`` to ``last``, which are in one batch."""
        # A part of many is as good: the rest is left for the next acquisition.
        some = islice(self._known(first, last), ACQUIRED_AT_ONCE)
        known = [(run.first, run.last, run.count) for run in some]
        for run_first, run_last, count in self._batches.entered(known, self._runs, taking):
            size = taking.size_of(run_last - run_first + 1, count)
            if size <= 0:
                return
            self._lock(run_first, run_first + size - 1, count + 1, taking)
            if taking.is_over:
                return
        self._take_new(max(first, self.end), last, taking)

    def _take_new(self, first: int, last: int, taking: Acquisition) -> None:
        """Acquire offsets from the end on. As in Kafka a batch comes into flight as a whole, though with
        ``strict`` its last records are left available."""
        if first > last:
            return
        if taking.takes_nothing_new or len(self._runs) >= RUNS:
            taking.is_full = True
            return
        wanted, left = last - first + 1, ACQUIRED_OFFSETS - self._in_flight
        size = min(taking.size_of(wanted, 0), max(left, PART_OFFSETS))
        taking.is_full = size < wanted  # the end is within this batch
        behind = min(wanted - size, max(left - size, 0)) if taking.strict and not taking.exact else 0
        self._in_flight += size + behind
        if taking.begins_batch(first):
            self._batches.begin(first)
        self._runs.append(Run(first, first + size + behind - 1, AVAILABLE, 0))
        self._lock(first, first + size - 1, 1, taking)
        if behind:
            self._seek = min(self._seek, first + size)

    def _known(self, first: int, last: int) -> Iterator[Run]:
        """The available offsets of runs, from ``first`` to ``last``."""
        for run in self._runs.within(first, min(last, self.end - 1)):
            if run.is_free:
                yield Run(max(run.first, first), min(run.last, last), AVAILABLE, run.count)

    def _lock(self, first: int, last: int, count: int, taking: Acquisition) -> None:
        for run in self._runs.cut(first, last):
            run.change(ACQUIRED, count, taking.member, taking.until)
        self._runs.join(first, last)
        self._locked(taking.until, first, last)
        self._batches.deliveries = max(self._batches.deliveries, count)
        taking.add(first, last, count)

    def _locked(self, until: float, first: int, last: int) -> None:
        heapq.heappush(self._locks, (until, first, last))
        if len(self._locks) > 2 * len(self._runs) + 64:  # of renewed and acknowledged ones
            self._locks = [(run.until, run.first, run.last) for run in self._runs if run.state is ACQUIRED]
            heapq.heapify(self._locks)

    def _archive(self, first: int, last: int) -> None:
        """There are no records for members at these offsets."""
        first = max(first, self.start)
        available = [(run.first, run.last, None) for run in self._known(first, last)]
        self._runs.change(available, self._archive_run)
        if last >= self.end:
            begin = self.end
            self._runs.append(Run(begin, last, ARCHIVED, 0))
            self._note(begin, last)

    def _archive_run(self, run: Run, _: None) -> None:
        self._in_flight -= len(run)
        run.change(ARCHIVED, run.count)
        self._note(run.first, run.last)

    def _first_available(self) -> int | None:
        if self._in_flight:
            for run in self._runs.within(max(self._seek, self.start), self.end):
                if run.is_free:
                    self._seek = run.first
                    return run.first
        self._seek = self.end
        return None

    # -- acknowledging ---------------------------------------------------------------------------------

    def acknowledge(self, now: float, member: str, batches: Sequence[Acknowledged], terms: Terms) -> None:
        """Carry out what a member says of records that it has acquired: all of it, or nothing.

        ``batches`` are in the order of their offsets and do not overlap. Offsets below the start are ignored:
        they were removed from the log. Raises InvalidRecordStateError, BeyondError and RenewalError.
        """
        start = self.start
        parts = all_by_type(batches, start)
        if not parts:
            return
        if batches[-1].last >= self.end:
            self._check_in_turn(now, member, batches)
        check_acquired(self._runs, now, member, parts)
        if not terms.renew and any(type_ == _RENEW for _, _, type_ in parts):
            raise RenewalError("Renewing acquisition locks is not enabled for the group.")

        self._runs.change(parts, partial(self._settle, now, terms))
        self._advance()

    def _check_in_turn(self, now: float, member: str, batches: Sequence[Acknowledged]) -> None:
        """Raise what is wrong with the first of the batches about which something is."""
        for batch in batches:
            if batch.last >= self.end > self.start:
                raise BeyondError(f"offset {batch.last} is behind the records in flight")
            if batch.last >= self.start:
                check_acquired(self._runs, now, member, all_by_type([batch], self.start))

    def _settle(self, now: float, terms: Terms, run: Run, type_: int) -> None:
        """Carry out what a member says of a run that it has acquired."""
        if type_ == _RENEW:
            run.until = now + terms.lock
            self._locked(run.until, run.first, run.last)
        elif type_ == _RELEASE:
            self._take_back_run(run, terms, run.member)
        else:
            self.told = self.start
            self._in_flight -= run.last - run.first + 1
            run.change(ACKNOWLEDGED if type_ == _ACCEPT else ARCHIVED, run.count)
            self._note(run.first, run.last)

    def take_changes(self) -> list[tuple[int, int]]:
        """The ranges of offsets that have changed, to be written now, until :meth:`written`."""
        self._writing += self._released
        self._start_writing = self.start
        changes, self.changed, self._released = self.changed, [], []
        return changes

    def written(self) -> None:
        """What was taken is on disk, or will be with the next round."""
        self._start_written = max(self._start_written, self._start_writing)
        released, self._writing = sorted(self._writing), []
        ranges: list[tuple[int, int, None]] = []
        at, end = self.start, self.end
        for first, last in released:  # of which some may be gone
            first, last = max(first, at), min(last, end - 1)
            if first <= last:
                ranges.append((first, last, None))
                at = last + 1
        self._runs.change(ranges, self._set_free)

    def _set_free(self, run: Run, _: None) -> None:
        """What a member has released of a run is on disk: anybody may acquire it."""
        if run.state is AVAILABLE:
            run.member = ""
            self._seek = min(self._seek, run.first)

    def release(self, member: str, terms: Terms) -> bool:
        """A member has left: records that it has acquired are available again, of very many some. Returns
        whether there were any."""
        all_held = (run for run in self._runs if run.state is ACQUIRED and run.member == member)
        held = list(islice(all_held, RELEASED_AT_ONCE))
        self._take_back(held, terms)
        if held:
            self._runs.join(held[0].first, held[-1].last)
        self._advance()
        return bool(held)

    def expire(self, now: float, terms: Terms) -> bool:
        """Take back what members have held for too long, some of it at a time; whether there was anything."""
        late: list[Run] = []
        while self._locks and self._locks[0][0] <= now and len(late) < EXPIRED_AT_ONCE:
            _, first, last = heapq.heappop(self._locks)
            found = [
                run for run in self._runs.within(first, last) if run.state is ACQUIRED and run.until <= now
            ]
            self._take_back(found, terms)
            late += found
        if late:
            self._runs.join(min(run.first for run in late), max(run.last for run in late))
            self._advance()
        return bool(late)

    def _take_back(self, runs: list[Run], terms: Terms) -> None:
        """Make runs that are acquired available, unless they were delivered often enough."""
        for run in runs:
            self._take_back_run(run, terms)

    def _take_back_run(self, run: Run, terms: Terms, released_by: str = "") -> None:
        self.told = self.start
        if run.count < terms.deliveries:
            run.change(AVAILABLE, run.count, released_by)
            if released_by:
                self._released.append((run.first, run.last))
            self._seek = min(self._seek, run.first)
        else:
            run.change(ARCHIVED, run.count)
            self._in_flight -= len(run)
        self._note(run.first, run.last)

    def _note(self, first: int, last: int) -> None:
        """These offsets are to be stored."""
        if self.changed and self.changed[-1][1] == first - 1 and self.changed[-1][0] <= first:
            self.changed[-1] = (self.changed[-1][0], last)
        else:
            self.changed.append((first, last))

    def _advance(self) -> None:
        """Move the start over what is done with."""
        done = self.start
        for run in self._runs:
            if not run.state.is_final:
                break
            done = run.last + 1
        if done > self.start:
            self._runs.move_start(done)
            self.changed.append((done, done - 1))
            self._batches.forget_below(done)
        if not self._in_flight:
            self._batches.deliveries = 0

    # -- the log has changed -----------------------------------------------------------------------------

    def trim(self, log_start: int) -> bool:
        """The log begins at this offset: records below are gone; whether there were any."""
        self._start_written = max(self._start_written, log_start)
        if log_start <= self.start:
            return False
        gone = self._runs.within(self.start, log_start - 1)
        self._in_flight -= sum(
            min(run.last, log_start - 1) - run.first + 1 for run in gone if not run.state.is_final
        )
        self._runs.move_start(log_start)
        self.changed.append((log_start, log_start - 1))
        self._advance()
        return True

    def truncate(self, log_end: int) -> None:
        """The log was found to end before this offset: records in flight behind it were lost with the log."""
        if log_end >= self.end:
            return
        if log_end < self.start:
            self.restore(log_end, ())
        else:
            self._runs.move_end(log_end)
            self._batches.forget_from(log_end)
            self._count()
        self.changed.append((self.start, self.end - 1))

    def restore(self, start: int, runs: Iterable[tuple[int, int, RecordState, int]]) -> None:
        """Begin with what was stored: (first, last, state, count), in order; the rest is available."""
        self._runs = Runs(start)
        for first, last, state, count in runs:
            if first > self.end:
                self._runs.append(Run(self.end, first - 1, AVAILABLE, 0))
            if last >= self.end:
                self._runs.append(Run(self.end, last, AVAILABLE if state is ACQUIRED else state, count))
        self._batches = Batches(run.first for run in self._runs)
        self._batches.deliveries = max((run.count for run in self._runs), default=0)
        self._locks.clear()
        self._count()
        self._advance()
        self.changed.clear()
        self._start_writing = self._start_written = self.start

    def _count(self) -> None:
        self._in_flight = sum(len(run) for run in self._runs if not run.state.is_final)
        self._seek = self.start
