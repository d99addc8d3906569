"""Whether a broker is alive, and ready for clients, for supervisors and load balancers."""

from __future__ import annotations

import shutil
import threading
from typing import TypedDict

import dafka
from dafka.broker.broker import Broker
from dafka.hub.hub import get_hub
from dafka.log.limits import RESERVE_BYTES
from dafka.protocol.errors import DafkaError

PATIENCE = 5.0
"""Seconds in which the hub of a process that is alive answers."""


class _State(TypedDict):
    alive: bool
    ready: bool
    detail: str


class Health(_State, total=False):
    """``alive``: the hub turns; ``ready``: clients are served; ``detail`` says why not, or what is amiss.

    ``version`` is that of dafka, ``disk_free`` the octets that are free where the records are, and
    ``longest_turn`` the hub's in the last minutes, in seconds.
    """

    version: str
    disk_free: int
    longest_turn: float


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
    free = shutil.disk_usage(broker.path).free
    detail = "" if failure is None else str(failure)
    if failure is None and free <= RESERVE_BYTES:
        detail = f"records are refused: {free:,} bytes are free on the disk of {broker.path}"
    return Health(
        alive=True,
        ready=failure is None,
        detail=detail,
        version=dafka.__version__,
        disk_free=free,
        longest_turn=broker.metrics()["hub_longest_turn"] / 1e6,
    )
