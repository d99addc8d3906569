"""What programs publish at an endpoint: it goes out a few messages at a time, and to own subscribers."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from dafka.hub.hub import Hub
from dafka.hub.turns import in_later_turn
from dafka.overlay.node import limits
from dafka.overlay.node.pending import Pending, Run
from dafka.overlay.node.subscribers import Subscribers
from dafka.overlay.role import EndpointRole, Output


class Publishing:
    """``carry`` gets the outputs of the role. Hub side, but for :attr:`pending`."""

    def __init__(
        self,
        hub: Hub,
        role: EndpointRole,
        subscribers: Subscribers,
        carry: Callable[[Iterable[Output]], None],
    ) -> None:
        self.pending = Pending(hub, self.drain)
        self._hub = hub
        self._role = role
        self._subscribers = subscribers
        self._carry = carry

    def drain(self, _: None = None) -> None:
        """Publish what waits, for some milliseconds; the rest in later turns."""
        while runs := self.pending.take(limits.PUBLISHED_MESSAGES):
            self._publish(runs)
            if self._hub.turns.elapsed > limits.TURN_SECONDS and self.pending.count:
                in_later_turn(self.drain)
                return

    def unblock(self) -> None:
        """Topics on which nobody could publish may be free again."""
        self.pending.unblock(self._is_blocked)

    def _publish(self, runs: list[Run]) -> None:
        for topic, payloads in runs:
            self._subscribers.deliver_own(topic, payloads, self._role.me)
            self._carry(self._role.publish_many(topic, payloads))
            if self._is_blocked(topic):
                self.pending.block(topic)

    def _is_blocked(self, topic: bytes) -> bool:
        return self._role.core.is_blocked(topic) or self._subscribers.full_own(topic)
