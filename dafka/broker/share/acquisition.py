"""How many records a member gets at once.

An acquisition counts as a delivery. A record that was delivered again and again may be what fails: from half
of the limit on fewer of such records are delivered at once, and on their last delivery each of them alone, so
that one bad record does not take its neighbours with it (as in Apache Kafka 4.3).
"""

from __future__ import annotations

from typing import NamedTuple

from dafka.broker.interface.share import Acquired
from dafka.broker.share.limits import ACQUIRED_AT_ONCE, ACQUIRED_OFFSETS


class Terms(NamedTuple):
    """The limits of a group: ``lock`` in seconds, deliveries of a record, records in flight, and renewals."""

    lock: float = 30.0
    deliveries: int = 5
    in_flight: int = 2000
    renew: bool = True


class Acquisition:
    """One acquisition: how much it may take, and the records it has taken."""

    def __init__(
        self, member: str, until: float, terms: Terms, records: int, strict: bool, batch_size: int
    ) -> None:
        self.member = member
        self.until = until
        self.terms = terms
        self.strict = strict
        self.is_full = False  # there is no room for further records, or none are to be taken with these
        self.new_batch = True
        self.exact = False  # whether no more is taken than asked for, as of a gap
        self.acquired: list[Acquired] = []
        self._records = records
        self._batch_size = batch_size
        self._taken = 0

    @property
    def is_over(self) -> bool:
        return self.is_full or self._taken >= self._records or len(self.acquired) >= ACQUIRED_AT_ONCE

    def size_of(self, size: int, count: int) -> int:
        """How many to take of a run of this size that was delivered ``count`` times."""
        limit = self.terms.deliveries
        slow = max(2, (limit + 1) // 2)
        if limit > 2 and count == limit - 1:  # their last delivery
            self.is_full = True
            return 0 if self._taken else 1
        if limit > 2 and count >= slow:
            self.is_full = True
            size = max(size >> (count - slow + 1), 1)
        return min(size, self._records - self._taken if self.strict or self.exact else ACQUIRED_OFFSETS)

    def pass_over(self, count: int) -> None:
        """So many aborted records count as taken, as in Kafka."""
        self._taken += count

    def add(self, first: int, last: int, count: int) -> None:
        self._taken += last - first + 1
        if self.acquired:
            before = self.acquired[-1]
            follows = before.last + 1 == first and before.deliveries == count
            if follows and not (self.new_batch and before.last - before.first + 1 >= self._batch_size):
                self.acquired[-1] = before._replace(last=last)
                self.new_batch = False
                return
        self.acquired.append(Acquired(first, last, count))
        self.new_batch = False
