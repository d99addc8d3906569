"""How much queues hold together, where several of them hold the same octets."""

from __future__ import annotations

from collections.abc import Callable, Iterable

_STEP = 16 * 1024 * 1024
"""Octets; a total that has changed by more is looked at anew."""


class CountedOnce:
    """``buffers()`` are those of all queues. The same object in several of them takes its memory once.

    They are gone through only where the plain total is beyond a bound.
    """

    def __init__(self, buffers: Callable[[], Iterable[bytes | memoryview]]) -> None:
        self._buffers = buffers
        self._looked_at = 0  # the total at the last look
        self._saved = 0  # octets of it that are counted more than once

    def exceeds(self, total: int, most: int) -> bool:
        """Whether buffers that make up ``total`` octets, each queue counted by itself, hold more than
        ``most``."""
        if total <= most:
            return False
        if abs(total - self._looked_at) > min(_STEP, most // 16):
            self._looked_at = total
            self._saved = self._twice()
        return total - self._saved > most

    def _twice(self) -> int:
        seen: set[int] = set()
        twice = 0
        for buffer in self._buffers():
            owner = buffer.obj if isinstance(buffer, memoryview) else buffer
            if id(owner) in seen:
                twice += len(buffer)
            else:
                seen.add(id(owner))
        return twice
