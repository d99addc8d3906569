"""Producer ids: each is allotted only once in the life of a log.

A commit reserves a block of PRODUCER_IDS; those of the block that are left when the broker stops are skipped.

A power cut may take the commit, and producers that have their ids go on when the power is back. So the ids of
each leader epoch (:mod:`dafka.broker.records.leader_epochs`), which goes up then, lie above those of the
epochs before.
"""

from __future__ import annotations

from gevent.lock import BoundedSemaphore

from dafka.broker.limits import PRODUCER_IDS
from dafka.commit.writer import Writer
from dafka.log import Log, shapes

TABLE, KEY = "producer.ids", "next"

_EPOCH_BITS = 31  # an epoch has as many ids; epochs are of 32 bits, ids of 64


class ProducerIds:
    """The producer ids of one log in leader epoch ``epoch``. Hub side."""

    def __init__(self, log: Log, writer: Writer, epoch: int) -> None:
        self._first = epoch << _EPOCH_BITS
        self._table = log.table(TABLE, shapes.named_rows(**{KEY: shapes.natural}))
        self._writer = writer
        self._next = self._end = 0
        self._lock = BoundedSemaphore(1)

    def next(self) -> int:
        """A producer id that was never allotted before. Waits as a green thread; raises LogError."""
        with self._lock:
            if self._next == self._end:
                begin = max(int(self._table.get(KEY, 0)), self._first)
                self._writer.put_and_wait({(TABLE, KEY): begin + PRODUCER_IDS})
                self._next, self._end = begin, begin + PRODUCER_IDS
            self._next += 1
            return self._next - 1
