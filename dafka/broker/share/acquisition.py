"""How many records a member gets at once.

An acquisition counts as a delivery. A record that was delivered again and again may be what fails: from half
of the limit on fewer of such records are delivered at once, and on their last delivery each of them alone, so
that one bad record does not take its neighbours with it.

As in Apache Kafka 4.3 these are parts of the batches in which records were first acquired together. As soon
as one available record of such a batch is to be slow, nothing else is delivered with the batch: half as many
records as it has ever had, a quarter with the next delivery, and so on. That is counted from its first record
on, but sought when the first slow one is reached; if there are more by then, it no longer counts.
"""

from __future__ import annotations

from typing import NamedTuple

from dafka.broker.interface.share import Acquired
from dafka.broker.share.limits import ACQUIRED_AT_ONCE, ACQUIRED_OFFSETS

NEVER = 2**31
"""More deliveries than any record has."""


class Terms(NamedTuple):
    """The limits of a group: ``lock`` in seconds, deliveries of a record, records in flight, and renewals."""

    lock: float = 30.0
    deliveries: int = 5
    in_flight: int = 2000
    renew: bool = True


class Acquisition:
    """One acquisition: how much it may take, and the records it has taken.

    ``acquired`` lists them as Kafka does: what is new apart from what was in flight, and each batch in flight
    apart from the others.
    """

    def __init__(self, member: str, terms: Terms, records: int, strict: bool, batch_size: int) -> None:
        self.member = member
        self.until = 0.0  # the locks of what is acquired in this turn
        self.terms = terms
        self.strict = strict
        self.known_only = False  # whether nothing comes into flight
        self.is_full = False  # there is no room for further records, or none are to be taken with these
        self.new_batch = True
        self.exact = False  # whether no more is taken than asked for, as of a gap
        self.acquired: list[Acquired] = []
        self.count = 0  # of the records in it
        self.slow = max(2, (terms.deliveries + 1) // 2) if terms.deliveries > 2 else NEVER
        self.is_slow = False  # whether the batch in flight that is gone through is delivered in parts
        self.batch = -1  # where that begins
        self._size = self._taken_of_it = self._part = 0
        self._records = records
        self._batch_size = batch_size
        self._taken = 0
        self._first_new: int | None = None  # where the last new batch in flight begins
        self._is_apart = False  # whether what comes next is listed apart
        self._listed = 0  # before this turn

    def go_on(self, now: float) -> None:
        """A turn begins, in which it takes records."""
        self.until = now + self.terms.lock
        self._listed = len(self.acquired)

    @property
    def is_over(self) -> bool:
        """Whether it takes nothing more, in this turn at least."""
        return self.is_complete or len(self.acquired) - self._listed >= ACQUIRED_AT_ONCE

    @property
    def is_complete(self) -> bool:
        """Whether it takes nothing more at all."""
        return self.is_full or (self.strict and self.has_enough)

    @property
    def has_enough(self) -> bool:
        """Whether it has as many as were asked for; the rest of a batch is taken with them."""
        return self._taken >= self._records

    @property
    def takes_nothing_new(self) -> bool:
        """Whether nothing comes into flight with what it has."""
        return self.known_only or self.is_over or self.is_slow or self.has_enough

    def enter(self, first: int, last: int, is_slow: bool) -> None:
        """Go on with another batch in flight; with ``is_slow`` there are records that come in parts."""
        if self.is_slow or self.has_enough or (is_slow and self._taken):
            self.is_full = True
        self.batch, self._size, self.is_slow = first, last - first + 1, is_slow
        self._taken_of_it = self._part = 0
        self._is_apart = True

    def begins_batch(self, first: int) -> bool:
        """Whether new records from this offset on are another batch in flight."""
        had = self._first_new
        is_long = had is not None and self.new_batch and first - had >= self._batch_size
        if had is None or (is_long and not self.strict):
            self._first_new = first
            self._is_apart = True
        return had != self._first_new

    def size_of(self, size: int, count: int) -> int:
        """How many to take of a run of this size that was delivered ``count`` times."""
        if self.is_slow:
            size = self._slow_size(size, count)
        return min(size, self._records - self._taken if self.strict or self.exact else ACQUIRED_OFFSETS)

    def _slow_size(self, size: int, count: int) -> int:
        had = self._taken_of_it
        if count == self.terms.deliveries - 1:  # their last delivery
            self.is_full = True
            return 0 if had else 1
        if count >= self.slow and not self._part:
            self._part = max(self._size >> (count - self.slow + 1), 1)
        if had < self._part <= had + size:
            self.is_full = True
            size = self._part - had
        self._taken_of_it += size
        return size

    def pass_over(self, count: int) -> None:
        """So many aborted records count as taken, as in Kafka."""
        self._taken += count

    def add(self, first: int, last: int, count: int) -> None:
        self._taken += last - first + 1
        self.count += last - first + 1
        before = self.acquired[-1] if self.acquired and not self._is_apart else None
        if before is not None and before.last + 1 == first and before.deliveries == count:
            self.acquired[-1] = before._replace(last=last)
        else:
            self.acquired.append(Acquired(first, last, count))
        self._is_apart = self.new_batch = False
