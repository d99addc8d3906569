"""Whether a broker is alive, and ready for clients: what supervisors and load balancers ask."""

from __future__ import annotations

import threading
from typing import Any, NamedTuple

from dafka.broker.broker import Broker
from dafka.hub.hub import get_hub
from dafka.protocol.errors import DafkaError

PATIENCE = 5.0
"""Seconds in which the hub of a process that is alive answers."""


class Health(NamedTuple):
    """``alive``: the hub turns; ``ready``: clients are served; ``detail`` says why not."""

    alive: bool
    ready: bool
    detail: str = ""

    def row(self) -> dict[str, Any]:
        """As JSON has it."""
        return {"alive": self.alive, "ready": self.ready, "detail": self.detail}


def hub_turns(seconds: float = PATIENCE) -> bool:
    """Whether the hub answers in this time."""
    answered = threading.Event()
    try:
        get_hub().post(answered.set)
    except DafkaError:
        return False
    return answered.wait(seconds)


def health_of(broker: Broker) -> Health:
    """The health of a broker that was started."""
    if not hub_turns():
        return Health(False, False, f"the hub has not answered for {PATIENCE:g} s")
    if not broker.running:
        return Health(True, False, "the broker is stopped")
    failure = broker.write_failure
    return Health(True, failure is None, "" if failure is None else str(failure))
