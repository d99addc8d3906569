"""Options of TCP connections: no delay, and how soon one that is dead is noticed."""

from __future__ import annotations

import socket as sockets
from contextlib import suppress
from typing import Any, NamedTuple

from dafka.sockets import limits


class KeepAlive(NamedTuple):
    """After ``idle`` seconds of silence the peer's system is asked whether it still has the connection, once
    in ``interval`` seconds and ``probes`` times. ``unread``: seconds that it may leave octets without
    acknowledgement, or read none of them, before the connection ends; 0: as long as the system waits."""

    idle: int = limits.KEEPALIVE_SECONDS
    interval: int = limits.KEEPALIVE_INTERVAL
    probes: int = limits.KEEPALIVE_PROBES
    unread: float = 0.0


def prepare(socket: Any, keep_alive: KeepAlive) -> None:
    """Set the options of a connected socket, as far as the system has them."""
    socket.settimeout(None)  # independent of the program's default
    options = [(sockets.IPPROTO_TCP, sockets.TCP_NODELAY, 1), (sockets.SOL_SOCKET, sockets.SO_KEEPALIVE, 1)]
    for name, value in (
        ("TCP_KEEPIDLE", keep_alive.idle),
        ("TCP_KEEPINTVL", keep_alive.interval),
        ("TCP_KEEPCNT", keep_alive.probes),
        ("TCP_USER_TIMEOUT", int(min(1000 * keep_alive.unread, 2**31 - 1))),
    ):
        if hasattr(sockets, name) and value:  # not everywhere
            options.append((sockets.IPPROTO_TCP, getattr(sockets, name), value))
    for level, option, value in options:
        with suppress(OSError):  # it has already disconnected
            socket.setsockopt(level, option, value)
