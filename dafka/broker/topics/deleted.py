"""The partitions of deleted topics, so that their records do not come back from the mesh.

Another store may have kept the records of a deleted topic's leaders, and says so in its HEADs for as long as
it lives; and a native producer goes on with its partition, in a new topic of that name. The log's table
``deleted`` holds address / topic name -> [offset, sequence, time]: both end what the topic had, and offset -1
stands for a leader's, of which there will never be more. The records themselves leave the log afterwards
(:mod:`dafka.broker.embedded.cleaner`).

Rows are deleted as well: a native partition's when the log begins where the row says, a leader's when no node
has mentioned it for DELETED_RETENTION, and beyond DELETED_KEPT the leaders' that were not mentioned for the
longest time. If a store brings up such a partition after that, it is a native partition to the broker.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator
from heapq import merge
from typing import NamedTuple

from dafka.broker.limits import DELETED_KEPT, DELETED_RETENTION
from dafka.commit.rows import Rows
from dafka.commit.writer import Writer
from dafka.hub.turns import Pace, in_pieces
from dafka.log import Log, LogPartition, shapes

DELETED = "deleted"
FOR_GOOD = -1

_ROWS = 200  # examined between two looks at the clock, and deleted in one round
_SORTED_AT_ONCE = 1000


DELETED_ROWS = shapes.rows(
    re.compile("[\\0-\xff]{0,255}/[\\0-\xff]{0,255}", re.DOTALL).fullmatch,
    shapes.either(
        shapes.row_of(shapes.number, shapes.natural),
        shapes.row_of(shapes.number, shapes.natural, shapes.number),
    ),
)


_Known = tuple[bool, int, tuple[bytes, bytes]]  # mentioned since, when last before that, topic and address


class Deleted(NamedTuple):
    """The end of a partition of a deleted topic: ``end`` (an offset, or FOR_GOOD) and ``sequence``."""

    topic: bytes
    address: bytes
    end: int
    sequence: int


class DeletedPartitions:
    """The partitions of topics that were deleted. Hub side."""

    def __init__(self, log: Log, writer: Writer, clock: Callable[[], float] = time.time) -> None:
        self._log = log
        self._writer = writer
        self._clock = clock
        self._table = log.table(DELETED, DELETED_ROWS)
        self._led = {
            (one.topic, one.address): one.sequence for one in Pace().over(self) if one.end == FOR_GOOD
        }
        self._mentioned: set[tuple[bytes, bytes]] = set()  # on the mesh, since they were last looked at

    def __iter__(self) -> Iterator[Deleted]:
        for key, row in self._table.items():
            yield Deleted(*_names(key), row[0], row[1])

    # -- looking up -----------------------------------------------------------------------------

    def was_led(self, topic: bytes, address: bytes) -> bool:
        """Whether ``address`` was the leader of a partition of a deleted topic."""
        return (topic, address) in self._led

    def is_mentioned(self, topic: bytes, address: bytes) -> bool:
        """:meth:`was_led`, and notes that a node has just mentioned the partition on the mesh."""
        known = (topic, address) in self._led
        if known:
            self._mentioned.add((topic, address))
        return known

    def end_of(self, topic: bytes, address: bytes) -> int:
        """The sequence that a leader's partition ended before; 0 for any other."""
        return self._led.get((topic, address), 0)

    def floor(self, stored: LogPartition) -> int:
        """The offset below which the records of a partition belong to a deleted topic; FOR_GOOD: all do."""
        row = self._table.get(_key(stored.topic, stored.address))
        return 0 if row is None else int(row[0])

    # -- changing -------------------------------------------------------------------------------

    def rows_of(self, topic: bytes, address: bytes, end: int, sequence: int) -> Rows:
        """The row of a partition of a topic that is deleted."""
        return {(DELETED, _key(topic, address)): [end, sequence, int(self._clock())]}

    def add(self, topic: bytes, address: bytes, sequence: int) -> None:
        """A leader's row has been committed."""
        self._led[topic, address] = sequence

    def forget_trimmed(self, partitions: Iterable[LogPartition]) -> None:
        """Delete the rows of native partitions that begin where their rows say; waits as a green thread."""
        rows: Rows = {}
        for stored in partitions:
            key = _key(stored.topic, stored.address)
            if key in self._table and 0 <= self.floor(stored) <= stored.first_offset:
                rows[DELETED, key] = None
        if rows:
            self._writer.put_and_wait(rows)

    @property
    def crowded(self) -> bool:
        """Whether there are more leaders' rows than are kept."""
        return len(self._led) > DELETED_KEPT

    def forget_old(self, pause: Callable[[], object]) -> int:
        """Delete the rows of leaders that no node has mentioned for DELETED_RETENTION, and those beyond
        DELETED_KEPT; how many.

        Calls ``pause`` now and then, waits as a green thread for its commits, and raises what the log raises.
        """
        now = int(self._clock())
        mentioned, self._mentioned = self._mentioned, set()
        known: list[_Known] = []
        rows: Rows = {}
        for count, (key, row) in enumerate(self._table.items()):
            names = _names(key)
            if names in self._led and self._log.find(*names) is None:
                at = row[2] if len(row) > 2 else now
                if len(row) < 3 or (names in mentioned and at < now - DELETED_RETENTION / 7):
                    at = now
                    rows[DELETED, key] = [*row[:2], now]
                known.append((names in mentioned, at, names))
            if not count % _ROWS:
                self._put(rows)
                pause()
        self._put(rows)
        surplus = len(self._led) - DELETED_KEPT
        due = [
            names
            for count, (_, at, names) in enumerate(_in_order(known))
            if count < surplus or at < now - DELETED_RETENTION
        ]
        for begin in range(0, len(due), _ROWS):
            some = due[begin : begin + _ROWS]
            self._put({(DELETED, _key(*names)): None for names in some})
            for names in some:
                self._led.pop(names, None)
            pause()
        return len(due)

    def _put(self, rows: Rows) -> None:
        if rows:
            self._writer.put_and_wait(dict(rows))
            rows.clear()


def _in_order(items: list[_Known]) -> Iterator[_Known]:
    """The items sorted. To sort a hundred thousand at once takes a tenth of a second."""
    pieces = [sorted(piece) for piece in in_pieces(Pace().over(items), _SORTED_AT_ONCE)]
    yield from Pace().over(merge(*pieces))


def _key(topic: bytes, address: bytes) -> str:
    return f"{address.decode('latin-1')}/{topic.decode('latin-1')}"


def _names(key: str) -> tuple[bytes, bytes]:
    address, _, name = key.rpartition("/")
    return name.encode("latin-1"), address.encode("latin-1")
