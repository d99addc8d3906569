"""The queue between the nodes of one endpoint: runs and commands, as they are.

It is bounded as a socket's is, and what it drops is repaired as what a socket drops is; a producer looks
whether there is room (:attr:`LocalQueue.congested`) and waits.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator

from dafka.hub import limits as hub_limits
from dafka.mesh import limits
from dafka.mesh.node import Node
from dafka.protocol.commands import Command
from dafka.protocol.runs import Run

Item = Run | Command


class LocalQueue:
    """Items with the nodes that they come from."""

    def __init__(self, post: Callable[[Callable[[], object]], object]) -> None:
        self._post = post
        self._items: deque[tuple[Node | None, Item, int]] = deque()
        self.octets = 0  # of the contents that wait
        self._waiting: dict[Callable[[], object], None] = {}  # producers that want to know of room

    def __len__(self) -> int:
        return len(self._items)

    @property
    def congested(self) -> bool:
        """Whether the nodes are behind with hearing each other."""
        return self.octets >= limits.LOCAL_BYTES // 2 or len(self._items) >= limits.LOCAL_ITEMS // 2

    def when_clear(self, call: Callable[[], object]) -> None:
        """Post ``call`` when :attr:`congested` ends."""
        self._waiting[call] = None

    def put(self, origin: Node | None, item: Item, size: int) -> bool:
        """Queue an item of ``size`` octets of contents; False when there is no room for it."""
        full = len(self._items) >= limits.LOCAL_ITEMS or self.octets + size > limits.LOCAL_BYTES
        if full and self._items:  # a lone run that is larger than the queue must get through
            return False
        self._items.append((origin, item, size))
        self.octets += size
        return True

    def take(self) -> Iterator[tuple[Node | None, Item]]:
        """The items that are queued now, up to one round, and as many as there is time for."""
        items = self._items
        ends = time.monotonic() + hub_limits.PACE_SECONDS
        for taken in range(1, min(len(items), limits.ROUND_MESSAGES) + 1):
            origin, item, size = items.popleft()
            self.octets -= size
            yield origin, item
            if not taken % hub_limits.PACE_ITEMS and time.monotonic() >= ends:
                break
        if not self.congested:
            self._tell_waiting()

    def close(self) -> None:
        """Drop all items."""
        self._items.clear()
        self.octets = 0
        self._tell_waiting()

    def _tell_waiting(self) -> None:
        waiting, self._waiting = self._waiting, {}
        for call in waiting:
            self._post(call)
