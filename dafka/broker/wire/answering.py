"""answer(): a Kafka request as an object of kafka-python becomes calls of the broker interface."""

from __future__ import annotations

from typing import Any, NamedTuple

from kafka.errors import UnsupportedVersionError

from dafka.broker.interface import BrokerInterface


class Context(NamedTuple):
    """Who asks: the client id of the request's header, and the host as Kafka writes it ("/127.0.0.1")."""

    client_id: str = ""
    client_host: str = ""


IN_PROCESS = Context(client_host="/127.0.0.1")


def answer(broker: BrokerInterface, request: Any, context: Context = IN_PROCESS) -> Any:
    """The response to ``request``; see :mod:`dafka.broker.wire`."""
    from dafka.broker.wire.table import BY_REQUEST

    api = BY_REQUEST.get(type(request))
    if api is None or api.answer is None:
        raise UnsupportedVersionError(f"this broker does not answer {type(request).__name__}")
    return api.answer(broker, request, context)
