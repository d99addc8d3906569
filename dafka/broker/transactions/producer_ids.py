"""Producer ids: each is allotted only once in the life of a log.

A commit reserves a block of PRODUCER_IDS; those of the block that are left when the broker stops are skipped.
"""

from __future__ import annotations

from gevent.lock import BoundedSemaphore

from dafka.broker.limits import PRODUCER_IDS
from dafka.commit.writer import Writer
from dafka.log import Log

TABLE, KEY = "producer.ids", "next"


class ProducerIds:
    """The producer ids of one log. Hub side."""

    def __init__(self, log: Log, writer: Writer) -> None:
        self._table = log.table(TABLE)
        self._writer = writer
        self._next = self._end = 0
        self._lock = BoundedSemaphore(1)

    def next(self) -> int:
        """A producer id that was never allotted before. Waits as a green thread; raises LogError."""
        with self._lock:
            if self._next == self._end:
                begin = int(self._table.get(KEY, 0))
                self._writer.put_and_wait({(TABLE, KEY): begin + PRODUCER_IDS})
                self._next, self._end = begin, begin + PRODUCER_IDS
            self._next += 1
            return self._next - 1
