"""Connecting to an address, on the hub."""

from __future__ import annotations

from typing import Any

import gevent.socket

from dafka.overlay.node import limits
from dafka.sockets import listening


def connect(host: str, port: int) -> Any:
    """A connected socket of the hub, by the first address of the host that answers. Raises OSError."""
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
