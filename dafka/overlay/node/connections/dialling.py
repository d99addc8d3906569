"""Connecting to an address, and making secure what has connected, on the hub."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gevent.socket

from dafka.overlay.node import limits
from dafka.overlay.node.connections.tls import Security
from dafka.sockets import listening


def connect(host: str, port: int, security: Security) -> Any:
    """A connected socket of the hub, by the first address of the host that answers. Raises OSError."""
    socket = _connect(host, port)
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


def _connect(host: str, port: int) -> Any:
    failed: OSError = OSError(f"{host} has no address")
    for family, address in listening.resolve(host, port):
        socket = gevent.socket.socket(family, gevent.socket.SOCK_STREAM)
        listening.keep(socket)
        socket.settimeout(limits.CONNECT_SECONDS)
        try:
            socket.connect(address)
            return socket
        except OSError as error:
            failed = error
            listening.close(socket)
        except BaseException:
            listening.close(socket)
            raise
    raise failed
