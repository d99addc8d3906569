"""Long work of one request in pieces: other requests of the console's thread have their turn in between."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from typing import TypeVar

import gevent

T = TypeVar("T")

_TURN = 0.01  # seconds that one request computes before it lets others


def in_turns(some: Iterable[T]) -> Iterator[T]:
    """The same things, with pauses between them where it is time."""
    ends = time.monotonic() + _TURN
    for one in some:
        if time.monotonic() > ends:  # one record may be a megabyte of JSON
            gevent.sleep(0)
            ends = time.monotonic() + _TURN
        yield one
