"""Producer ids: each is given out once, ever. A commit sets PRODUCER_IDS of them aside; those that are left
when the broker stops are never used."""

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
        """A producer id that nobody has had. Waits as a green thread; raises LogError."""
        with self._lock:
            if self._next == self._end:
                begin = int(self._table.get(KEY, 0))
                self._writer.put_and_wait({(TABLE, KEY): begin + PRODUCER_IDS})
                self._next, self._end = begin, begin + PRODUCER_IDS
            self._next += 1
            return self._next - 1
