"""Appends that were handed to the writer and are not committed yet; produce waits while they are too many."""

from __future__ import annotations

from dafka.broker.limits import PENDING_BYTES, WIDE_PRODUCE
from dafka.hub.changes import Changes


class PendingAppends:
    """Counts the appends of all leaders that wait for their commit. Hub side."""

    def __init__(self) -> None:
        self.bytes = 0
        self.count = 0
        self._less = Changes()

    def add(self, size: int) -> None:
        """An append of ``size`` bytes has been handed to the writer."""
        self.bytes += size
        self.count += 1

    def settle(self, size: int) -> None:
        """An append of ``size`` bytes was committed, or failed."""
        self.bytes -= size
        self.count -= 1
        if self.bytes <= PENDING_BYTES and self.count <= WIDE_PRODUCE:
            self._less.tell()

    @property
    def too_large(self) -> bool:
        """Whether so many bytes are pending that further calls have to wait."""
        return self.bytes > PENDING_BYTES

    @property
    def too_many(self) -> bool:
        """Whether so many appends are pending that a call with many of them has to wait."""
        return self.count > WIDE_PRODUCE

    def wait_for_less(self) -> None:
        """Wait until neither :attr:`too_large` nor :attr:`too_many` holds, or a little longer."""
        self._less.wait()

    def drain(self) -> None:
        """Wait until nothing is pending."""
        while self.bytes:
            self.wait_for_less()
