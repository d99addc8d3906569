"""The thread in which a producer's callbacks run.

Callbacks are the program's own code: they take locks, put into full queues, sleep. In the hub that would
stop the broker and every client of the process, and a callback that waits for a lock held by a thread that
waits for the hub would never end. So, as in kafka-python, a producer has a thread of its own for them. It is
started with the first callback and ends after a while without callbacks.

Where no thread can be started (a limit of the machine, or the end of the interpreter in some releases of
Python), callbacks wait until one can, or until the exit runs them (:meth:`CallbackThread.run_here`).
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable

import gevent
from gevent import monkey

from dafka.hub.hub import Hub

log = logging.getLogger(__name__)

IDLE_SECONDS = 5.0
RETRY_SECONDS = 0.2  # after a thread could not be started

_start_new_thread = monkey.get_original("_thread", "start_new_thread")
_allocate_lock = monkey.get_original("_thread", "allocate_lock")
_get_ident = monkey.get_original("_thread", "get_ident")


class CallbackThread:
    """Runs jobs one after the other, in the order in which they come."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._jobs: deque[Callable[[], object]] = deque()
        self._lock = _allocate_lock()
        self._more = _allocate_lock()
        self._more.acquire()
        self._running = False
        self._retrying = False
        self._ident: int | None = None

    @property
    def here(self) -> bool:
        """Whether the calling code is a callback."""
        return self._ident is not None and _get_ident() == self._ident

    def run(self, job: Callable[[], object]) -> None:
        """Have ``job()`` called soon; from any thread."""
        with self._lock:
            self._jobs.append(job)
            if not self._running:
                self._start()
            elif self._more.locked():
                self._more.release()

    def run_here(self) -> None:
        """Run what waits for a thread that could not be started."""
        with self._lock:
            if self._running:
                return
            self._running = True
        self._ident = _get_ident()
        self._run_jobs()
        while not self._end():
            self._run_jobs()

    def _start(self) -> None:
        try:
            _start_new_thread(self._main, ())
        except RuntimeError as error:
            if not self._retrying:
                log.warning("the callbacks of a producer have to wait: %s", error)
                self._retrying = True
                self._hub.post(self._hub.spawn, self._retry)
        else:
            self._running = True

    def _retry(self) -> None:
        while self._retrying:
            gevent.sleep(RETRY_SECONDS)
            with self._lock:
                if self._jobs and not self._running:
                    self._start()
                self._retrying = bool(self._jobs) and not self._running

    def _main(self) -> None:
        self._ident = _get_ident()
        while True:
            self._run_jobs()
            if not self._more.acquire(timeout=IDLE_SECONDS) and self._end():
                return

    def _run_jobs(self) -> None:
        while self._jobs:
            try:
                self._jobs.popleft()()
            except BaseException:
                log.exception("the callbacks of a batch failed")

    def _end(self) -> bool:
        """Whether there is nothing more to do."""
        with self._lock:
            if self._jobs:
                return False
            self._running = False
            self._ident = None
            return True
