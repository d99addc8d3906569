"""What all peers of a socket share: budgets, counts, and the log of those that were disconnected."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from dafka.hub.hub import Hub
from dafka.sockets.budget import Budget
from dafka.sockets.outbox import Queued
from dafka.sockets.reasons import Reasons


class Shared:
    """``established(peer)`` is called when a handshake is complete, before the handler hears of it."""

    def __init__(self, hub: Hub, established: Callable[[Any], None]) -> None:
        self.turns = hub.turns
        self.established = established
        self.budget = Budget()
        self.queued = Queued(hub.turns)
        self.with_ttl: set[Any] = set()  # peers that have said for how long they may be silent
        self.reasons = Reasons()
        self.discarded: Counter[str] = self.reasons.counted
        self.messages_in = self.messages_out = self.octets_in = 0  # since the start
        self.dropped = 0  # messages that found no room in a queue

    def metrics(self) -> dict[str, int]:
        """What is counted here, by the names of :mod:`dafka.sockets.metrics`."""
        return {
            "messages_in": self.messages_in,
            "octets_in": self.octets_in,
            "messages_out": self.messages_out,
            "octets_out": self.queued.sent,
            "dropped": self.dropped,
            "received_octets": self.budget.used,
            "queued_octets": self.queued.held,
        }
