"""The thread in which a producer's callbacks run.

Callbacks are the program's own code: they take locks, put into full queues, sleep. In the hub that would
stop the broker and every client of the process, and a callback that waits for a lock held by a thread that
waits for the hub would never end. So, as in kafka-python, a producer has a thread of its own for them. It is
started with the first callback and ends when there has been none for a while.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable

from gevent import monkey

log = logging.getLogger(__name__)

IDLE_SECONDS = 5.0

_start_new_thread = monkey.get_original("_thread", "start_new_thread")
_allocate_lock = monkey.get_original("_thread", "allocate_lock")
_get_ident = monkey.get_original("_thread", "get_ident")


class CallbackThread:
    """Runs jobs one after the other, in the order in which they come."""

    def __init__(self) -> None:
        self._jobs: deque[Callable[[], object]] = deque()
        self._lock = _allocate_lock()
        self._more = _allocate_lock()
        self._more.acquire()
        self._running = False
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
                self._running = True
                _start_new_thread(self._main, ())
            elif self._more.locked():
                self._more.release()

    def _main(self) -> None:
        self._ident = _get_ident()
        while True:
            while self._jobs:
                try:
                    self._jobs.popleft()()
                except BaseException:
                    log.exception("the callbacks of a batch failed")
            if self._more.acquire(timeout=IDLE_SECONDS):
                continue
            with self._lock:
                if not self._jobs:
                    self._running = False
                    self._ident = None
                    return
