"""Messages of peers: they reach the role a few at a time; large values are checked in a thread."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

from dafka.hub.hub import Hub
from dafka.hub.pool import BATCHES
from dafka.hub.turns import Pace
from dafka.overlay.node import limits
from dafka.overlay.role import EndpointRole, Output
from dafka.overlay.values.checking import takes_long, work
from dafka.overlay.wire.zeek import is_value_fast


class Receiving:
    """``carry`` gets the outputs of the role. Hub side."""

    def __init__(self, hub: Hub, role: EndpointRole, carry: Callable[[Iterable[Output]], None]) -> None:
        self._hub = hub
        self._role = role
        self._carry = carry

    def receive(self, number: int, messages: list[bytes]) -> None:
        """Hand the role the messages of a link, in order; waits between turns when they are much work."""
        pace, some, amount = Pace(), list[bytes](), 0
        if work(b"".join(messages)) <= limits.CHECKED_AT_ONCE:
            self._receive_some(number, messages, pace)
            return
        for message in messages:
            if takes_long(message):
                payload = self._role.core.payload_to_check(number, message)
                is_good = payload is None or BATCHES.run(is_value_fast, payload)
                some, amount = self._receive_some(number, some, pace), 0
                receive = self._role.received if is_good else self._role.undecodable
                self._carry(receive(time.monotonic(), number, message))
                continue
            more = work(message)
            if amount + more > limits.CHECKED_AT_ONCE:
                some, amount = self._receive_some(number, some, pace), 0
            some.append(message)
            amount += more
        self._receive_some(number, some, pace)

    def _receive_some(self, number: int, messages: list[bytes], pace: Pace) -> list[bytes]:
        begin, turns = 0, self._hub.turns
        while begin < len(messages):
            outputs, begin = self._role.received_some(time.monotonic(), number, messages, begin)
            self._carry(outputs)
            if turns.elapsed > limits.TURN_SECONDS:
                pace.pause()
        return []
