"""Messages that programs publish: they go out a few at a time, and to own subscribers."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable

from dafka.hub.hub import Hub
from dafka.hub.turns import in_later_turn
from dafka.overlay.node import limits
from dafka.overlay.node.pending import Pending, Run
from dafka.overlay.node.subscribers import Subscribers
from dafka.overlay.peering.outputs import Send
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
        self._runs: deque[Run] = deque()  # taken, and not published yet
        self._outputs: deque[Output] = deque()  # published, and not carried out yet
        self._goes_on = False  # in a later turn
        self._hub = hub
        self._role = role
        self._subscribers = subscribers
        self._carry = carry

    def drain(self, _: None = None) -> None:
        """Publish what waits, for some milliseconds; the rest in later turns."""
        while self._outputs or self._runs or self._take():
            if self._outputs:
                some = range(min(len(self._outputs), limits.CARRIED_AT_ONCE))
                self._carry([self._outputs.popleft() for _ in some])
            else:
                topic, payloads = self._runs.popleft()
                most = limits.PUBLISHED_MESSAGES // self._role.core.fan_out(topic) or 1
                if len(payloads) > most:
                    self._runs.appendleft((topic, payloads[most:]))
                self._publish(topic, payloads[:most])
            if self._hub.turns.elapsed > limits.TURN_SECONDS and self.waiting:
                if not self._goes_on:  # once, however often there is something new meanwhile
                    self._goes_on = True
                    in_later_turn(self._go_on)
                return

    def _go_on(self, _: None) -> None:
        self._goes_on = False
        self.drain()

    @property
    def waiting(self) -> int:
        """How many runs of messages, or messages, are not published yet."""
        return bool(self._outputs) + len(self._runs) + self.pending.count

    def unblock(self) -> None:
        """Topics on which nobody could publish may be free again."""
        self.pending.unblock(self._is_blocked)

    def _take(self) -> bool:
        self._runs += self.pending.take(limits.PUBLISHED_MESSAGES)
        return bool(self._runs)

    def _publish(self, topic: bytes, payloads: list[bytes]) -> None:
        self._subscribers.deliver_own(topic, payloads, self._role.me)
        outputs = self._role.publish_many(topic, payloads)
        if len(outputs) <= limits.CARRIED_AT_ONCE or not all(isinstance(one, Send) for one in outputs):
            # A peer was left that is too slow: if that were told later, it might be behind the beginning of
            # its next connection, or name one that is gone by then.
            self._carry(outputs)
        else:  # a message to a thousand peers makes one for each
            self._outputs.extend(outputs)
        if self._is_blocked(topic):
            self.pending.block(topic)

    def _is_blocked(self, topic: bytes) -> bool:
        return self._role.core.is_blocked(topic) or self._subscribers.full_own(topic)
