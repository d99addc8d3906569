"""Connections of version 1 whose queues are long: their peers are sent nothing more until there is room.

Later versions give credit instead: see :mod:`dafka.overlay.flow`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from dafka.hub.hub import Hub
from dafka.hub.turns import Pace
from dafka.overlay.core import Core
from dafka.overlay.node.connections.link import Link
from dafka.overlay.role import Output


class Congestion:
    """``carry`` gets the outputs of the core. Hub side."""

    def __init__(self, hub: Hub, core: Core, carry: Callable[[Iterable[Output]], None]) -> None:
        self._hub = hub
        self._core = core
        self._carry = carry
        self._congested: set[int] = set()  # numbers of links

    def begin(self, link: Link, links: Mapping[bytes, Link]) -> None:
        """Hold back what the peers of a link are sent, unless it is held back already; ``links``: by peer."""
        if link.number in self._congested:
            return
        self._congested.add(link.number)
        peers = [peer for peer, one in links.items() if one is link]
        for peer in peers:
            self._core.congested(peer)
        self._hub.spawn(self._end, link, peers)

    def _end(self, link: Link, peers: Sequence[bytes]) -> None:
        """Wait for room, then send what was held back."""
        link.wait_for_room()
        self._congested.discard(link.number)
        pace = Pace()
        for peer in peers:
            self._carry(self._core.drained(peer))
            while link.number not in self._congested and self._core.has_more(peer):
                pace.rest()
                self._carry(self._core.drained(peer))
