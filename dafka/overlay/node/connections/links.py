"""The connections of an endpoint, and what all of them may hold together."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import chain
from typing import Any

from dafka.hub.hub import Hub
from dafka.hub.turns import Pace
from dafka.overlay.counting import CountedOnce
from dafka.overlay.node import limits
from dafka.overlay.node.connections.link import Carrier, Link
from dafka.protocol.errors import MalformedMessage
from dafka.sockets.budget import Budget
from dafka.sockets.outbox import Queued


class Links:
    """By number. Hub side."""

    def __init__(self, hub: Hub, carrier: Carrier) -> None:
        self.received = Budget(limits.READ_OCTETS)
        """Octets that came and are not handled, of all connections."""
        self.queued = Queued(hub)
        """Octets that the kernel has not taken yet, of all connections."""
        self._hub = hub
        self._carrier = carrier
        self._by_number: dict[int, Link] = {}
        self._numbers = 0
        self._once = CountedOnce(self._buffers)

    def __len__(self) -> int:
        return len(self._by_number)

    def __iter__(self) -> Iterator[Link]:
        """The links that are there now."""
        return iter(list(self._by_number.values()))

    def __getitem__(self, number: int) -> Link:
        return self._by_number[number]

    def get(self, number: int) -> Link | None:
        return self._by_number.get(number)

    def pop(self, number: int) -> Link | None:
        return self._by_number.pop(number, None)

    def add(self, socket: Any, where: tuple[str, int], is_connector: bool) -> Link:
        """One over a socket, which it owns; it is read when :meth:`Link.run` is called."""
        self._numbers += 1
        link = Link(
            self._numbers,
            socket,
            where,
            is_connector,
            self.received,
            self.queued,
            self._hub.turns,
            self._carrier,
        )
        self._by_number[link.number] = link
        return link

    def send(self, link: Link, octets: bytes) -> None:
        """Queue octets. If that is too much for all, the peer that has read least is disconnected."""
        link.send(octets)
        if self._once.exceeds(self.queued.held, limits.ALL_LINKS_OCTETS):
            longest = max(self._by_number.values(), key=lambda one: one.queued)
            longest.give_up(f"{self.queued.held} octets wait for all peers, {longest.queued} of them for it")

    def _buffers(self) -> Iterator[bytes | memoryview]:
        return chain.from_iterable([link.buffers for link in self._by_number.values()])

    def tend(self) -> None:
        """End those that hold up others. To be called now and then."""
        if self.received.waiting:
            for link in self.received.held_since(time.monotonic() - limits.MESSAGE_SECONDS):
                assert isinstance(link, Link)
                late = f"a message that takes more than {limits.MESSAGE_SECONDS:g} s, and others wait"
                self._carrier.malformed(link, MalformedMessage("slow", late))

    def close(self) -> None:
        """Finish all of them; waits as a green thread where they are many."""
        for link in Pace().over(self, every=1):
            link.finish()
        self._by_number.clear()
