"""A bounded queue from the hub to the threads of a program.

The hub puts many items at once and wakes waiting threads once; a thread takes items one by one without a
call of the hub. One of these is chosen in advance for when the queue is full:

- ``wait``: nothing is lost. The queue may grow by what was under way; senders pause while
  :meth:`Inbox.watch` says so, and are told when half of the queue is free again.
- ``drop_newest``, ``drop_oldest``: counted in :attr:`Inbox.dropped`.
- ``disconnect``: the queue takes nothing more; its items can still be got, then there is an error.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any, Generic, TypeVar

from gevent import monkey

from dafka.hub.hub import Hub, Waiter
from dafka.hub.waits import wait_of
from dafka.overlay.node import limits
from dafka.overlay.node.errors import Closed, Empty, SlowSubscriber
from dafka.overlay.node.signal import Signal

T = TypeVar("T")
V = TypeVar("V")
F = TypeVar("F", bound="Feed[Any, Any]")

OVERFLOWS = ("wait", "disconnect", "drop_newest", "drop_oldest")

_allocate_lock = monkey.get_original("_thread", "allocate_lock")


def check_queue(capacity: int, overflow: str) -> None:
    """Raise ValueError or TypeError for the options of a queue that cannot be."""
    if overflow not in OVERFLOWS:
        raise ValueError(f"overflow is one of {', '.join(OVERFLOWS)}, not {overflow!r:.100}")
    if not isinstance(capacity, int):  # NaN would be no bound
        raise TypeError(f"a queue has room for a number of messages, not for {capacity!r:.100}")
    if capacity < 1:
        raise ValueError(f"a queue has room for one message at least, not for {capacity}")


class Inbox(Generic[T]):
    """``capacity``: in items. Each takes limits.ITEM_OCTETS of memory, and its ``length``, if it has one."""

    def __init__(
        self, hub: Hub, capacity: int, overflow: str, length: Callable[[T], int] | None = None
    ) -> None:
        check_queue(capacity, overflow)
        self.dropped = 0
        """Items that found no room."""
        self.capacity = capacity
        self.overflow = overflow
        self._on_room: Callable[[], None] | None = None
        self._hub = hub
        self._items: deque[T] = deque()
        self._length: Callable[[T], int] = _nothing if length is None else length
        self._octets = 0
        self._lock = _allocate_lock()
        self._waiting: deque[Waiter] = deque()
        self._signal: Signal | None = None
        self._closed: Exception | None = None

    # -- the hub's side -----------------------------------------------------------------------------

    @property
    def is_full(self) -> bool:
        return len(self._items) >= self.capacity or self._octets >= limits.SUBSCRIBER_OCTETS

    def watch(self, on_room: Callable[[], None]) -> bool:
        """Whether somebody is to wait for it; ``on_room()`` is then called in the hub once it has room."""
        if self.overflow != "wait" or not self.is_full:
            return False
        with self._lock:
            if self._closed is None and self.is_full:
                self._on_room = on_room
                return True
        return False

    def put(self, items: Sequence[T]) -> None:
        """Items, in order. It never waits."""
        with self._lock:
            if self._closed is not None:
                return
            self._put(items)
            if self._signal is not None:
                self._signal.set(self._is_ready or self._closed is not None)
        self._wake()

    def _put(self, items: Sequence[T]) -> None:
        if self.overflow == "wait":
            self._items.extend(items)
            self._octets += sum(map(self._length, items)) + limits.ITEM_OCTETS * len(items)
            return
        for item in items:
            if self.is_full and self._items:
                if self.overflow == "disconnect":
                    self._closed = SlowSubscriber(
                        f"a subscriber that was {len(self._items)} messages behind was disconnected"
                    )
                    return
                self.dropped += 1
                if self.overflow == "drop_newest":
                    continue
                self._pop()
            self._items.append(item)
            self._octets += self._length(item) + limits.ITEM_OCTETS

    def _pop(self) -> T:
        item = self._items.popleft()
        self._octets -= self._length(item) + limits.ITEM_OCTETS
        return item

    def shut(self, error: Exception) -> None:
        """Nothing more is put in; ``error`` is raised when it is empty."""
        with self._lock:
            if self._closed is None:
                self._closed = error
            if self._on_room is not None:
                self._tell_room()
            if self._signal is not None:
                self._signal.set(True)
        self._wake()

    def _wake(self) -> None:
        while self._waiting:
            try:
                waiter = self._waiting.popleft()
            except IndexError:
                return
            waiter.set()

    # -- any thread ---------------------------------------------------------------------------------

    @property
    def available(self) -> int:
        """How many messages can be got without waiting."""
        return len(self._items)

    @property
    def is_closed(self) -> bool:
        return self._closed is not None

    def fileno(self) -> int:
        """A descriptor that is readable while messages wait, or after the end; for select and asyncio."""
        with self._lock:
            if self._signal is None:
                self._signal = Signal()
                self._signal.set(self._is_ready or self._closed is not None)
            return self._signal.fileno()

    def _take(self, timeout: float | None = None) -> T:
        """The next item. Raises :class:`Empty`, :class:`Closed` or :class:`SlowSubscriber`."""
        if timeout is not None:
            timeout = wait_of(timeout)
        deadline = None
        while True:
            with self._lock:
                if self._items:
                    item = self._pop()
                    if self._signal is not None and not self._items and self._closed is None:
                        self._signal.set(False)
                    if self._on_room is not None and self._has_room:
                        self._tell_room()
                    return item
                if self._closed is not None:
                    raise self._closed
            if timeout is not None:
                now = time.monotonic()
                deadline = now + timeout if deadline is None else deadline
                if now >= deadline:
                    raise Empty(f"no message within {timeout:g} s")
            self._wait(None if deadline is None else deadline - now)

    def _await_some(self, timeout: float | None) -> None:
        """Wait until something is there, or the end. Raises what :meth:`_take` does; it takes nothing."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while not self._items:
            if self._closed is not None:
                raise self._closed
            left = None if deadline is None else deadline - time.monotonic()
            if left is not None and left <= 0:
                raise Empty(f"no message within {timeout:g} s")
            self._wait(left)

    def _take_all(self) -> list[T]:
        """Everything that waits, without waiting."""
        with self._lock:
            items = list(self._items)
            self._items.clear()
            self._octets = 0
            if self._signal is not None and self._closed is None:
                self._signal.set(False)
            if self._on_room is not None:
                self._tell_room()
        if not items and self._closed is not None:
            raise self._closed
        return items

    @property
    def _is_ready(self) -> bool:
        """Whether something can be got without waiting."""
        return bool(self._items)

    @property
    def _has_room(self) -> bool:
        return 2 * len(self._items) <= self.capacity and 2 * self._octets <= limits.SUBSCRIBER_OCTETS

    def _tell_room(self) -> None:
        call, self._on_room = self._on_room, None
        assert call is not None
        self._hub.post(call)

    def _wait(self, timeout: float | None) -> None:
        waiter = self._hub.waiter()
        self._waiting.append(waiter)
        try:
            if not self._items and self._closed is None:
                self._hub.check()
                waiter.wait(timeout)
        finally:
            try:
                self._waiting.remove(waiter)
            except ValueError:
                waiter.wait()  # the hub has it in its hands
            waiter.close()

    def _let_go(self) -> None:
        """The user closes it."""
        with self._lock:
            self._closed = self._closed or Closed("the subscriber was closed")
            self._items.clear()
            self._octets = 0
            if self._on_room is not None:
                self._tell_room()
            signal, self._signal = self._signal, None
        if signal is not None:
            signal.close()
        self._wake()


def _nothing(item: object) -> int:
    return 0


class Feed(Inbox[T], ABC, Generic[T, V]):
    """An inbox that a program reads, from any thread: with :meth:`get`, :meth:`poll` or in a loop."""

    @abstractmethod
    def get(self, timeout: float | None = None) -> V:
        """The next one; waits for it. Raises :class:`~dafka.overlay.node.errors.Empty` after ``timeout``
        seconds, :class:`~dafka.overlay.node.errors.Closed`."""

    @abstractmethod
    def poll(self) -> list[V]:
        """All that are there, without waiting."""

    def __iter__(self) -> Iterator[V]:
        """The items that come until this, or its endpoint, is closed."""
        with suppress(Closed):
            while True:
                yield self.get()

    def close(self) -> None:
        """Get nothing more; waiting items are dropped."""
        self._let_go()
        with suppress(Closed):
            self._left()

    @abstractmethod
    def _left(self) -> None:
        """The program has closed it."""

    def __enter__(self: F) -> F:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
