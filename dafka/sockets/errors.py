"""The errors of sockets."""

from __future__ import annotations

from dafka.protocol.errors import DafkaError


class EndpointError(DafkaError, ValueError):
    """An address that these sockets cannot bind or connect to."""


class DisconnectedError(DafkaError, ConnectionError):
    """The peer has disconnected, or its connection was closed: nothing can be sent to it any more."""


class HandshakeError(DafkaError, ConnectionError):
    """TLS could not be agreed on with the other side."""
