"""Locks and queues that green threads get through one at a time, in the order in which they came."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

import gevent.event
from gevent.event import Event as Place  # a place in a queue, which is set when it is at the front

__all__ = ["FifoLock", "KeyedFifoLocks", "Lines", "Place"]

T = TypeVar("T", bound=Hashable)


class FifoLock:
    """A lock of green threads, which get it in the order in which they came: ``with lock:``."""

    def __init__(self) -> None:
        self._held = False
        self._waiting: deque[gevent.event.Event] = deque()

    @property
    def is_free(self) -> bool:
        """Whether no green thread holds it or waits for it."""
        return not self._held

    def __enter__(self) -> None:
        if self._held:
            self._wait()
        self._held = True

    def __exit__(self, *error: object) -> None:
        self._pass_on()

    def _wait(self) -> None:
        mine = gevent.event.Event()
        self._waiting.append(mine)
        try:
            mine.wait()
        except BaseException:
            if mine.is_set():
                self._pass_on()
            else:
                self._waiting.remove(mine)
            raise

    def _pass_on(self) -> None:
        if self._waiting:
            self._waiting.popleft().set()
        else:
            self._held = False


class KeyedFifoLocks:
    """A :class:`FifoLock` for each key that is in use."""

    def __init__(self) -> None:
        self._locks: dict[Hashable, FifoLock] = {}

    def __len__(self) -> int:
        return len(self._locks)

    @contextmanager
    def held(self, key: Hashable) -> Iterator[None]:
        """Hold the lock of a key for a ``with`` block."""
        lock = self._locks.setdefault(key, FifoLock())
        try:
            with lock:
                yield
        finally:
            if lock.is_free:
                self._locks.pop(key, None)


class Lines(Generic[T]):
    """A queue for each of many things. A green thread may join several queues at once and then wait in them.

    There is no deadlock: of two green threads, the one that came first is in front in all queues that both
    have joined.
    """

    def __init__(self) -> None:
        self._lines: dict[T, deque[Place]] = {}

    def __contains__(self, thing: object) -> bool:
        """Whether a green thread waits in its queue, or is at the front."""
        return thing in self._lines

    def join(self, thing: T) -> Place:
        """Join the queue for ``thing`` at its end. The caller must :meth:`leave` it, whatever happens."""
        place = Place()
        line = self._lines.setdefault(thing, deque())
        line.append(place)
        if len(line) == 1:
            place.set()
        return place

    @contextmanager
    def at_the_front(self, thing: T) -> Iterator[None]:
        """Join the queue for ``thing``, and wait; a ``with`` block that is at the front of it."""
        place = self.join(thing)
        try:
            place.wait()
            yield
        finally:
            self.leave(thing, place)

    def leave(self, thing: T, place: Place) -> None:
        """Leave the queue, from any place in it."""
        line = self._lines[thing]
        line.remove(place)
        if line:
            line[0].set()
        else:
            del self._lines[thing]
