"""Connections whose handshake is under way: bounded in number and in time, for all peers together."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Generic, Protocol, TypeVar

import gevent

from dafka.hub.turns import Pace

C = TypeVar("C")


class Limits(Protocol):
    """The module that has the bounds; they are read when they are needed."""

    HANDSHAKES: int
    HANDSHAKE_LEAST_SECONDS: float
    HANDSHAKE_SECONDS: float


class Greetings(Generic[C]):
    """Connections that are not established, the oldest first. Hub side.

    A further one waits for one of them if there are many, and ends the oldest (cause ``handshakes``) if that
    has had its time: an honest client finishes within HANDSHAKE_LEAST_SECONDS, however many others stall.

    ``end(connection, cause, detail)`` closes one; ``awaited`` is what it has not sent, in words.
    """

    def __init__(
        self, limits: Limits, end: Callable[[C, str, str], object], awaited: str = "handshake"
    ) -> None:
        self._limits = limits
        self._end = end
        self._awaited = awaited
        self._began: dict[C, float] = {}

    def __len__(self) -> int:
        return len(self._began)

    def __iter__(self) -> Iterator[C]:
        return iter(self._began)

    def add(self, connection: C) -> None:
        """One that was accepted now."""
        self._began[connection] = time.monotonic()

    def remove(self, connection: C) -> None:
        """It is established, or closed."""
        self._began.pop(connection, None)

    def make_room(self) -> None:
        """Wait until there is room for one more, and make it. For the green thread that accepts."""
        while len(self._began) >= self._limits.HANDSHAKES:
            oldest, began = next(iter(self._began.items()))
            if time.monotonic() - began < self._limits.HANDSHAKE_LEAST_SECONDS:
                gevent.sleep(0.005)
                continue
            del self._began[oldest]
            others = f"as of {self._limits.HANDSHAKES} other connections"
            self._end(oldest, "handshakes", f"no {self._awaited} yet, {others}")

    def end_late(self) -> None:
        """End those that take too long (cause ``handshake-slow``)."""
        now = time.monotonic()
        for connection, began in Pace().over(list(self._began.items())):
            if now - began <= self._limits.HANDSHAKE_SECONDS:
                return
            if connection in self._began:
                detail = f"no {self._awaited} within {self._limits.HANDSHAKE_SECONDS:g} s"
                self._end(connection, "handshake-slow", detail)
