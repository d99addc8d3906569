"""answer(): a Kafka request as an object of kafka-python becomes calls of the broker interface."""

from __future__ import annotations

from typing import Any

from kafka.errors import UnsupportedVersionError

from dafka.broker.interface.broker import BrokerInterface
from dafka.broker.server.context import IN_PROCESS, Context
from dafka.broker.server.table import BY_KEY


def answer(broker: BrokerInterface, request: Any, context: Context = IN_PROCESS) -> Any:
    """The response to ``request``; see :mod:`dafka.broker.server`."""
    api = BY_KEY.get(getattr(request, "API_KEY", -1))
    if api is None or api.answer is None or type(request) is not api.request:
        raise UnsupportedVersionError(f"this broker does not answer {type(request).__name__}")
    return api.answer(broker, request, context)
