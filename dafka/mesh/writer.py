"""Write rounds: everything that arrived since the last commit goes into the next one.

A commit costs the same for one record and for ten thousand, so the writer never commits for a single
caller. Callers hand over messages and a function; a green thread takes all that is waiting, gives it to
the log as one transaction, and calls the functions after the commit, in the order of the hand-over.
While it commits, the next round gathers. The busier it gets, the larger the rounds.

A round that fails fails for everyone in it, and the log is as it was before the round.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import NamedTuple

import gevent
import gevent.event

from dafka.log import Log, LogClosedError, LogPartition
from dafka.mesh.hub import Hub

log_ = logging.getLogger(__name__)

Done = Callable[[Exception | None], None]

ROUND_BYTES = 16 * 1024 * 1024  # contents that one transaction takes at most
CHUNK_BYTES = 1024 * 1024  # contents that go into one stored value at most; reading costs whole values
CHUNK_MESSAGES = 65536


class _Append(NamedTuple):
    partition: LogPartition | None
    contents: list[bytes]
    values: Mapping[tuple[str, str], object]
    done: Done
    size: int


class Writer:
    """Commits appends and table values to one log, a round at a time. Hub side only."""

    def __init__(self, hub: Hub, log: Log) -> None:
        self.log = log
        self._waiting: list[_Append] = []
        self._wake = gevent.event.Event()
        self._closed = False
        self._listeners: list[Callable[[set[LogPartition]], None]] = []
        self._green = hub.spawn(self._rounds)

    def append(self, partition: LogPartition, contents: list[bytes], done: Done) -> None:
        """Have ``contents`` appended to ``partition``; ``done(error or None)`` follows the commit."""
        self._add(_Append(partition, contents, {}, done, sum(map(len, contents))))

    def put(self, values: Mapping[tuple[str, str], object], done: Done) -> None:
        """Have table values written (``{(table, key): value}``, None deletes) in the next round."""
        self._add(_Append(None, [], values, done, 0))

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
            append.done(LogClosedError(f"the log {self.log.path} is closed; nothing can be appended"))
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
        by_partition: dict[LogPartition, list[bytes]] = {}
        values: dict[tuple[str, str], object] = {}
        for append in appends:
            if append.partition is not None:
                contents = by_partition.get(append.partition)
                if contents is None:
                    by_partition[append.partition] = list(append.contents)
                else:
                    contents.extend(append.contents)
            values.update(append.values)
        chunks = [
            (partition, chunk)
            for partition, contents in by_partition.items()
            for chunk in _chunks(contents)
        ]
        error: Exception | None = None
        try:
            self.log.write(chunks, values)
        except Exception as failure:
            error = failure
        for append in appends:
            try:
                append.done(error)
            except Exception:
                log_.exception("a callback after a commit failed")
        if error is None and by_partition:
            grown = set(by_partition)
            for listener in self._listeners:
                listener(grown)


def _chunks(contents: list[bytes]) -> list[list[bytes]]:
    """Cut what one partition got in a round into values of about CHUNK_BYTES."""
    if len(contents) == 1:
        return [contents]
    chunks: list[list[bytes]] = []
    start = size = 0
    for position, content in enumerate(contents):
        if position > start and (size + len(content) > CHUNK_BYTES or position - start >= CHUNK_MESSAGES):
            chunks.append(contents[start:position])
            start, size = position, 0
        size += len(content)
    chunks.append(contents[start:])
    return chunks
