"""Buffers of long requests that are used again: new memory costs more than what is received into it.

A buffer may be used again once nobody has a view of it: neither the request nor a batch that waits for its
round. Python tells, because it refuses to resize a ``bytearray`` until then.

The budget counts what has come of a request, and not the buffer that was there before. So a request is lent
none that is more than twice as long as itself, and requests that are still coming are lent at most
``SPARE_BYTES`` together: no client holds much memory by announcing a request, or by waiting for an answer.
"""

from __future__ import annotations

from collections import deque

from dafka.broker.server import limits


class SpareBuffers:
    """The buffers of the last long requests of a listener."""

    def __init__(self) -> None:
        self._buffers: deque[bytearray] = deque(maxlen=limits.SPARE_BUFFERS)
        self._lent = 0  # octets

    def take(self, size: int) -> bytearray:
        """A buffer for a request of ``size`` octets: an empty or a used one, whose length counts as lent."""
        longest = min(2 * size, limits.SPARE_BYTES - self._lent) if size >= limits.FIRST_CHUNK else 0
        for position, buffer in enumerate(self._buffers):
            if len(buffer) > longest:
                continue
            try:
                buffer.append(0)
            except BufferError:  # somebody has a view of it
                continue
            buffer.pop()
            del self._buffers[position]
            self._lent += len(buffer)
            return buffer
        return bytearray()

    def keep(self, buffer: bytearray, lent: int) -> None:
        """Take a buffer that its request needs no more, though others may have views of it. ``lent``: how
        long it was when the request got it."""
        self._lent -= lent
        if len(buffer) < limits.FIRST_CHUNK:
            return
        self._buffers.append(buffer)
        while sum(map(len, self._buffers)) > limits.SPARE_BYTES:
            self._buffers.popleft()
