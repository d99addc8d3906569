"""The memory budget that all connections of a listener share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from dafka.broker.server import limits
from dafka.hub.changes import Changes

SMALLEST_SHARE = 64 * 1024  # granted to a Fetch even if the budget is used up


class Budget:
    """Counts the bytes that all connections hold."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.used = 0
        self._room = Changes()

    def take(self, size: int) -> None:
        """Count bytes as held."""
        self.used += size

    def give(self, size: int) -> None:
        """Count bytes as released."""
        self.used -= size
        self._room.tell()

    def wait(self, held: int) -> None:
        """Wait until the other connections leave room; ``held`` are the bytes of the caller itself."""
        while self.used - held >= self.limit:
            self._room.wait()

    @contextmanager
    def promised(self) -> Iterator[int]:
        """The bytes that one response may have, at least SMALLEST_SHARE: slow readers must not stop others.

        They count as held during the ``with`` block, so other responses are granted less meanwhile.
        """
        share = min(max((self.limit - self.used) // 4, SMALLEST_SHARE), limits.RESPONSE_MAX_BYTES)
        self.take(share)
        try:
            yield share
        finally:
            self.give(share)
