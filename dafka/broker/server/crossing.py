"""A broker as it is called from a thread beside the hub, where large requests are answered."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, cast

from dafka.broker.interface.broker import BrokerInterface
from dafka.hub.hub import get_hub


def crossing(broker: BrokerInterface) -> BrokerInterface:
    """The broker for another thread: each call is carried out in a green thread of the hub and waited for."""
    return cast(BrokerInterface, _Crossing(broker))


class _Crossing:
    def __init__(self, broker: BrokerInterface) -> None:
        self._broker = broker

    def __getattr__(self, name: str) -> Callable[..., Any]:
        return partial(get_hub().run, getattr(self._broker, name))
