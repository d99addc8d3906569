"""Buffers of long requests that are used again: new memory costs more than what is received into it.

A buffer may be used again once nobody has a view of it: neither the request nor a batch that waits for its
round. Python tells, because it refuses to resize a ``bytearray`` until then.
"""

from __future__ import annotations

from collections import deque

from dafka.broker.server import limits


class SpareBuffers:
    """The buffers of the last long requests of a listener."""

    def __init__(self) -> None:
        self._buffers: deque[bytearray] = deque(maxlen=limits.SPARE_BUFFERS)

    def take(self) -> bytearray:
        """A buffer of some length that nobody else can see, or an empty one."""
        for position, buffer in enumerate(self._buffers):
            try:
                buffer.append(0)
            except BufferError:  # somebody has a view of it
                continue
            buffer.pop()
            del self._buffers[position]
            return buffer
        return bytearray()

    def keep(self, buffer: bytearray) -> None:
        """Take a buffer that its request needs no more, though others may have views of it."""
        self._buffers.append(buffer)
        while sum(map(len, self._buffers)) > limits.SPARE_BYTES:
            self._buffers.popleft()
