"""The queue of partitions that wait for credit to fetch what they are behind with.

It has three lines, each first come, first served. Most turns are shared by partitions that something has come
of already and those that nothing has come of yet. Those that nobody has answered the last time get every
tenth while others wait. So a flood of partitions that nobody has holds up none that the node knows.
"""

from __future__ import annotations

from collections import deque
from typing import Generic, TypeVar

from dafka.roles.follower import Follower, State

F = TypeVar("F", bound=Follower)

_UNANSWERED = 10  # every so many turns belong to those that nobody has answered


class FetchQueue(Generic[F]):
    """Partitions in the state WAITING."""

    def __init__(self) -> None:
        self._known: deque[F] = deque()
        self._untried: deque[F] = deque()
        self._unanswered: deque[F] = deque()
        self._turns = 0
        self.length = 0
        """How many wait."""

    def add(self, follower: F) -> None:
        """Behind all others of its line."""
        if follower.untried:
            line = self._unanswered if follower.failures else self._untried
        else:  # FETCH and answer may be lost
            line = self._unanswered if follower.failures > 1 else self._known
        line.append(follower)
        self.length += 1

    @property
    def first(self) -> F | None:
        """The consumer that is next; None if none waits."""
        line = self._line()
        return line[0] if line else None

    def pop(self) -> None:
        """The first one has had its turn."""
        self._line().popleft()
        self.length -= 1
        self._turns += 1

    def drop_gone(self) -> None:
        """Forget those that wait no longer."""
        for line in (self._known, self._untried, self._unanswered):
            waiting = [follower for follower in line if follower.state is State.WAITING]
            self.length += len(waiting) - len(line)
            line.clear()
            line.extend(waiting)

    def _line(self) -> deque[F]:
        turn = self._turns % _UNANSWERED
        if turn == _UNANSWERED - 1:
            return self._unanswered or self._known or self._untried
        if turn % 2:
            return self._untried or self._known or self._unanswered
        return self._known or self._untried or self._unanswered
