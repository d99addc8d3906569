"""Statuses and errors as values, on topics that never leave their endpoint."""

from __future__ import annotations

import uuid
from typing import NamedTuple

from dafka.overlay.values import Count, Enum, Port, Value
from dafka.overlay.wire.codes import ErrorCode, StatusCode
from dafka.overlay.wire.envelope import LOCAL

STATUSES = LOCAL + b"data/statuses"
ERRORS = LOCAL + b"data/errors"


class NetworkInfo(NamedTuple):
    """Where an endpoint is reached, and after how many seconds a failed attempt is repeated; 0: never."""

    address: str
    port: int
    retry: float = 0


class EndpointInfo(NamedTuple):
    """An endpoint and, for a direct peer, where it is. ``endpoint`` is None where nobody answered yet."""

    endpoint: bytes | None
    network: NetworkInfo | None = None


class Status(NamedTuple):
    code: StatusCode
    context: EndpointInfo
    message: str


class Error(NamedTuple):
    """``context`` is missing where an error is about nobody."""

    code: ErrorCode
    context: EndpointInfo | None
    message: str


def status_value(status: Status) -> Value:
    """A message for subscribers of :data:`STATUSES`."""
    return "status", Enum(status.code.name.lower()), _info(status.context), status.message


def error_value(error: Error) -> Value:
    """A message for subscribers of :data:`ERRORS`."""
    about = (error.message,) if error.context is None else (_info(error.context), error.message)
    return "error", Enum(error.code.name.lower()), about


def _info(info: EndpointInfo) -> Value:
    endpoint = None if info.endpoint is None else str(uuid.UUID(bytes=info.endpoint))
    if info.network is None:
        return endpoint, None, None, None
    address, port, retry = info.network
    return endpoint, address, Port(port), Count(int(retry))
