"""A flag with a cheap wait for a limited time, which thousands of idle green threads do at once."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

import gevent
from gevent.hub import Waiter

from dafka.hub import limits
from dafka.hub.turns import in_later_turn
from dafka.hub.waits import LONGEST

T = TypeVar("T")


class Flag:
    """An event. A wait that times out costs a third of :class:`gevent.event.Event`'s, which has a timer for
    each waiter and raises an exception in it. Hub side."""

    __slots__ = ("_set", "_waiting")

    def __init__(self) -> None:
        self._set = False
        self._waiting: list[Waiter] = []

    def set(self) -> None:
        """Wake the waiters in their order; later waits return at once until :meth:`clear`. Never blocks.

        Of very many, those for whom there is no time in this turn go on in later ones.
        """
        self._set = True
        waiting, self._waiting = self._waiting, []
        if waiting:
            _of(gevent.get_hub(), _woken, _Woken).add(waiting)

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
        ticks = _of(gevent.get_hub(), _ticks, _Ticks)
        tick = ticks.add(waiter, seconds)
        self._waiting.append(waiter)
        try:
            return bool(waiter.get()) or self._set
        finally:
            ticks.remove(waiter, tick)
            if waiter in self._waiting:
                self._waiting.remove(waiter)


class _Woken:
    """The waiters of one gevent hub whose flags were set. Each takes its time: if all went on in one turn,
    that would be a long one."""

    def __init__(self, loop: Any) -> None:
        self._loop = loop
        self._waiting: deque[Waiter] = deque()
        self._is_set = False

    def add(self, waiting: list[Waiter]) -> None:
        """Have ``waiter.switch(True)`` called for each."""
        self._waiting += waiting
        if not self._is_set:
            self._is_set = True
            self._loop.run_callback(self._go_on, None)

    def _go_on(self, _: None) -> None:
        ends = time.monotonic() + limits.PACE_SECONDS
        try:
            while self._waiting:
                self._waiting.popleft().switch(True)
                if time.monotonic() >= ends:
                    break
        finally:
            self._is_set = bool(self._waiting)
            if self._waiting:
                in_later_turn(self._go_on)


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


_ticks: WeakKeyDictionary[Any, _Ticks] = WeakKeyDictionary()  # by gevent hub
_woken: WeakKeyDictionary[Any, _Woken] = WeakKeyDictionary()


def _of(hub: Any, known: WeakKeyDictionary[Any, T], make: Callable[[Any], T]) -> T:
    found = known.get(hub)
    if found is None:
        found = known[hub] = make(hub.loop)
    return found
