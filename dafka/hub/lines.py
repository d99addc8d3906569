"""Green threads that do something one at a time, in the order in which they came."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

import gevent.event
from gevent.event import Event as Place  # a place in a line, to be waited for

__all__ = ["KeyedTurns", "Lines", "Place", "Turns"]

T = TypeVar("T", bound=Hashable)


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


class Lines(Generic[T]):
    """A line for each of many things. Whoever joins several at once waits for one after the other.

    Nobody waits for ever for somebody who waits for them: those who came first are before the others in all
    lines that they share.
    """

    def __init__(self) -> None:
        self._lines: dict[T, deque[Place]] = {}

    def __contains__(self, thing: object) -> bool:
        """Whether somebody waits for it, or has it."""
        return thing in self._lines

    def join(self, thing: T) -> Place:
        """The last place in the line for ``thing``; who has it calls :meth:`leave`, whatever happens."""
        place = Place()
        line = self._lines.setdefault(thing, deque())
        line.append(place)
        if len(line) == 1:
            place.set()
        return place

    def leave(self, thing: T, place: Place) -> None:
        """Leave the line, from wherever in it."""
        line = self._lines[thing]
        line.remove(place)
        if line:
            line[0].set()
        else:
            del self._lines[thing]
