"""A flag with a cheap wait for a limited time, which thousands of idle green threads do at once."""

from __future__ import annotations

import time
from heapq import heappop, heappush
from typing import Any
from weakref import WeakKeyDictionary

import gevent
from gevent.hub import Waiter

from dafka.hub import limits
from dafka.hub.waits import LONGEST


class Flag:
    """An event. A wait that times out costs a third of :class:`gevent.event.Event`'s, which has a timer for
    each waiter and raises an exception in it. Hub side."""

    __slots__ = ("_set", "_waiting")

    def __init__(self) -> None:
        self._set = False
        self._waiting: list[Waiter] = []

    def set(self) -> None:
        """Wake the waiters in their order; later waits return at once until :meth:`clear`. Never blocks."""
        self._set = True
        waiting, self._waiting = self._waiting, []
        if waiting:
            loop = gevent.get_hub().loop
            for waiter in waiting:
                loop.run_callback(waiter.switch, True)

    def clear(self) -> None:
        """Further waits are for the next :meth:`set`."""
        self._set = False

    def wait(self, seconds: float) -> bool:
        """Wait until it is set, for at most that time and TICK_SECONDS; whether it was.

        Raises ValueError for NaN; infinity is for ever.
        """
        if self._set:
            return True
        waiter = Waiter()
        ticks = _ticks_of(gevent.get_hub())
        tick = ticks.add(waiter, seconds)
        self._waiting.append(waiter)
        try:
            return bool(waiter.get())
        finally:
            ticks.remove(waiter, tick)
            if waiter in self._waiting:
                self._waiting.remove(waiter)


class _Ticks:
    """The waiters of one gevent hub by their deadlines: one timer for all that end in the same tick."""

    def __init__(self, loop: Any) -> None:
        self._loop = loop
        self._timer: Any = None
        self._due: dict[int, dict[Waiter, None]] = {}
        self._order: list[int] = []  # the ticks, as a heap

    def add(self, waiter: Waiter, seconds: float) -> int:
        """Have ``waiter.switch(False)`` called after that time; returns the tick."""
        tick = int((time.monotonic() + min(seconds, LONGEST)) / limits.TICK_SECONDS) + 1
        due = self._due.get(tick)
        if due is None:
            due = self._due[tick] = {}
            heappush(self._order, tick)
            if self._order[0] == tick:
                self._arm()
        due[waiter] = None
        return tick

    def remove(self, waiter: Waiter, tick: int) -> None:
        """Forget a waiter."""
        due = self._due.get(tick)
        if due is not None:
            due.pop(waiter, None)

    def _arm(self) -> None:
        if self._timer is not None:
            self._timer.close()
        left = self._order[0] * limits.TICK_SECONDS - time.monotonic()
        self._timer = self._loop.timer(max(left, 0.0))
        self._timer.start(self._go_on)

    def _go_on(self) -> None:
        """Wake those whose time is over; for a few milliseconds, and the others in later turns."""
        now = time.monotonic()
        ends = now + limits.PACE_SECONDS
        while self._order and self._order[0] * limits.TICK_SECONDS <= now:
            due = self._due[self._order[0]]  # which stays the first while those that are woken wait anew
            while due:
                waiter = next(iter(due))
                del due[waiter]
                waiter.switch(False)
                if time.monotonic() >= ends:
                    self._arm()
                    return
            del self._due[heappop(self._order)]
        if self._order:
            self._arm()


_of_hub: WeakKeyDictionary[Any, _Ticks] = WeakKeyDictionary()


def _ticks_of(hub: Any) -> _Ticks:
    ticks = _of_hub.get(hub)
    if ticks is None:
        ticks = _of_hub[hub] = _Ticks(hub.loop)
    return ticks
