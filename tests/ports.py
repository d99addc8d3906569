"""Ports for what has to know them before it listens, or listens at them again."""

from __future__ import annotations

import random
import socket

FIRST, LAST = 20_000, 32_000  # below those that systems choose from: nobody is given one of these meanwhile

_chance = random.SystemRandom()  # another one in each process, whatever a test's seed is


def free_port() -> int:
    """A port of loopback where nobody listens."""
    while True:
        port = _chance.randrange(FIRST, LAST)
        with socket.socket() as tried:
            try:
                tried.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
