"""Messages to systemd (sd_notify(3)): that a service is ready, that it stops, that it is alive.

Outside of a service of ``Type=notify`` there is no NOTIFY_SOCKET, and nothing is sent.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from contextlib import suppress

READY, STOPPING, ALIVE = "READY=1", "STOPPING=1", "WATCHDOG=1"


def notify(*lines: str) -> None:
    """Tell systemd, where it started this process; errors are ignored."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if address[:1] not in ("/", "@"):
        return
    path = "\0" + address[1:] if address[0] == "@" else address  # @: a name in Linux' abstract namespace
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        sender.connect(path)
        sender.sendall("\n".join(lines).encode())


def watchdog_seconds() -> float | None:
    """How often systemd (``WatchdogSec``) wants to hear that this process is alive; None: never."""
    pid = os.environ.get("WATCHDOG_PID", "")
    if pid and pid != str(os.getpid()):
        return None
    micros = os.environ.get("WATCHDOG_USEC", "")
    return int(micros) / 1e6 if micros.isdigit() and int(micros) else None


class Watchdog:
    """Says in time that the process is alive, as long as ``alive()``."""

    def __init__(self, alive: Callable[[], bool], clock: Callable[[], float]) -> None:
        seconds = watchdog_seconds()
        self._every = None if seconds is None else seconds / 3
        self._alive = alive
        self._clock = clock
        self._due = clock()

    def step(self) -> None:
        """Called often."""
        if self._every is not None and self._clock() >= self._due and self._alive():
            self._due = self._clock() + self._every
            notify(ALIVE)
