"""Connecting to an address, on the hub."""

from __future__ import annotations

from typing import Any

import gevent.socket

from dafka.sockets import listening


def dial(host: str, port: int, seconds: float) -> tuple[Any, Any]:
    """A connected socket of the hub, and the address of the host that has answered, the first that does.

    Each address is waited for at most ``seconds``, and the socket keeps that timeout. The caller ends it with
    :func:`dafka.sockets.listening.close`. Raises OSError: that of the last address.
    """
    failed = OSError(f"{host} has no address")
    for family, address in listening.resolve(host, port):
        socket = gevent.socket.socket(family, gevent.socket.SOCK_STREAM)
        listening.keep(socket)
        socket.settimeout(seconds)
        try:
            socket.connect(address)
            return socket, address
        except OSError as error:
            failed = error
            listening.close(socket)
        except BaseException:
            listening.close(socket)
            raise
    raise failed
