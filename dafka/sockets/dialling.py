"""Connecting to an address, on the hub."""

from __future__ import annotations

import errno
import struct
from typing import Any

import gevent.socket

from dafka.sockets import listening


def dial(host: str, port: int, seconds: float) -> tuple[Any, Any]:
    """A connected socket of the hub, and the address of the host that has answered, the first that does.

    Each address is waited for at most ``seconds``, and the socket keeps that timeout. The caller ends it with
    :func:`dafka.sockets.listening.close`. Raises OSError: that of the last address.

    Where nobody listens at a port of this machine, the system may give that very port to the socket that
    connects, and TCP then connects the socket with itself. Whoever tries for long meets this, would talk to
    himself, and would keep the port from its server: it counts as refused.
    """
    failed = OSError(f"{host} has no address")
    for family, address in listening.resolve(host, port):
        socket = gevent.socket.socket(family, gevent.socket.SOCK_STREAM)
        listening.keep(socket)
        socket.settimeout(seconds)
        try:
            socket.connect(address)
            if socket.getsockname() != socket.getpeername():
                return socket, address
            failed = ConnectionRefusedError(errno.ECONNREFUSED, f"nobody listens at {host}:{port}")
            # Without a last wait for what may be on its way, during which nobody else could have the port.
            socket.setsockopt(gevent.socket.SOL_SOCKET, gevent.socket.SO_LINGER, struct.pack("ii", 1, 0))
            listening.close(socket)
        except OSError as error:
            failed = error
            listening.close(socket)
        except BaseException:
            listening.close(socket)
            raise
    raise failed
