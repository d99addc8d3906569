"""Write rounds: everything that arrived since the last commit goes into the next one.

A commit costs the same for one record and for ten thousand, so the writer never commits for a single
caller. Callers hand over messages and a function; a green thread takes all that is waiting, gives it to
the log as one transaction, and calls the functions after the commit, in the order of the hand-over.
While it commits, the next round gathers. The busier it gets, the larger the rounds.

A round that fails fails for everyone in it, and the log is as it was before the round. So it is with errors
that nobody expects: they are logged with their traceback, and the writer goes on. Only where the log may not
show what is on the disk, because the error came after the commit, the writer stops: waiting items, and
everything that is handed over later, fail with :class:`WriterStoppedError`.

A transaction that syncs the disk or is large runs in a thread of gevent's pool, where it delays the round's
callers and nobody else: heads, beacons, fetches and timers go on. A small one takes 0.05 ms here and is
done at once, for the hop to the pool and back (0.025 ms idle, milliseconds when the process is busy) would
only make its callers wait longer.

Between rounds the writer tidies up, see :mod:`dafka.commit.tidying`.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from itertools import count
from types import MappingProxyType
from typing import Any

import gevent
import gevent.event
import gevent.threadpool

from dafka.commit.items import (
    CHUNK_BYTES,
    Done,
    Growth,
    Item,
    Number,
    Numbered,
    Numbering,
    Other,
    OutOfSequenceError,
    Rest,
    Run,
    WriterStoppedError,
)
from dafka.commit.tidying import Tidying
from dafka.hub.hub import Hub
from dafka.hub.limits import PACE_SECONDS
from dafka.hub.pool import run_in
from dafka.hub.turns import next_turn
from dafka.log import (
    AppendError,
    Compacted,
    Log,
    LogClosedError,
    LogError,
    LogPartition,
    LogWriteError,
    Rewrite,
    StaleRewriteError,
    TableValues,
    Trim,
    WriteRound,
    compact,
)
from dafka.log.repeating import bounded_logger

__all__ = ["Done", "Number", "Numbered", "OutOfSequenceError", "Writer", "WriterStoppedError"]

logger = bounded_logger(__name__)

ROUND_BYTES = 16 * 1024 * 1024  # at most in one transaction, by the weight of its items
ROUND_SECONDS = 0.005  # of processor time to put it together
TURN_ITEMS = 100  # of a round that is put together in a turn of its own
INLINE_BYTES = 256 * 1024  # a round up to this is committed in the hub itself,
INLINE_ROWS = 100  # unless it has more rows than this
_LOOKED = 16  # items of a round between two looks at the clock
_THREADS = 3  # a commit or a step of tidying up, a checkpoint, a step of compaction


class Writer:
    """Commits appends and table values to one log, a round at a time. Hub side only."""

    def __init__(self, hub: Hub, log: Log) -> None:
        self.log = log
        self._waiting: list[Item] = []
        self._run: Run | None = None  # the last item of them, if it can be continued
        self._syncs = log.durability == "power"
        # Threads of its own: a thread's connection to the database lives as long as the thread.
        self._pool = gevent.threadpool.ThreadPool(_THREADS)
        self._wake = gevent.event.Event()
        self._closed = False
        self._stopped: WriterStoppedError | None = None  # why nothing can be written any more
        self._tidying = Tidying(log, self._pool, self._wake.set)
        self._listeners: list[Callable[[set[LogPartition]], None]] = []
        self._turns = hub.turns
        self._green = hub.keep(self._rounds)

    @property
    def failure(self) -> WriterStoppedError | None:
        """Why nothing can be written any more; None while it can."""
        return self._stopped

    def append(
        self, partition: LogPartition, first: int, contents: list[bytes], done: Done, *, skip: bool = False
    ) -> None:
        """Have messages that carry their numbers appended; ``done(error or None)`` follows the commit.

        ``first`` is the first one's sequence. If the partition does not stand there when the round is put
        together, because an earlier round failed, ``done`` gets :class:`OutOfSequenceError`; with ``skip``
        it may stand below, and what lies between will never be there.
        """

        size = len(contents[0]) if len(contents) == 1 else sum(map(len, contents))
        run = self._run
        if (
            run is not None
            and run.next == first
            and run.partition is partition
            and run.size < CHUNK_BYTES
            and run.skip is skip
        ):
            run.parts.append(contents)
            run.dones.append(done)
            run.next += len(contents)
            run.size += size
            return
        run = Run(partition, first, contents, size, done, skip)
        if self._add(run):
            self._run = run

    def append_numbered(
        self,
        partition: LogPartition,
        number: Number,
        size: int,
        done: Done,
        values: TableValues = MappingProxyType({}),
    ) -> None:
        """Have record batches appended that get their numbers when the round is put together.

        They are to be whole and to have their checksums: the log compares them with these no more.
        ``number(sequence, offset)`` gets the partition's next sequence and offset. ``size`` is about how many
        octets the messages have. ``values`` are table values about the messages: they are looked at after
        ``number`` was called, and written in the same transaction as the messages or not at all.
        """
        self._add(Numbering(partition, number, size, done, values))

    def put(
        self,
        values: Mapping[tuple[str, str], object],
        done: Done,
        check: Callable[[], None] | None = None,
        behind: Collection[LogPartition] = (),
    ) -> None:
        """Have table values written (``{(table, key): value}``, None deletes) in the next round.

        ``check()`` is called when the round is put together, so what was handed over before and is in an
        earlier round has its outcome; if it raises, nothing is written and ``done`` gets that error. So it is
        if the same round cannot append to one of the partitions ``behind`` which the values come.
        """
        self._add(Other(done, values=values, check=check, behind=behind))

    def put_and_wait(
        self, values: Mapping[tuple[str, str], object], check: Callable[[], None] | None = None
    ) -> None:
        """:meth:`put`, and wait as a green thread for the commit; raises what the log or ``check`` raised."""
        _wait(lambda done: self.put(values, done, check))

    def trim(
        self, partition: LogPartition, done: Done, *, before_sequence: int = 0, before_offset: int = 0
    ) -> None:
        """Have the front of a partition dropped (:class:`dafka.log.Trim`) in the next round.

        Messages that are appended in the same round count as not there yet. ``done`` follows the commit;
        dropped messages leave the disk in later rounds.
        """
        trim = Trim(partition, before_sequence, before_offset)
        self._add(Other(done, trim=trim))

    def trim_and_wait(
        self, partition: LogPartition, *, before_sequence: int = 0, before_offset: int = 0
    ) -> None:
        """:meth:`trim`, and wait as a green thread for the commit."""
        _wait(partial(self.trim, partition, before_sequence=before_sequence, before_offset=before_offset))

    def drop(
        self,
        partitions: Sequence[LogPartition],
        done: Done,
        *,
        values: Mapping[tuple[str, str], object] | None = None,
    ) -> None:
        """Have partitions deleted for good, and table values written in the same transaction.

        Items handed over before are done before; appending afterwards fails with AppendError.
        """
        self._add(Other(done, values=values, drops=partitions))

    def drop_and_wait(
        self, *partitions: LogPartition, values: Mapping[tuple[str, str], object] | None = None
    ) -> None:
        """:meth:`drop`, and wait as a green thread for the commit."""
        _wait(lambda done: self.drop(partitions, done, values=values))

    def compact(self, partition: LogPartition, **options: Any) -> Compacted:
        """Compact a partition (:func:`dafka.log.compact`, which says the options); waits as a green thread.

        Reading and sorting out run in the pool, and each rewriting is a small round of its own.
        """
        done = Compacted()
        for step in self.compacting(partition, **options):
            done = step
            next_turn()
        return done

    def compacting(
        self, partition: LogPartition, *, allowed: Callable[[], bool] = lambda: True, **options: Any
    ) -> Iterator[Compacted]:
        """:meth:`compact` in its steps, between which the caller may pause or stop.

        ``allowed()`` is asked when a rewriting is put into its round, so none comes in a later round than
        what has forbidden it. The caller stops then.
        """
        write = partial(self._rewrite_and_wait, partition, allowed)
        return compact(self.log, partition, write=write, run=self._in_pool, **options)

    def _in_pool(self, function: Callable[..., Any], *arguments: Any) -> Any:
        return run_in(self._pool, function, *arguments)

    def _rewrite_and_wait(
        self,
        partition: LogPartition,
        allowed: Callable[[], bool],
        rewrites: Sequence[Rewrite],
        values: TableValues,
    ) -> None:
        def check() -> None:
            if partition.dropped or not allowed():
                raise StaleRewriteError(
                    self.log.path, f"{partition!r} was deleted, or is not compacted any more"
                )

        _wait(lambda done: self._add(Other(done, values=values, rewrites=rewrites, check=check)))

    def on_commit(self, listener: Callable[[set[LogPartition]], None]) -> None:
        """Call ``listener(partitions that grew)`` after every commit."""
        self._listeners.append(listener)

    def close(self) -> None:
        """Commit what is waiting and end; waits as a green thread."""
        self._closed = True
        self._wake.set()
        self._green.join()
        self._tidying.finish()
        self._pool.kill()

    def _add(self, item: Item) -> bool:
        self._run = None
        if self._stopped is not None:
            item.tell(self._stopped)
            return False
        if self._closed:
            path = self.log.path
            item.tell(LogClosedError(path, f"the log {path} is closed; nothing can be appended"))
            return False
        self._waiting.append(item)
        self._wake.set()
        return True

    def _rounds(self) -> None:
        while True:
            self._wake.clear()
            if self._waiting and self._turns.elapsed > PACE_SECONDS:
                next_turn()  # whoever waits for small rounds, one after the other, would never end this one
            if self._waiting:
                self._round(self._take())
            elif self._closed:
                return
            more = self._stopped is None and self._tidying.step()
            if self._waiting or (more and not self._closed):
                next_turn()
            elif not self._closed:
                self._wake.wait(None if self._stopped is not None else self._tidying.retry_after)

    def _take(self) -> list[Item]:
        waiting, size = self._waiting, 0
        for before, append in enumerate(waiting):
            size += append.weight
            full = size > ROUND_BYTES or append.stands_alone or waiting[before - 1].stands_alone
            if full and before:
                self._waiting = waiting[before:]
                return waiting[:before]
        self._waiting = []
        self._run = None
        return waiting

    def _round(self, items: list[Item]) -> None:
        left, taken = deque(items), list[Item]()
        try:
            growing, rest = self._put_together(left, taken)
            self._waiting[:0], left = left, deque()
            if len(taken) > TURN_ITEMS:  # to write them takes as long again
                next_turn()
            failed = self._commit(growing, taken, rest)
        except Exception as error:
            failure = self._unexpected(error)
            for item in (*taken, *left):
                item.tell(failure)
            return
        for item in taken:
            item.tell(item.failure(failed))
        grown = {partition for partition in growing if partition not in failed}
        is_late = len(grown) > _LOOKED and self._turns.elapsed > PACE_SECONDS
        if is_late or len(grown) > TURN_ITEMS:  # to wake who waits for them takes half as long as all of this
            next_turn()
        for listener in self._listeners if grown else ():
            try:
                listener(grown)
            except Exception:
                logger.exception("a listener to the commits of the log %s failed", self.log.path)

    def _put_together(self, left: deque[Item], taken: list[Item]) -> tuple[dict[LogPartition, Growth], Rest]:
        """Move what can be in the round from ``left`` to ``taken``; the others are told why they cannot.

        Items for which there is no time stay in ``left``, for the next round.
        """
        growing: dict[LogPartition, Growth] = {}
        rest = Rest([], [], [])
        ends = time.thread_time() + ROUND_SECONDS
        for looked in count():
            if not left or (looked and not looked % _LOOKED and time.thread_time() >= ends):
                break
            item = left[0]
            partition = item.partition
            try:
                if partition is None:
                    item.check()
                else:
                    growing[partition] = self._grown(growing.get(partition), partition, item)
            except Exception as failure:
                pieces = item.split()
                left.popleft()
                left.extendleft(reversed(pieces))
                if not pieces:
                    item.tell(failure)
                continue
            taken.append(left.popleft())
            if item.trim is not None:
                rest.trims.append(item.trim)
            rest.drops.extend(item.drops)
            rest.rewrites.extend(item.rewrites)
        return growing, rest

    def _unexpected(self, error: Exception) -> LogError:
        """An error that nobody expects, logged, and in a form that every caller can deal with."""
        path = self.log.path
        logger.error("writing to the log %s failed on something unexpected", path, exc_info=error)
        failure = LogWriteError(path, f"writing to the log {path} failed on something unexpected: {error!r}")
        failure.__cause__ = error
        return failure

    def _grown(self, growth: Growth | None, partition: LogPartition, item: Item) -> Growth:
        if partition.dropped:
            message = f"{partition!r} was deleted; nothing can be appended to it"
            raise AppendError(self.log.path, message, partition.topic, partition.address, 0)
        growth = growth or Growth(partition.next_sequence, partition.next_offset)
        growth.add(item.number, item.checked)
        return growth

    def _commit(
        self, growing: Mapping[LogPartition, Growth], taken: Sequence[Item], rest: Rest
    ) -> dict[LogPartition | None, Exception]:
        """Write a round; the errors by partition, and under None what became of the rest."""
        failed: dict[LogPartition | None, Exception] = {}
        if self._stopped is not None:
            return dict.fromkeys([None, *growing], self._stopped)
        while True:
            left = {partition: growth for partition, growth in growing.items() if partition not in failed}
            chunks = [chunk for partition, growth in left.items() for chunk in growth.chunks(partition)]
            values: dict[tuple[str, str], object] = {}
            for item in taken:  # in the order of the hand-over: the last one counts
                if item.values and item.failure(failed) is None:
                    values.update(item.values)
            try:
                checked = {partition for partition, growth in left.items() if growth.checked}
                self._write(chunks, values, rest, checked)
                return failed
            except AppendError as error:
                # The messages of one partition are not what it holds. The others must not suffer from it,
                # and stay together: all parts of a transaction are in one commit.
                wrong: list[LogPartition | None]
                wrong = [one for one in left if (one.topic, one.address) == (error.topic, error.address)]
                failed.update(dict.fromkeys(wrong or [None, *left], error))
                if not wrong:
                    return failed
            except Exception as error:
                failure = error if isinstance(error, LogError) else self._unexpected(error)
                return failed | dict.fromkeys([None, *left], failure)

    def _write(
        self,
        chunks: list[tuple[LogPartition, list[bytes], int]],
        values: TableValues,
        rest: Rest,
        checked: Collection[LogPartition],
    ) -> None:
        round_ = self.log.begin(
            chunks, values, trims=rest.trims, drops=rest.drops, rewrites=rest.rewrites, checked=checked
        )
        try:
            size = sum(sum(map(len, contents)) for _, contents, _ in chunks)
            size += sum(len(value) for value in values.values() if type(value) is bytes)  # others are small
            rows = len(chunks) + len(values)
            large = size > INLINE_BYTES or rows > INLINE_ROWS or rest.rewrites
            if self._syncs or self._tidying.copying or large:
                run_in(self._pool, round_.commit)
            else:
                round_.commit()
        finally:
            self._finish(round_)
        if rest.trims or rest.drops or rest.rewrites:
            self._tidying.freed()

    def _finish(self, round_: WriteRound) -> None:
        try:
            round_.finish()
        except Exception as error:
            path = self.log.path
            logger.critical("the log %s may not show what is on the disk", path, exc_info=error)
            self._stopped = WriterStoppedError(
                path,
                f"the log {path} may not show what is on the disk, because of something unexpected "
                f"({error!r}): nothing is written to it any more until it is opened again",
            )
            raise self._stopped from error


def _wait(hand_over: Callable[[Done], object]) -> None:
    outcome = gevent.event.AsyncResult()
    hand_over(lambda error: outcome.set(None) if error is None else outcome.set_exception(error))
    outcome.get()
