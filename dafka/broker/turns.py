"""Green threads that do something one at a time, in the order in which they came."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterator
from contextlib import contextmanager

import gevent.event


class Turns:
    """Lets one green thread at a time through, in the order in which they came."""

    def __init__(self) -> None:
        self._taken = False
        self._waiting: deque[gevent.event.Event] = deque()

    @property
    def is_free(self) -> bool:
        """Whether nobody has the turn, or waits for it."""
        return not self._taken

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Wait for it, and have it for a ``with`` block."""
        if self._taken:
            self._wait()
        self._taken = True
        try:
            yield
        finally:
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
            self._taken = False


class KeyedTurns:
    """:class:`Turns` of each key that somebody is busy with."""

    def __init__(self) -> None:
        self._turns: dict[Hashable, Turns] = {}

    def __len__(self) -> int:
        return len(self._turns)

    @contextmanager
    def turn(self, key: Hashable) -> Iterator[None]:
        """Wait for the key's turn, and have it for a ``with`` block."""
        turns = self._turns.setdefault(key, Turns())
        try:
            with turns.turn():
                yield
        finally:
            if turns.is_free:
                self._turns.pop(key, None)
