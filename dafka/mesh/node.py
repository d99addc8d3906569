"""What an endpoint calls on the producers, consumers, stores and observers that are attached to it."""

from __future__ import annotations

from dafka.protocol.commands import Command
from dafka.protocol.runs import Run


class Node:
    """What an endpoint calls on the nodes attached to it. Hub side; none of these may block."""

    tick_interval = 0.1  # seconds between calls of tick()
    always_has_room = False  # never gives back records, and hears them in one order with everything else
    left = False  # detached; what it would still say is not said
    hello_ids = b""  # the ID octets of the subscriptions that this node wants to hear of

    def on_run(self, run: Run) -> Run | None:
        """Consecutive records that match a subscription of this node.

        Gives back published ones that there is no room for; :meth:`Endpoint.resume` has them given again.
        """

    def on_command(self, command: Command) -> None:
        """Any other command that matches a subscription of this node."""

    def on_subscription(self, prefix: bytes) -> None:
        """A peer subscribed to ``prefix``, whose ID octet is in :attr:`hello_ids`."""

    def tick(self, now: float) -> None:
        """Time has passed."""
