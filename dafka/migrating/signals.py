"""Signals of a migration: Ctrl-C and SIGTERM end it, SIGUSR1 ends the following."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class Interrupted(Exception):
    """Ctrl-C or SIGTERM: the copied records are noted."""


class Signals:
    """Ctrl-C and SIGTERM end the copy after the batches under way, and all else at once; SIGUSR1 ends the
    following."""

    def __init__(self) -> None:
        self.interrupted = False
        self._copying = False
        self._stop: Callable[[], object] = lambda: None
        self._switch: Callable[[], object] = lambda: None

    @contextmanager
    def copying(self) -> Iterator[None]:
        self._copying = True
        try:
            yield
        finally:
            self._copying = False

    def then(self, stop: Callable[[], object]) -> None:
        self._stop = stop
        if self.interrupted:
            stop()

    def on_switch(self, switch: Callable[[], object]) -> None:
        self._switch = switch

    def __enter__(self) -> Signals:
        self._before = {
            number: signal.signal(number, self._received)
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)
        }
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _received(self, number: int, frame: object) -> None:
        if number == signal.SIGUSR1:
            self._switch()
        elif self.interrupted or not self._copying:
            self.interrupted = True
            raise Interrupted
        else:
            self.interrupted = True
            self._stop()
