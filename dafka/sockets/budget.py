"""The received octets that are held for all peers of a socket, and which peer may be read next.

A peer is charged for its message in progress and for received messages that its handler has not finished. At
the limit a peer waits, unless its own share is small; and the waiting peer whose message began first goes on
until its message is complete. So small messages always pass, large ones pass one by one, and the limit is
exceeded by one message.
"""

from __future__ import annotations

import time
from collections.abc import Hashable
from itertools import takewhile

from dafka.hub.changes import Changes
from dafka.sockets import limits


class Budget:
    """The octets that all peers of a socket hold."""

    def __init__(self, read: int | None = None) -> None:
        self.used = 0
        self._read = read  # octets at once; None: limits.READ_OCTETS
        self._charges: dict[Hashable, tuple[int, float]] = {}  # octets, and since when: the oldest first
        self._waiting: set[Hashable] = set()
        self._exempt: Hashable | None = None
        self._room = Changes()

    @property
    def waiting(self) -> int:
        """How many peers wait for others."""
        return len(self._waiting)

    @property
    def is_crowded(self) -> bool:
        """Whether more than half is used."""
        return 2 * self.used > limits.RECEIVED_OCTETS

    def charge(self, peer: Hashable, octets: int, *, anew: bool = False) -> None:
        """The octets held of a peer from now on. ``anew``: octets held before are done with."""
        before, since = self._charges.get(peer, (0, 0.0))
        if anew or not octets:
            self._charges.pop(peer, None)
            since = 0.0
            if self._exempt is peer:
                self._exempt = None
        if octets:
            self._charges[peer] = octets, since or time.monotonic()
        self.used += octets - before
        if self._waiting and (octets < before or self._exempt is None):
            self._room.tell()

    def next_read(self, peer: Hashable) -> int:
        """How much to read next from a peer, as soon as it may be read."""
        while True:
            left = limits.RECEIVED_OCTETS - self.used
            if left > 0:
                return min(self._read or limits.READ_OCTETS, max(limits.READ_LEAST_OCTETS, left // 64))
            if self._charges.get(peer, (0,))[0] < limits.RECEIVED_FAIR_OCTETS:
                return limits.READ_LEAST_OCTETS
            self._waiting.add(peer)
            if self._exempt is None and next(one for one in self._charges if one in self._waiting) is peer:
                self._exempt = peer
            if self._exempt is peer:
                self._waiting.discard(peer)
                return limits.READ_OCTETS
            try:
                self._room.wait()
            finally:
                self._waiting.discard(peer)

    def held_since(self, when: float) -> list[Hashable]:
        """The peers that something has been held of since before ``when``, the oldest first."""
        return [peer for peer, (_, since) in takewhile(lambda item: item[1][1] < when, self._charges.items())]
