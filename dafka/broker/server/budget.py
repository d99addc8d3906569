"""The memory that all connections of a listener share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import gevent.event

from dafka.broker.server import limits

SMALLEST_SHARE = 64 * 1024  # what a Fetch gets when there is no room left; one batch comes all the same


class Budget:
    """The bytes that all connections together hold."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.used = 0
        self._room = gevent.event.Event()

    def take(self, size: int) -> None:
        """Count bytes that are held from now on."""
        self.used += size

    def give(self, size: int) -> None:
        """... and no longer."""
        self.used -= size
        self._room.set()

    def wait(self, held: int) -> None:
        """Wait until the others leave room for more; ``held`` is what the caller has itself."""
        while self.used - held >= self.limit:
            self._room.clear()
            self._room.wait()

    @contextmanager
    def promised(self) -> Iterator[int]:
        """How much one response may have: never nothing, or slow readers would stop the fast ones.

        It counts as held for the ``with`` block, so that what others are promised meanwhile is less.
        """
        share = min(max((self.limit - self.used) // 4, SMALLEST_SHARE), limits.RESPONSE_MAX_BYTES)
        self.take(share)
        try:
            yield share
        finally:
            self.give(share)
