"""Messages of peers: they reach the role a few at a time; large values are checked in a thread."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

from dafka.hub.hub import Hub
from dafka.hub.pool import BATCHES
from dafka.hub.turns import Pace
from dafka.overlay.node import limits
from dafka.overlay.role import EndpointRole, Output
from dafka.overlay.wire.zeek import is_value_fast


class Receiving:
    """``carry`` gets the outputs of the role. Hub side."""

    def __init__(self, hub: Hub, role: EndpointRole, carry: Callable[[Iterable[Output]], None]) -> None:
        self._hub = hub
        self._role = role
        self._carry = carry

    def receive(self, number: int, messages: list[bytes]) -> None:
        """Hand the role the messages of a link, in order; waits between turns when they are much work."""
        pace, turns, begin = Pace(), self._hub.turns, 0
        while begin < len(messages):
            message = messages[begin]
            payload = self._role.core.payload_to_check(number, message)
            if payload is None or BATCHES.run(is_value_fast, payload):
                outputs, begin = self._role.received_some(time.monotonic(), number, messages, begin)
            else:
                outputs, begin = self._role.undecodable(time.monotonic(), number, message), begin + 1
            self._carry(outputs)
            if turns.elapsed > limits.TURN_SECONDS:
                pace.pause()
