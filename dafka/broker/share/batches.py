"""Which records were acquired together when they were first delivered: batches in flight, by Kafka's word.

What one acquisition takes behind the end is a batch, or several of some size. Records that fail again and
again are delivered in parts of these (:mod:`dafka.broker.share.acquisition`), however often they have been
split and joined since. After a restart each range that was stored is one.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator

from dafka.broker.share.acquisition import Acquisition
from dafka.broker.share.limits import BATCHES_KNOWN
from dafka.broker.share.runs import RecordState, Runs

Part = tuple[int, int, int]
"""The first and the last of some offsets, and how often each of them was delivered."""


class Batches:
    """The batches of a share partition, which follow each other without a gap."""

    def __init__(self, firsts: Iterable[int] = ()) -> None:
        self._firsts = list(firsts)
        self.deliveries = 0
        """How often a record in flight has been delivered at most."""

    def begin(self, first: int) -> None:
        """A batch begins at the end."""
        self._firsts.append(first)
        if len(self._firsts) > BATCHES_KNOWN:
            del self._firsts[1 : BATCHES_KNOWN // 2]  # these are one from now on

    def around(self, offset: int, end: int) -> tuple[int, int]:
        """The first and the last offset of the batch in which this one is, below the end."""
        place = bisect_right(self._firsts, offset)
        last = self._firsts[place] - 1 if place < len(self._firsts) else end - 1
        return self._firsts[place - 1] if place else min(offset, 0), last

    def entered(self, known: Iterable[Part], runs: Runs, taking: Acquisition) -> Iterator[Part]:
        """Available offsets, for an acquisition that enters the batches that they are in in turn.

        They may be acquired meanwhile.
        """
        for first, last, count in known:
            at = first
            while at <= last:
                batch_first, batch_last = self.around(at, runs.end)
                if batch_first != taking.batch:
                    some = runs.within(batch_first, batch_last)
                    counts = (run.count for run in some if run.state is RecordState.AVAILABLE)
                    is_slow = self.deliveries >= taking.slow and any(one >= taking.slow for one in counts)
                    taking.enter(batch_first, batch_last, is_slow)
                    if taking.is_full:
                        return
                yield at, min(last, batch_last), count
                at = batch_last + 1

    def forget_below(self, start: int) -> None:
        """No offset below this one is asked for any more."""
        if len(self._firsts) > 1 and self._firsts[1] <= start:
            del self._firsts[: bisect_right(self._firsts, start) - 1]

    def forget_from(self, end: int) -> None:
        """There are no offsets from this one on."""
        while self._firsts and self._firsts[-1] >= end:
            self._firsts.pop()
