"""A network that the console is part of while somebody looks at it, and no longer."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Generic, Protocol, TypeVar

import gevent
from gevent.lock import BoundedSemaphore

from dafka.console import limits


class _Node(Protocol):
    def close(self) -> None:
        """Leave the network."""


N = TypeVar("N", bound=_Node)


class Visit(Generic[N]):
    """The console's node in a network: the first look joins, and the node is closed after
    limits.MESH_IDLE_SECONDS without a look. One thread, one look at a time.

    ``join()`` makes the node, or returns None while there is no network; ``greet(node)`` follows once, and
    may wait for what the network says of itself.
    """

    def __init__(self, join: Callable[[], N | None], greet: Callable[[N], object]) -> None:
        self._join = join
        self._greet = greet
        self._node: N | None = None
        self._turn = BoundedSemaphore(1)
        self._looked = 0.0
        self._ending: Any = None

    @contextmanager
    def look(self) -> Iterator[N | None]:
        """The node, which joins if need be; None without a network. Raises what joining raises."""
        with self._turn:
            self._looked = time.monotonic()
            if self._node is None:
                self._begin()
            yield self._node

    @contextmanager
    def joined(self) -> Iterator[N | None]:
        """The node if it is there. This does not join, and does not count as a look."""
        with self._turn:
            yield self._node

    def close(self) -> None:
        """Leave the network; the next look joins again."""
        if self._ending is not None:
            self._ending.kill(block=False)
            self._ending = None
        node, self._node = self._node, None
        if node is not None:
            node.close()

    def _begin(self) -> None:
        node = self._join()
        if node is None:
            return
        self._node = node
        self._ending = gevent.spawn(self._end_when_idle)
        try:
            self._greet(node)
        except BaseException:  # the end of this green thread too
            self.close()
            raise

    def _end_when_idle(self) -> None:
        left = limits.MESH_IDLE_SECONDS
        while left > 0:
            gevent.sleep(left)
            with self._turn:  # somebody may have looked while this waited for its turn
                left = self._looked + limits.MESH_IDLE_SECONDS - time.monotonic()
                if left <= 0:
                    self._ending = None
                    self.close()
