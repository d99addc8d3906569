"""One look for all browsers that ask within a second: the network is asked as often for one as for many."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Generic, TypeVar

from gevent.lock import BoundedSemaphore

from dafka.console import limits

T = TypeVar("T")


class Shared(Generic[T]):
    """The last result of ``look()``, if that is less than limits.SAMPLE_SECONDS old. In one thread."""

    def __init__(self, look: Callable[[], T]) -> None:
        self._look = look
        self._looking = BoundedSemaphore(1)
        self._found: list[T] = []  # one or none
        self._when = 0.0

    def __call__(self) -> T:
        """Look, or wait for another thread that does."""
        with self._looking:
            if not self._found or time.monotonic() - self._when >= limits.SAMPLE_SECONDS:
                self._found = [self._look()]
                self._when = time.monotonic()
            return self._found[0]
