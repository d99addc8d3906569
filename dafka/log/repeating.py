"""Log lines that repeat: of each kind the first ones are written, the others counted for a minute.

A disk that is full fails every batch of every client: thousands of lines a second that say the same, and they
may go to that disk. Lines are of one kind if logger, level and message are the same, whatever the arguments.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

LINES = 10
"""Lines of one kind that are written."""

SECONDS = 60.0
"""Until further ones are."""

_kinds: dict[tuple[str, int, str], tuple[float, int]] = {}  # when its minute is over, and lines until now


def bounded_logger(name: str) -> logging.Logger:
    """The logger of a module whose lines may repeat."""
    logger = logging.getLogger(name)
    if not any(isinstance(known, Repeats) for known in logger.filters):
        logger.addFilter(Repeats())
    return logger


def forget_repeats() -> None:
    """Begin anew: whatever is logged next is the first of its kind."""
    _kinds.clear()


class Repeats(logging.Filter):
    """Keeps back what repeats too often, and says so in the last line before and the first one after."""

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
