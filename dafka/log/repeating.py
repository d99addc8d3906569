"""Log lines that repeat: the first ones of each kind are written, the others are counted for a minute.

A full disk fails every batch of every client: thousands of equal lines a second, which may go to that same
disk. Lines are of one kind if logger, level and message are the same, whatever the arguments.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

LINES = 10
"""Lines of one kind that are written."""

SECONDS = 60.0
"""Time until more lines of one kind are written."""

_kinds: dict[tuple[str, int, str], tuple[float, int]] = {}  # when its minute is over, and lines until now


def bounded_logger(name: str) -> logging.Logger:
    """The logger of a module whose lines may repeat."""
    logger = logging.getLogger(name)
    if not any(isinstance(known, Repeats) for known in logger.filters):
        logger.addFilter(Repeats())
    return logger


def forget_repeats() -> None:
    """Forget the counts: the next line of each kind is its first."""
    _kinds.clear()


class Repeats(logging.Filter):
    """Drops lines that repeat too often; the last line before and the first one after say so."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock

    def filter(self, record: logging.LogRecord) -> bool:
        message = str(record.msg)
        kind = record.name, record.levelno, message
        now = self._clock()
        until, lines = _kinds.get(kind, (now, 0))
        if now >= until:
            if lines > LINES:
                record.msg = f"{message} ({lines - LINES} lines of this kind were left out before)"
            until, lines = now + SECONDS, 0
        lines += 1
        _kinds[kind] = until, lines
        if lines == LINES:
            record.msg = f"{message} (further lines of this kind are left out for {SECONDS:.0f} s at most)"
        return lines <= LINES
