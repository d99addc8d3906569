"""Trouble that lasts, in the log: a line when it begins, and one now and then while it goes on."""

from __future__ import annotations

import logging
import time

from dafka.broker.remote import limits


class Trouble:
    """One kind of trouble of one object, which comes again with each attempt until it is over."""

    def __init__(self, log: logging.Logger) -> None:
        self._log = log
        self._told_at: float | None = None

    def again(self, message: str, *details: object) -> None:
        """Log a warning, or a debug line if the last warning was a short time ago."""
        now = time.monotonic()
        rarely = self._told_at is not None and now - self._told_at < limits.TROUBLE_LOGGED
        if not rarely:
            self._told_at = now
        self._log.log(logging.DEBUG if rarely else logging.WARNING, message, *details)

    def over(self) -> None:
        """Warn at once when it comes again."""
        self._told_at = None
