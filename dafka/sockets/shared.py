"""Shared by all peers of a socket: budgets, counts, and the log of those that were disconnected."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

from dafka.hub.hub import Hub
from dafka.sockets import limits
from dafka.sockets.budget import Budget
from dafka.sockets.outbox import Queued
from dafka.sockets.reasons import Reasons
from dafka.sockets.tcp import KeepAlive


class Bounds(NamedTuple):
    """The bounds of a socket that not all kinds have in common; None: as :mod:`dafka.sockets.limits` has it.

    ``read``: octets read from a peer at once. ``queued``: octets that may wait for one peer, ``all_queued``
    for all together. ``told``: octets of subscriptions that may wait for a publisher. ``exceeded`` is told
    the cause of each connection that is ended because of a bound or an error.
    """

    read: int | None = None
    queued: int | None = None
    all_queued: int | None = None
    told: int | None = None
    keep_alive: KeepAlive = KeepAlive()
    exceeded: Callable[[str], object] | None = None


USUAL = Bounds()


class Shared:
    """``established(peer)`` is called when a handshake is complete, before the handler hears of it."""

    def __init__(self, hub: Hub, established: Callable[[Any], None], bounds: Bounds = USUAL) -> None:
        self.turns = hub.turns
        self.established = established
        self.keep_alive = bounds.keep_alive
        self.budget = Budget(bounds.read)
        self.queued = Queued(hub, bounds.queued, bounds.all_queued)
        self._told = bounds.told
        self.with_ttl: set[Any] = set()  # peers that have said for how long they may be silent
        self.reasons = Reasons(bounds.exceeded)
        self.discarded: Counter[str] = self.reasons.counted
        self.messages_in = self.messages_out = self.octets_in = 0  # since the start
        self.dropped = 0  # messages that found no room in a queue

    @property
    def told_octets(self) -> int:
        """How many octets of subscriptions may wait for a publisher."""
        return self._told or limits.TOLD_OCTETS

    def metrics(self) -> dict[str, int]:
        """The counts made here, by the names of :mod:`dafka.sockets.metrics`."""
        return {
            "messages_in": self.messages_in,
            "octets_in": self.octets_in,
            "messages_out": self.messages_out,
            "octets_out": self.queued.sent,
            "dropped": self.dropped,
            "received_octets": self.budget.used,
            "queued_octets": self.queued.held,
        }
