"""Connecting to an address, and making secure what has connected, on the hub."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dafka.overlay.node import limits
from dafka.overlay.node.connections.tls import Security
from dafka.sockets import listening
from dafka.sockets.dialling import dial


def connect(host: str, port: int, security: Security) -> Any:
    """A connected socket of the hub, by the first address of the host that answers. Raises OSError."""
    socket, _ = dial(host, port, limits.CONNECT_SECONDS)
    return _secured(socket, security.connect)


def accept(socket: Any, security: Security) -> Any:
    """Secure a socket that was accepted. Raises OSError, and the socket is closed then."""
    return _secured(socket, security.accept)


def _secured(socket: Any, handshake: Callable[[Any], Any]) -> Any:
    try:
        return handshake(socket)
    except BaseException:
        listening.close(socket)
        raise
