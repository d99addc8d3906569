"""The hub's turns: how long they take, and how long work makes several short ones of itself.

A turn is what the hub does between two looks at its sockets and timers. While it lasts nobody else is heard,
so no turn is to take more than some milliseconds, whatever a client asks for: longer work is cut into pieces
with :class:`Pace`, or computed beside the hub (:class:`dafka.hub.pool.Aside`).

``gevent.sleep(0)`` does not end a turn: green threads that call it take turns with each other for up to a
hundred switches before the loop looks at its sockets again. :func:`next_turn` does.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

import gevent
from gevent.hub import Waiter

from dafka.hub import limits

T = TypeVar("T")

_FIRST, _LAST = 2, -2  # libev's highest and lowest priority


class TurnGauge:
    """The longest turns of a gevent loop, in seconds: by the clock, and in processor time of its thread.

    Other threads and programs lengthen the first alone. The loop's thread makes the gauge.

    They are those of the current and of the last window of limits.TURN_WINDOW seconds.
    """

    def __init__(
        self,
        loop: Any,
        clock: Callable[[], float] = time.monotonic,
        cpu: Callable[[], float] = time.thread_time,
    ) -> None:
        self._clock = clock
        self._cpu = cpu
        self._began_cpu = cpu()
        self.under_way = False
        """Whether there is a turn now. A thread that sees it runs while the loop's has to wait."""
        self.reset()
        # The first watcher behind the loop's wait, and the last of those before it, which run callbacks.
        self._check = loop.check(ref=False, priority=_FIRST)
        self._check.start(self._begin)
        self._prepare = loop.prepare(ref=False, priority=_LAST)
        self._prepare.start(self._end)

    def reset(self) -> None:
        """Forget what was; the turn that this is called in does not count."""
        self._window = self._clock()
        self.began = float("inf")
        """When the current turn has begun, by the clock."""
        self._now = self._now_cpu = 0.0
        self._before = self._before_cpu = 0.0

    def close(self) -> None:
        """Measure no more. On the loop's thread."""
        self._check.close()
        self._prepare.close()

    @property
    def elapsed(self) -> float:
        """How long the current turn has lasted, by the clock."""
        return self._clock() - self.began

    def share(self) -> None:
        """As a green thread, go on in a later turn if this one has lasted some milliseconds."""
        if self.elapsed > limits.PACE_SECONDS:
            _rest()

    @property
    def longest(self) -> float:
        """The longest turn by the clock."""
        return max(self._now, self._before)

    @property
    def longest_cpu(self) -> float:
        """The turn that has taken the most processor time."""
        return max(self._now_cpu, self._before_cpu)

    def metrics(self) -> dict[str, int]:
        """By the names of :mod:`dafka.mesh.metrics`, in microseconds."""
        return {
            "hub_longest_turn": int(1e6 * self.longest),
            "hub_longest_turn_cpu": int(1e6 * self.longest_cpu),
        }

    def _begin(self) -> None:
        self.under_way = True
        self.began = self._clock()

    def _end(self) -> None:
        self.under_way = False
        now, cpu = self._clock(), self._cpu()
        taken = now - self.began
        if taken > self._now:
            self._now = taken
        # Waiting takes next to no processor time: a turn's begins where the last one's ended, which spares a
        # call of the system. The two clocks are read one after the other, and the system slews only one.
        self._now_cpu = max(self._now_cpu, min(cpu - self._began_cpu, taken))
        self._began_cpu = cpu
        if now - self._window > limits.TURN_WINDOW:
            self._window = now
            self._before, self._before_cpu = self._now, self._now_cpu
            self._now = self._now_cpu = 0.0


def in_pieces(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """The items in lists of that size; the last one may be shorter."""
    left = iter(items)
    while piece := list(islice(left, size)):
        yield piece


def out_of(items: list[T], size: int) -> Iterator[list[T]]:
    """The items in lists of that size, the last ones first. They leave ``items``: what nobody else has is
    freed with its piece, and not all at once in the end."""
    while items:
        piece = items[-size:]
        del items[-size:]
        yield piece


def let_go(*owned: list[Any] | dict[Any, Any]) -> None:
    """Empty these, as a green thread, and let others have their turn in between.

    To be called with what is large and ends with its function: a hundred thousand objects that are freed at
    once, when the last name of their list is gone, take as long as a long turn.
    """
    for one in owned:
        if len(one) > limits.PACE_ITEMS:
            break
    else:  # as nearly always
        return
    pace = Pace()
    for one in owned:
        take: Callable[[], Any] = one.popitem if isinstance(one, dict) else one.pop
        while len(one) > limits.PACE_ITEMS:  # the others end with their list
            for _ in range(limits.PACE_ITEMS):
                take()
            pace.rest()


def next_turn() -> None:
    """Wait as a green thread until the hub has looked at its sockets and timers; 3 microseconds if idle."""
    hub = gevent.get_hub()
    with hub.loop.timer(0) as timer:
        hub.wait(timer)


class _Later:
    """Green threads of one gevent hub that go on in a later turn: in their order, in each turn as many as
    there is time for. If all did in every turn, their short pieces would add up to a long one."""

    def __init__(self, loop: Any) -> None:
        self._waiting: deque[Callable[..., Any]] = deque()
        self._timer = loop.timer(0)
        self._is_set = False

    def add(self, go_on: Callable[..., Any]) -> None:
        """Have ``go_on(None)`` called."""
        self._waiting.append(go_on)
        self._set()

    def _set(self) -> None:
        if not self._is_set:
            self._is_set = True
            self._timer.start(self._go_on)

    def _go_on(self) -> None:
        self._timer.stop()
        ends = time.monotonic() + limits.PACE_SECONDS
        try:
            for _ in range(len(self._waiting)):
                self._waiting.popleft()(None)
                if time.monotonic() >= ends:
                    break
        finally:
            self._is_set = False
            if self._waiting:
                self._set()


_later: WeakKeyDictionary[Any, _Later] = WeakKeyDictionary()  # by gevent hub


def in_later_turn(go_on: Callable[[None], Any]) -> None:
    """Have ``go_on(None)`` called by the loop in a later turn, if there is time. It must not wait."""
    hub = gevent.get_hub()
    later = _later.get(hub)
    if later is None:
        later = _later[hub] = _Later(hub.loop)
    later.add(go_on)


def _rest() -> None:
    waiter = Waiter()
    in_later_turn(waiter.switch)
    waiter.get()


class Pace:
    """How a green thread goes through much work: it lets others have their turn every few milliseconds.

    Its data may change in each of these pauses.
    """

    __slots__ = ("_ends", "pauses")

    def __init__(self) -> None:
        self.pauses = 0
        self._ends = time.monotonic() + limits.PACE_SECONDS

    def rest(self) -> None:
        """Pause if it is time; to be called after less than a millisecond of work."""
        if time.monotonic() >= self._ends:
            self.pause()

    def pause(self) -> None:
        """Let others have their turn now."""
        self.pauses += 1
        _rest()
        self._ends = time.monotonic() + limits.PACE_SECONDS

    def over(self, items: Iterable[T], every: int = limits.PACE_ITEMS) -> Iterator[T]:
        """The items, with a look at the clock after each ``every`` of them."""
        left = every
        for item in items:
            yield item
            left -= 1
            if not left:
                self.rest()
                left = every
