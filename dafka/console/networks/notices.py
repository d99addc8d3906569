"""Warnings of a broker of this process: lines of its log, and resources that are short now."""

from __future__ import annotations

import logging
import time
from typing import Any

from dafka.console import limits


class LogNotices(logging.Handler):
    """Keeps the last warnings and errors of this project's loggers while it is open. Any thread.

    In a program that has set up no logging they are written to standard error, as they are without it.
    """

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._kept: dict[tuple[str, str], dict[str, Any]] = {}  # the one that came last is the last

    def open(self) -> None:
        """Listen from now on."""
        logging.getLogger("dafka").addHandler(self)

    def close(self) -> None:
        logging.getLogger("dafka").removeHandler(self)
        super().close()

    def emit(self, record: logging.LogRecord) -> None:
        if logging.lastResort is not None and self._is_alone(record.name):
            logging.lastResort.handle(record)
        try:
            text = record.getMessage()[: limits.NOTICE]
        except Exception:  # a line with wrong arguments is told by the logger's own handlers
            return
        key = record.name, text
        known = self._kept.pop(key, None)  # a handler of logging is called by one thread at a time
        self._kept[key] = {
            "time": record.created,
            "level": record.levelname.lower(),
            "logger": record.name,
            "text": text,
            "times": 1 if known is None else known["times"] + 1,
        }
        while len(self._kept) > limits.NOTICES:
            del self._kept[next(iter(self._kept))]

    def _is_alone(self, name: str) -> bool:
        """Whether a line of this logger reaches no other handler, but for those of further consoles."""
        logger: logging.Logger | None = logging.getLogger(name)
        handlers: list[logging.Handler] = []
        while logger is not None:
            handlers += logger.handlers
            logger = logger.parent if logger.propagate else None
        return handlers[:1] == [self] and all(isinstance(one, LogNotices) for one in handlers)

    def rows(self) -> list[dict[str, Any]]:
        """The lines, the newest first."""
        # The hub logs, too: copying in one step needs no lock that would make it wait for a console.
        return list(self._kept.copy().values())[::-1]


def notice(text: str, level: str = "warning") -> dict[str, Any]:
    """Something that is so now, as a row."""
    return {"time": time.time(), "level": level, "logger": None, "text": text, "times": 1}
