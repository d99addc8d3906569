"""Errors between a client and a server; a status other than OK is ``commands.RefusedError``."""

from __future__ import annotations

from dafka.protocol.errors import DafkaError


class NoResponseError(DafkaError, TimeoutError):
    """The server did not answer in time."""


class ConnectionLostError(DafkaError, ConnectionError):
    """The connection ended; messages on their way may be lost."""
