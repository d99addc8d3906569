"""Maintenance of a writer's log between rounds, a small step at a time and in the pool.

It copies the WAL into the database (while rounds go on; only what they write meanwhile is copied with the
rounds waiting), deletes the values of trimmed and deleted partitions, and gives free space back to the file
system. Files of deleted values go when the WAL was copied; that is done for them a second after the last
deletion at the latest. Files that a killed process has left are looked for in small steps with rests.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import gevent
import gevent.threadpool

from dafka.hub.pool import run_in
from dafka.log import Log, LogError
from dafka.log.limits import COLLECT_BYTES, FREE_BYTES, WAL_BYTES
from dafka.log.repeating import bounded_logger

logger = bounded_logger(__name__)

REST = 1.0  # seconds without tidying up after a step of it failed
SWEEP_REST = 0.01  # seconds between two steps of looking for files that nobody names
FILES_STAY = 1.0  # seconds that files of deleted values wait for a checkpoint, when nothing else wants one


class Tidying:
    """The tidying of ``log``; ``wake`` has the writer come back when a checkpoint has ended."""

    def __init__(self, log: Log, pool: gevent.threadpool.ThreadPool, wake: Callable[[], None]) -> None:
        self._log = log
        self._pool = pool
        self._wake = wake
        self._checkpoint: gevent.Greenlet | None = None
        self._vacuum = True  # whether there may be free space to give back
        self._rest_until = 0.0
        self._freed = 0.0  # when values were deleted last
        self._swept = 0.0  # when the last step of looking for files has ended

    @property
    def copying(self) -> bool:
        """Whether a checkpoint is under way: writing to a file that is being synced waits for the sync."""
        return self._checkpoint is not None

    @property
    def retry_after(self) -> float | None:
        """Seconds after which to come back though nothing happens, None: not before something does."""
        if self._rest_until:
            return REST
        if self._log.space.sweeps:
            return SWEEP_REST
        return FILES_STAY if self._log.space.removable_bytes and not self.copying else None

    def freed(self) -> None:
        """A round has left space that nothing holds."""
        self._vacuum = True
        self._freed = time.monotonic()

    def step(self) -> bool:
        """One step of what needs doing; whether there is more."""
        if self._rest_until:
            if self._rest_until > time.monotonic():
                return False
            self._rest_until = 0.0
        try:
            return self._step()
        except Exception as error:
            self._failed("tidying up", error)
            self._rest_until = time.monotonic() + REST
            return False

    def finish(self) -> None:
        """The last round is done: leave a small folder behind; waits as a green thread."""
        if self._checkpoint is not None:
            self._checkpoint.join()
        if self._log.space.wal_file_bytes > FREE_BYTES or self._log.space.removable_bytes:
            try:
                run_in(self._pool, self._log.space.checkpoint, truncate=True)
            except Exception as error:
                self._failed("a checkpoint of", error)

    def _step(self) -> bool:
        log, running = self._log, self._checkpoint
        if running is not None and (running.ready() or log.space.wal_bytes > WAL_BYTES):
            self._checkpoint = None
            running.join()
            run_in(self._pool, log.space.checkpoint)  # the rounds of meanwhile: short, rounds wait for it
        elif running is None and (log.space.checkpoint_due or self._files_wait()):
            self._checkpoint = gevent.spawn(self._copy)
        if self._checkpoint is not None:
            return False  # writes of now would be copied with the rounds waiting; it ends soon
        if log.space.garbage_bytes:
            round_ = log.begin([], collect_bytes=COLLECT_BYTES)
            try:
                run_in(self._pool, round_.commit)
            finally:
                round_.finish()
            self._freed = time.monotonic()
            return True
        self._vacuum = self._vacuum and log.space.spare_bytes > 0
        if self._vacuum:
            run_in(self._pool, log.space.vacuum)
        elif log.space.sweeps and time.monotonic() >= self._swept + SWEEP_REST:
            run_in(self._pool, log.space.sweep)
            self._swept = time.monotonic()
        return self._vacuum

    def _files_wait(self) -> bool:
        """Whether there are files of deleted values, and no more are to come for now."""
        space = self._log.space
        if not space.removable_bytes or space.garbage_bytes:
            return False
        return time.monotonic() - self._freed >= FILES_STAY

    def _copy(self) -> None:
        try:
            run_in(self._pool, self._log.space.checkpoint)
        except Exception as error:
            self._failed("a checkpoint of", error)
        finally:
            self._wake()

    def _failed(self, what: str, error: Exception) -> None:
        if isinstance(error, LogError):
            logger.warning("%s the log %s failed: %s", what, self._log.path, error)
        else:
            logger.error("%s the log %s failed unexpectedly", what, self._log.path, exc_info=error)
