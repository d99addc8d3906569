"""Retention and compaction on a schedule: how a store and a broker delete records.

Two green threads go through the partitions, one for retention and one for compaction, which takes longer.
They start anew each ``interval``, or soon after :meth:`Cleaner.wake`. Everything is done in small rounds of
the writer, so producers do not wait longer for them than for each other.

Records go in whole stored values of up to about a megabyte, from the front, as Kafka's segments do; see
:meth:`dafka.log.LogPartition.sequence_for_retention`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import NamedTuple

import gevent
import gevent.event

from dafka.commit.writer import Writer
from dafka.hub.hub import Hub
from dafka.hub.turns import Pace, next_turn
from dafka.log import (
    Compacted,
    Log,
    LogClosedError,
    LogError,
    LogPartition,
    dirty_bytes,
    dirty_since,
    tombstones_due,
)
from dafka.log.repeating import bounded_logger

logger = bounded_logger(__name__)

CHECK_INTERVAL = 300.0
"""Seconds between two looks at all partitions, by default (log.retention.check.interval.ms)."""

_VALUES = 1000  # stored values that one round lets go of at most


class Retention(NamedTuple):
    """How long records are kept and how many: ``ms`` milliseconds since their timestamp, ``bytes`` of stored
    values in each partition; -1: unlimited."""

    ms: int = -1
    bytes: int = -1


LARGEST_BOUND = 2**63 - 1
"""Of milliseconds and bytes."""

NO_RETENTION = Retention()
"""Everything is kept."""


class Compaction(NamedTuple):
    """When and how a partition is compacted, by the names of Kafka's settings. ``end_offset``: records from
    there on are not touched (None: all may be). ``aborted`` as for :func:`dafka.log.compact`."""

    delete_retention_ms: int
    min_lag_ms: int
    max_lag_ms: int
    min_dirty_ratio: float
    end_offset: int | None = None
    aborted: Callable[[int, int], Sequence[tuple[int, int, int]]] | None = None


class Rules(NamedTuple):
    """The retention and the compaction of a partition."""

    retention: Retention = NO_RETENTION
    compaction: Compaction | None = None


Work = Callable[[LogPartition, Rules], int]
"""Carries out the rules for a partition; returns how much it deleted."""


def check_retention(ms: object, bytes: object) -> Retention:
    """Bounds as a user gives them, None or -1: unlimited. Raises ValueError that names an invalid one."""
    for name, value in (("retention_ms", ms), ("retention_bytes", bytes)):
        if value is not None and (type(value) is not int or not -1 <= value <= LARGEST_BOUND):
            raise ValueError(
                f"{name} is a whole number from 0 to {LARGEST_BOUND}, or None or -1 for no bound, "
                f"not {value!r}"
            )
    return Retention(*(-1 if value is None else int(value) for value in (ms, bytes)))  # type: ignore[call-overload]


def check_choice(name: str, value: object, choices: Sequence[str]) -> None:
    """Raise ValueError, naming the option, if ``value`` is not one of the choices."""
    if value not in choices:
        raise ValueError(f"{name} is {' or '.join(map(repr, choices))}, not {value!r}")


def check_interval(interval: object) -> float:
    """Seconds between two checks as a user gives them. Raises ValueError."""
    if type(interval) not in (int, float) or not 0 < interval <= 1e9:  # type: ignore[operator]
        raise ValueError(f"retention_check_interval is a number of seconds above 0, not {interval!r}")
    return float(interval)  # type: ignore[arg-type]


def _unnoticed(partition: LogPartition, offset: int) -> AbstractContextManager[object]:
    return nullcontext()


class Cleaner:
    """Carries out ``rules(partition)`` (None: nothing) on the partitions of a log. Hub side.

    ``trimmed(partition)`` is called after each time that a partition's beginning has moved, and
    ``trimming(partition, offset)`` is around the deletion of the records below an offset.
    """

    def __init__(
        self,
        hub: Hub,
        log: Log,
        writer: Writer,
        rules: Callable[[LogPartition], Rules | None],
        trimmed: Callable[[LogPartition], None],
        interval: float = CHECK_INTERVAL,
        trimming: Callable[[LogPartition, int], AbstractContextManager[object]] = _unnoticed,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._log = log
        self._writer = writer
        self._rules = rules
        self._trimmed = trimmed
        self._interval = interval
        self._trimming = trimming
        self._clock = clock
        self._closed = False
        self._wakes = [gevent.event.Event(), gevent.event.Event()]
        self._waiting: list[list[gevent.event.Event]] = [[], []]  # for the next pass
        works = (self._retain, self._compact)
        self._greens = [
            hub.keep(self._run, *one) for one in zip(self._wakes, self._waiting, works, strict=True)
        ]

    def wake(self) -> None:
        """Look at all partitions soon."""
        for wake in self._wakes:
            wake.set()

    def look(self) -> None:
        """Look at all partitions now; waits as a green thread until that is done."""
        looks = [gevent.event.Event(), gevent.event.Event()]
        for waiting, look in zip(self._waiting, looks, strict=True):
            waiting.append(look)
        self.wake()
        gevent.wait([*looks, *self._greens], count=len(looks))

    def close(self) -> None:
        """End after the step that is under way; waits as a green thread. The writer must still run."""
        self._closed = True
        self.wake()
        gevent.joinall(self._greens)

    def _run(self, wake: gevent.event.Event, waiting: list[gevent.event.Event], work: Work) -> None:
        while not self._closed:
            wake.clear()
            told, waiting[:] = waiting[:], []
            try:
                self._pass(work)
            except LogClosedError:
                return
            finally:
                for look in told:
                    look.set()
            wake.wait(self._interval)

    def _pass(self, work: Work) -> None:
        gone = partitions = 0
        for partition in Pace().over(self._log.each_partition()):
            if self._closed:
                break
            rules = None if partition.dropped else self._rules(partition)
            if rules is not None:
                try:
                    went = work(partition, rules)
                    gone, partitions = gone + went, partitions + (went > 0)
                except LogClosedError:
                    raise
                except LogError as error:
                    logger.warning("cleaning %r failed: %s", partition, error)
                except Exception:  # the content of one partition must not end the cleaning of all others
                    logger.exception("cleaning %r failed", partition)
        if gone:  # a line for each partition would be thousands, and most of them of small ones
            what = (
                "retention removed %d messages" if work == self._retain else "compaction removed %d records"
            )
            logger.info(f"{what} from %d partitions of the log %s", gone, partitions, self._log.path)

    def _retain(self, partition: LogPartition, rules: Rules) -> int:
        """Let go of what is too old or too much; the number of messages."""
        ms, size = rules.retention
        oldest = None if ms < 0 else int(self._clock() * 1000) - ms
        keep = None if size < 0 else size
        gone = 0
        while not self._closed and not partition.dropped:
            wanted = partition.sequence_for_retention(
                older_than_ms=oldest, keep_bytes=keep, max_values=_VALUES
            )
            if wanted <= partition.first_sequence:
                break
            logger.debug("retention lets go of %r below sequence %d", partition, wanted)
            gone += wanted - partition.first_sequence
            with self._trimming(partition, partition.offset_behind(wanted)):
                self._writer.trim_and_wait(partition, before_sequence=wanted)
            self._trimmed(partition)
        return gone

    def _compact(self, partition: LogPartition, rules: Rules) -> int:
        """Compact a partition if that is due; the number of records left out."""
        how = rules.compaction
        if how is None or not self._is_due(partition, how):
            return 0
        steps = self._writer.compacting(
            partition,
            delete_retention_ms=how.delete_retention_ms,
            min_lag_ms=how.min_lag_ms,
            end_offset=how.end_offset,
            aborted=how.aborted,
            now_ms=int(self._clock() * 1000),
            allowed=partial(self._may_compact, partition),
        )
        done = Compacted()
        for step in steps:
            done = step
            if self._closed or not self._may_compact(partition):
                break
            next_turn()
        if done.records:
            logger.debug(
                "compaction left %d records out of %r, %d bytes", done.records, partition, done.bytes
            )
        return done.records

    def _may_compact(self, partition: LogPartition) -> bool:
        rules = self._rules(partition)
        return rules is not None and rules.compaction is not None

    def _is_due(self, partition: LogPartition, how: Compaction) -> bool:
        now = int(self._clock() * 1000)
        min_lag, end = how.min_lag_ms, how.end_offset
        dirty, total = dirty_bytes(self._log, partition, min_lag_ms=min_lag, end_offset=end, now_ms=now)
        if not dirty:
            return tombstones_due(self._log, partition, how.delete_retention_ms, now)
        if dirty >= how.min_dirty_ratio * total:
            return True
        since = dirty_since(self._log, partition, min_lag_ms=min_lag, end_offset=end, now_ms=now)
        return since is not None and 0 <= since < now - how.max_lag_ms


def trim_in_steps(writer: Writer, partition: LogPartition, offset: int) -> None:
    """Have the records below ``offset`` dropped, some stored values a round; waits as a green thread."""
    while partition.first_offset < offset and not partition.dropped:
        index = partition.index
        step = index[_VALUES].base_offset if len(index) > _VALUES else offset
        before = partition.first_offset
        writer.trim_and_wait(partition, before_offset=min(step, offset))
        if partition.first_offset == before:
            return
