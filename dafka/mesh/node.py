"""The interface of producers, consumers, stores and observers towards their endpoint."""

from __future__ import annotations

from typing import Any

from dafka.protocol.commands import Command
from dafka.protocol.runs import Run
from dafka.sockets.peer import Peer


class Node:
    """A node that is attached to an endpoint, which calls these methods. Hub side; none may block."""

    tick_interval = 0.1  # seconds between calls of tick()
    sleeps_until = 0.0  # no tick is needed before this time
    listened_topic: bytes | None = None  # roused() is called when somebody subscribes to what this one sends
    always_has_room = False  # on_run() never returns records; records and commands come in one order
    left = False  # detached: its messages are no longer sent
    hello_ids = b""  # the first bytes of subscriptions for which on_subscription() is called

    def on_run(self, run: Run) -> Run | None:
        """Consecutive records that match a subscription of this node.

        Returns published records that it has no room for; after :meth:`Endpoint.resume` they come again.
        """

    def on_command(self, command: Command) -> None:
        """Any other command that matches a subscription of this node."""

    def on_subscription(self, prefix: bytes) -> None:
        """A peer has subscribed to ``prefix``, which begins with one of :attr:`hello_ids`."""

    def lend(self, peer: Peer, partition: bytes) -> None:
        """The record of ``partition`` given to :meth:`on_run` was all that had come over this connection of
        its lane, which may be lent now."""

    def roused(self, now: float) -> None:
        """Somebody has subscribed to HEADs or records of :attr:`listened_topic`, a short while ago."""

    @property
    def known_as(self) -> bytes:
        """The address that other nodes know it by; empty of one that nobody speaks to."""
        return b""

    def metrics(self) -> dict[str, Any]:
        """By the names of :mod:`dafka.mesh.metrics`."""
        return {}

    def tick(self, now: float) -> None:
        """Time has passed."""
