"""Which records of a partition were written in which leader epoch."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from dafka.broker.interface.broker import NO_EPOCH, NO_OFFSET


class EpochHistory(NamedTuple):
    """(epoch, first offset) of each leader epoch that has records here, both rising."""

    starts: tuple[tuple[int, int], ...]

    @property
    def latest(self) -> int:
        """The epoch of the last record, or of the next one."""
        return self.starts[-1][0]

    def begun(self, epoch: int, end: int, begin: int = 0) -> EpochHistory:
        """The history with ``epoch`` from the offset ``end`` on, where the log ends now.

        Epochs that had begun behind it have lost all their records, and so have those below ``begin``.
        """
        kept = [one for one in self.starts if one[1] < end]
        while len(kept) > 1 and kept[1][1] <= begin:
            del kept[0]
        return EpochHistory((*kept, (epoch, end)))

    def at(self, offset: int) -> int:
        """The epoch of the record at an offset."""
        return next((epoch for epoch, first in reversed(self.starts) if first <= offset), self.starts[0][0])

    def end_of(self, epoch: int, end: int) -> tuple[int, int]:
        """The largest epoch up to this one and the offset where its records end, in a log that ends at
        ``end``; NO_EPOCH and NO_OFFSET for an epoch that is still to come.

        An epoch below all that are known ends where the first of them begins, as in Kafka.
        """
        if epoch == self.latest:
            return epoch, end
        floor = epoch
        for known, first in self.starts:
            if known > epoch:
                return floor, first
            floor = known
        return NO_EPOCH, NO_OFFSET

    def row(self) -> list[list[int]]:
        """Its row in the table of epochs."""
        return [list(one) for one in self.starts]

    @classmethod
    def of(cls, row: Iterable[Iterable[int]]) -> EpochHistory:
        """The history in a row."""
        return cls(tuple((epoch, first) for epoch, first in row))


FIRST = EpochHistory(((0, 0),))
"""The history of a partition whose leader has never changed its epoch."""
