"""Ports for what has to know them before it listens, or listens at them again; and an address without strays.

Sockets that reconnect go on for a while when their server has gone, and the system gives its port to the next
program. At LOOPBACK, which is this machine like 127.0.0.1, nobody looks for anything that another test has
closed: no stray is counted there, or taken for the client that a test waits for.
"""

from __future__ import annotations

import socket

from scripts.apache.ports import free_port

__all__ = ["LOOPBACK", "free_port"]


def _without_strays() -> str:
    """127.0.0.2 where the system has it, as Linux does."""
    with socket.socket() as tried:
        try:
            tried.bind(("127.0.0.2", 0))
        except OSError:
            return "127.0.0.1"
    return "127.0.0.2"


LOOPBACK = _without_strays()
