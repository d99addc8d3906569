"""Write rounds: everything that arrived since the last commit goes into the next one.

A commit costs the same for one record and for ten thousand, so the writer never commits for a single
caller. Callers hand over messages and a function; a green thread takes all that is waiting, gives it to
the log as one transaction, and calls the functions after the commit, in the order of the hand-over.
While it commits, the next round gathers. The busier it gets, the larger the rounds.

A round that fails fails for everyone in it, and the log is as it was before the round.

A transaction that syncs the disk or is large runs in a thread of gevent's pool, where it delays the round's
callers and nobody else: heads, beacons, fetches and timers go on. A small one takes 0.05 ms here and is
done at once, for the hop to the pool and back (0.025 ms idle, milliseconds when the process is busy) would
only make its callers wait longer.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import NamedTuple

import gevent
import gevent.event

from dafka.log import AppendError, Log, LogClosedError, LogPartition
from dafka.mesh.hub import Hub
from dafka.protocol.errors import DafkaError

logger = logging.getLogger(__name__)

Done = Callable[[Exception | None], None]

ROUND_BYTES = 16 * 1024 * 1024  # contents that one transaction takes at most
CHUNK_BYTES = 1024 * 1024  # contents that go into one stored value at most; reading costs whole values
CHUNK_MESSAGES = 65536
INLINE_BYTES = 256 * 1024  # a round up to this is committed in the hub itself


class Numbered(NamedTuple):
    """Messages with their place: the first one's sequence, the contents, and the offset behind the last."""

    first: int
    contents: list[bytes]
    next_offset: int


Number = Callable[[int, int], Numbered]


class OutOfSequenceError(DafkaError):
    """Messages that do not continue their partition."""


class _Append(NamedTuple):
    partition: LogPartition | None
    number: Number
    values: Mapping[tuple[str, str], object]
    done: Done
    size: int


class Writer:
    """Commits appends and table values to one log, a round at a time. Hub side only."""

    def __init__(self, hub: Hub, log: Log) -> None:
        self.log = log
        self._waiting: list[_Append] = []
        self._syncs = log.durability == "power"
        self._pool = gevent.get_hub().threadpool
        self._wake = gevent.event.Event()
        self._closed = False
        self._listeners: list[Callable[[set[LogPartition]], None]] = []
        self._green = hub.spawn(self._rounds)

    def append(
        self, partition: LogPartition, first: int, contents: list[bytes], done: Done, *, skip: bool = False
    ) -> None:
        """Have messages that carry their numbers appended; ``done(error or None)`` follows the commit.

        ``first`` is the first one's sequence. If the partition does not stand there when the round is put
        together, because an earlier round failed, ``done`` gets :class:`OutOfSequenceError`; with ``skip``
        it may stand below, and what lies between will never be there.
        """

        def number(sequence: int, offset: int) -> Numbered:
            if sequence > first or (sequence < first and not skip):
                raise OutOfSequenceError(
                    f"messages from {first} on cannot be appended to {partition!r}, "
                    f"which stands at {sequence}"
                )
            return Numbered(first, contents, offset)

        self._add(_Append(partition, number, {}, done, sum(map(len, contents))))

    def append_numbered(self, partition: LogPartition, number: Number, size: int, done: Done) -> None:
        """Have messages appended that get their numbers when the round is put together.

        ``number(sequence, offset)`` gets the partition's next sequence and offset. ``size`` is about how many
        octets the messages have.
        """
        self._add(_Append(partition, number, {}, done, size))

    def put(self, values: Mapping[tuple[str, str], object], done: Done) -> None:
        """Have table values written (``{(table, key): value}``, None deletes) in the next round."""
        self._add(_Append(None, _nothing, values, done, 0))

    def put_and_wait(self, values: Mapping[tuple[str, str], object]) -> None:
        """:meth:`put`, and wait as a green thread for the commit; raises what the log raised."""
        outcome = gevent.event.AsyncResult()
        self.put(values, lambda error: outcome.set(None) if error is None else outcome.set_exception(error))
        outcome.get()

    def on_commit(self, listener: Callable[[set[LogPartition]], None]) -> None:
        """Call ``listener(partitions that grew)`` after every commit."""
        self._listeners.append(listener)

    def close(self) -> None:
        """Commit what is waiting and end; waits as a green thread."""
        self._closed = True
        self._wake.set()
        self._green.join()

    def _add(self, append: _Append) -> None:
        if self._closed:
            path = self.log.path
            append.done(LogClosedError(path, f"the log {path} is closed; nothing can be appended"))
            return
        self._waiting.append(append)
        self._wake.set()

    def _rounds(self) -> None:
        while True:
            while self._waiting:
                self._round(self._take())
                gevent.sleep(0)
            if self._closed:
                return
            self._wake.clear()
            self._wake.wait()

    def _take(self) -> list[_Append]:
        waiting, size = self._waiting, 0
        for count, append in enumerate(waiting):
            size += append.size
            if size > ROUND_BYTES and count:
                self._waiting = waiting[count:]
                return waiting[:count]
        self._waiting = []
        return waiting

    def _round(self, appends: list[_Append]) -> None:
        growing: dict[LogPartition, _Growth] = {}
        values: dict[tuple[str, str], object] = {}
        taken: list[_Append] = []
        for append in appends:
            if append.partition is not None:
                growth = growing.get(append.partition)
                if growth is None:
                    growth = _Growth(append.partition.next_sequence, append.partition.next_offset)
                try:
                    growth.add(append.number)
                except Exception as failure:
                    self._tell(append, failure)
                    continue
                growing[append.partition] = growth
            values.update(append.values)
            taken.append(append)
        failed = self._commit(growing, values)
        for append in taken:
            self._tell(append, failed.get(append.partition))
        grown = {partition for partition in growing if partition not in failed}
        if grown:
            for listener in self._listeners:
                listener(grown)

    def _commit(
        self, growing: Mapping[LogPartition, _Growth], values: Mapping[tuple[str, str], object]
    ) -> dict[LogPartition | None, Exception]:
        """Write a round; the errors by partition, and under None what became of the table values."""
        chunks = {partition: growth.chunks(partition) for partition, growth in growing.items()}
        try:
            self._write([chunk for part in chunks.values() for chunk in part], values)
        except AppendError as error:
            if len(growing) <= 1 and not values:
                return dict.fromkeys(growing, error)
            # The messages of one partition are not what it holds. The others must not suffer from it.
            failed: dict[LogPartition | None, Exception] = {}
            for partition, growth in growing.items():
                failed.update(self._commit({partition: growth}, {}))
            return failed | (self._commit({}, values) if values else {})
        except Exception as error:
            return dict.fromkeys([None, *growing], error)
        return {}

    def _write(
        self,
        chunks: list[tuple[LogPartition, list[bytes], int]],
        values: Mapping[tuple[str, str], object],
    ) -> None:
        round_ = self.log.begin(chunks, values)
        try:
            size = sum(len(content) for _, contents, _ in chunks for content in contents)
            if self._syncs or size > INLINE_BYTES:
                self._pool.apply(round_.commit)
            else:
                round_.commit()
        finally:
            round_.finish()

    @staticmethod
    def _tell(append: _Append, error: Exception | None) -> None:
        try:
            append.done(error)
        except Exception:
            logger.exception("a callback after a commit failed")


class _Growth:
    """What one partition gets in a round, and where it stands behind that."""

    __slots__ = ("offset", "segments", "sequence")

    def __init__(self, sequence: int, offset: int) -> None:
        self.segments: list[tuple[int, list[bytes]]] = []
        self.sequence = sequence
        self.offset = offset

    def add(self, number: Number) -> None:
        first, contents, self.offset = number(self.sequence, self.offset)
        if self.segments and first == self.sequence:
            self.segments[-1][1].extend(contents)
        else:
            self.segments.append((first, list(contents)))
        self.sequence = first + len(contents)

    def chunks(self, partition: LogPartition) -> list[tuple[LogPartition, list[bytes], int]]:
        """What the log is to write, in values of about CHUNK_BYTES."""
        return [
            (partition, contents[start:end], first + start)
            for first, contents in self.segments
            for start, end in _cuts(contents)
        ]


def _nothing(sequence: int, offset: int) -> Numbered:
    return Numbered(sequence, [], offset)


def _cuts(contents: list[bytes]) -> list[tuple[int, int]]:
    cuts: list[tuple[int, int]] = []
    start = size = 0
    for position, content in enumerate(contents):
        if position > start and (size + len(content) > CHUNK_BYTES or position - start >= CHUNK_MESSAGES):
            cuts.append((start, position))
            start, size = position, 0
        size += len(content)
    cuts.append((start, len(contents)))
    return cuts
