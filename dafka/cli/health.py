"""Whether a broker is alive, and ready for clients: what supervisors and load balancers ask."""

from __future__ import annotations

import threading
from typing import TypedDict

from dafka.broker.broker import Broker
from dafka.hub.hub import get_hub
from dafka.protocol.errors import DafkaError

PATIENCE = 5.0
"""Seconds in which the hub of a process that is alive answers."""


class Health(TypedDict):
    """``alive``: the hub turns; ``ready``: clients are served; ``detail`` says why not."""

    alive: bool
    ready: bool
    detail: str


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
        return Health(alive=False, ready=False, detail=f"the hub has not answered for {PATIENCE:g} s")
    if not broker.running:
        return Health(alive=True, ready=False, detail="the broker is stopped")
    failure = broker.write_failure
    return Health(alive=True, ready=failure is None, detail="" if failure is None else str(failure))
