"""The desk: what a function of the API is given to work with."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from gevent.lock import BoundedSemaphore

from dafka.broker.connecting import Connection
from dafka.console import limits
from dafka.console.errors import BusyError


class Bounds:
    """What all requests of a console share: how much may be under way. Made in the console's thread."""

    def __init__(self) -> None:
        self.reading = BoundedSemaphore(limits.READERS)
        self.streams = limits.STREAMS
        self.sampling = BoundedSemaphore(1)
        self.samples: dict[str | None, tuple[float, Any]] = {}  # the last one, by account


class Desk:
    """A broker as whoever asks may use it."""

    def __init__(self, connection: Connection, bounds: Bounds, *, writes: bool, user: str | None) -> None:
        self._connection = connection
        self._bounds = bounds
        self.writes = writes
        self.user = user

    @property
    def broker(self) -> Any:
        """The broker itself, for what only one of this process has. Its methods run in the hub."""
        return self._connection.broker

    @property
    def hub(self) -> Any:
        """The hub in which the broker's methods run."""
        return self._connection.hub

    def call(self, method: str, *args: Any, **kwargs: Any) -> Any:
        """Call a method of the broker's interface; other requests go on meanwhile."""
        return self._connection.call(method, *args, **kwargs)

    def sampled(self, take: Callable[[Desk], Any]) -> Any:
        """What ``take`` makes; all browsers of an account share one that is less than a second old."""
        bounds = self._bounds
        with bounds.sampling:
            taken, sample = bounds.samples.get(self.user, (0.0, None))
            if time.monotonic() - taken >= limits.SAMPLE_SECONDS:
                sample = take(self)
                if len(bounds.samples) >= limits.SESSIONS:
                    bounds.samples.clear()
                bounds.samples[self.user] = time.monotonic(), sample
            return sample

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Around reading a page of records: only so many are read at a time."""
        with self._bounds.reading:
            yield

    @contextmanager
    def streaming(self) -> Iterator[None]:
        """Around a stream. Raises BusyError if there are too many."""
        if not self._bounds.streams:
            raise BusyError(f"{limits.STREAMS} searches, downloads and followed topics are under way already")
        self._bounds.streams -= 1
        try:
            yield
        finally:
            self._bounds.streams += 1
