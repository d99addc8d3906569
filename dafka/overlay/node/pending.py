"""Messages on their way from the threads that publish them to the hub, which takes all of them at once."""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Callable

from gevent import monkey

from dafka.hub.hub import Hub, Waiter
from dafka.hub.waits import wait_of
from dafka.overlay.node import limits
from dafka.overlay.node.errors import Overloaded
from dafka.overlay.node.signal import Signal

_allocate_lock = monkey.get_original("_thread", "allocate_lock")

Run = tuple[bytes, list[bytes]]
"""A topic, and the payloads of messages on it."""


class Pending:
    """A bounded queue. ``drain`` is called in the hub when there is something to :meth:`take`."""

    def __init__(self, hub: Hub, drain: Callable[[], None]) -> None:
        self._hub = hub
        self._drain = drain
        self._runs: deque[Run] = deque()
        self._topic: bytes | None = None  # of the last run, while that can still grow
        self._payloads: list[bytes] = []
        self._quick: bytes | None = None
        """The same topic, while the hub is to come anyway and nothing else is to be looked at."""
        self._most, self._most_octets = limits.PENDING_MESSAGES, limits.PENDING_OCTETS
        self._count = 0
        self._octets = 0
        self._is_posted = False
        self._blocked: set[bytes] = set()
        self._waiting: deque[Waiter] = deque()
        self._watches: list[tuple[bytes, Signal]] = []
        self._error: Exception | None = None
        self._lock = _allocate_lock()

    # -- any thread ---------------------------------------------------------------------------------

    def put(self, topic: bytes, payload: bytes, timeout: float | None) -> None:
        """Wait for room, for ``timeout`` seconds at most. Raises :class:`Overloaded`, ValueError for NaN."""
        if timeout is not None:
            timeout = wait_of(timeout)
        size = len(payload)
        with self._lock:
            if topic == self._quick and self._count < self._most and self._octets < self._most_octets:
                # Ctrl-C comes behind a call: all three happen or none.
                self._count += 1
                self._octets += size
                self._payloads.append(payload)
                return
        if not self._offer(topic, payload):
            deadline = None if timeout is None else time.monotonic() + timeout
            self._wait(topic, timeout, deadline)
            while not self._offer(topic, payload):
                self._wait(topic, timeout, deadline)

    @property
    def count(self) -> int:
        """Messages that the hub has not taken yet."""
        return self._count

    def watch(self, topic: bytes) -> Signal:
        """A descriptor that is readable while :meth:`put` on this topic does not wait, or raises at once."""
        signal = Signal()
        with self._lock:
            self._watches.append((topic, signal))
            self._quick = None
            self._show()
        return signal

    def unwatch(self, signal: Signal) -> None:
        with self._lock:
            self._watches = [watch for watch in self._watches if watch[1] is not signal]
            signal.close()

    def _show(self) -> None:
        for topic, signal in self._watches:
            signal.set(self._error is not None or not (self._is_full or topic in self._blocked))

    def _offer(self, topic: bytes, payload: bytes) -> bool:
        try:
            return self._accept(topic, payload)
        except BaseException:  # interrupted, maybe before the hub was told: the next one tells it
            self._is_posted = False
            self._quick = None
            raise

    def _accept(self, topic: bytes, payload: bytes) -> bool:
        size = len(payload)
        with self._lock:
            if self._error is not None:
                raise self._error
            if self._is_full or topic in self._blocked:
                return False
            self._count += 1
            self._octets += size
            if topic == self._topic:
                self._payloads.append(payload)
            else:
                self._topic, self._payloads = topic, [payload]
                self._runs.append((topic, self._payloads))
            if self._watches:
                self._show()
            elif not self._blocked:
                self._quick = topic
            if self._is_posted:
                return True
            self._is_posted = True
        self._hub.post(self._drain)
        return True

    @property
    def _is_full(self) -> bool:
        return self._count >= self._most or self._octets >= self._most_octets

    def _wait(self, topic: bytes, timeout: float | None, deadline: float | None) -> None:
        left = None if deadline is None else deadline - time.monotonic()
        if left is not None and left <= 0:
            raise Overloaded(
                f"{topic[:100]!r} was not published within {timeout:g} s: a receiver is too slow"
            )
        waiter = self._hub.waiter()
        with self._lock:
            wanted = self._error is None and (self._is_full or topic in self._blocked)
            if wanted:
                self._waiting.append(waiter)
        try:
            if wanted:
                waiter.wait(left)
        finally:
            with self._lock:
                taken = wanted and waiter not in self._waiting
                if wanted and not taken:
                    self._waiting.remove(waiter)
            if taken:
                waiter.wait()  # the hub has it in its hands
            waiter.close()

    # -- the hub's side -----------------------------------------------------------------------------

    def take(self, most: int = sys.maxsize) -> list[Run]:
        """The items put, or the first of them. Until there is nothing left, ``drain`` is not called again."""
        taken: list[Run] = []
        with self._lock:
            runs = self._runs
            while runs and most > 0:
                topic, payloads = runs[0]
                if len(payloads) > most:
                    some = payloads[:most]
                    del payloads[:most]
                else:
                    some = payloads
                    runs.popleft()
                most -= len(some)
                self._count -= len(some)
                self._octets -= sum(map(len, some))
                taken.append((topic, some))
            if not runs:
                self._topic = self._quick = None
            self._is_posted = bool(runs)
            is_waited_for = bool(self._waiting or self._watches)
        if is_waited_for:
            self._wake()
        return taken

    def block(self, topic: bytes) -> None:
        """Publishers on this topic wait from now on."""
        with self._lock:
            self._blocked.add(topic)
            self._quick = None
            self._show()

    def unblock(self, is_blocked: Callable[[bytes], bool]) -> None:
        """Publishers go on, except on topics that are still blocked."""
        free = {topic for topic in self._blocked if not is_blocked(topic)}
        if free:
            with self._lock:
                self._blocked -= free
            self._wake()

    def close(self, error: Exception) -> None:
        """Publishers get ``error`` raised."""
        with self._lock:
            self._error = error
            self._quick = None
        self._wake()

    def _wake(self) -> None:
        with self._lock:
            waiting, self._waiting = self._waiting, deque()
            self._show()
        for waiter in waiting:
            waiter.set()
