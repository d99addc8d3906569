"""Green threads that are used again: for work that is short and comes often.

One that is made for its work takes 15 microseconds of processor time: the system maps memory for its frames,
which it gives back at its end. One that waits for work takes 1.5.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gevent
import gevent.event
from gevent.hub import Waiter


class Task:
    """Work that a green thread does, or is about to do."""

    __slots__ = ("_ended", "_green", "_work")

    def __init__(self, work: Callable[..., object], args: tuple[Any, ...]) -> None:
        self._work: tuple[Callable[..., object], tuple[Any, ...]] | None = (work, args)  # None: it has begun
        self._green: gevent.Greenlet | None = None  # that does it now
        self._ended: gevent.event.Event | None = None  # once somebody waits for it

    def join(self) -> None:
        """Wait as a green thread until it is done."""
        if self._work is not None or self._green is not None:
            self._ended = self._ended or gevent.event.Event()
            self._ended.wait()

    def kill(self) -> None:
        """End it soon, as a green thread is killed; what has not begun never does. Does not wait."""
        self._work = None
        gevent.get_hub().loop.run_callback(self._kill)

    def _kill(self) -> None:
        # In the loop, so that its green thread does not turn to other work in between.
        if self._green is not None:
            self._green.throw(gevent.GreenletExit)
        elif self._ended is not None:
            self._ended.set()

    def carry_out(self) -> None:
        """Do it, in the green thread that calls this."""
        if self._work is None:
            return
        work, args = self._work
        self._work, self._green = None, gevent.getcurrent()
        try:
            work(*args)
        finally:
            self._green = None
            if self._ended is not None:
                self._ended.set()


class SpareGreens:
    """Green threads of one hub; at most ``most`` wait for work. Hub side."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._waiting: list[Waiter] = []

    def __len__(self) -> int:
        """How many wait for work."""
        return len(self._waiting)

    def begin(self, work: Callable[..., object], *args: Any) -> Task:
        """Have ``work(*args)`` done soon, in the order of the calls, as :func:`gevent.spawn` does.

        It is to raise nothing.
        """
        task = Task(work, args)
        if self._waiting:
            gevent.get_hub().loop.run_callback(self._waiting.pop().switch, task)
        else:
            gevent.spawn(self._serve, task)
        return task

    def close(self) -> None:
        """End those that wait, and the others when they have done their work."""
        self._most = 0
        loop = gevent.get_hub().loop
        while self._waiting:
            loop.run_callback(self._waiting.pop().switch, None)

    def _serve(self, task: Task | None) -> None:
        waiter = Waiter()
        while task is not None:
            task.carry_out()
            if len(self._waiting) >= self._most:
                return
            self._waiting.append(waiter)
            task = waiter.get()
