"""A file descriptor that is readable while there is something to get."""

from __future__ import annotations

import os


class Signal:
    """For select, poll and asyncio. Its owner calls it with a lock held."""

    def __init__(self) -> None:
        self._reading, self._writing = os.pipe()
        self._raised = False
        os.set_blocking(self._reading, False)

    def fileno(self) -> int:
        return self._reading

    def set(self, raised: bool) -> None:
        """Make it readable, or not."""
        if raised == self._raised:
            return
        self._raised = raised
        if raised:
            os.write(self._writing, b"!")
        else:
            os.read(self._reading, 1)

    def close(self) -> None:
        os.close(self._reading)
        os.close(self._writing)
