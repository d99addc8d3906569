"""An address of this machine where nobody looks for anything that another test has closed.

Sockets that reconnect go on for a while when what they are connected to has gone, and the system gives its
port to whoever asks next: strays of other tests, at 127.0.0.1, would be counted, or be taken for the one that
a test waits for.
"""

from __future__ import annotations

import random
import socket
import sys

LOOPBACK = "127.0.0.2" if sys.platform == "linux" else "127.0.0.1"


def lasting_port() -> int:
    """A port of LOOPBACK that is free, and that the system gives to nobody by itself: below its own range."""
    while True:
        port = random.SystemRandom().randrange(15_000, 32_000)
        with socket.socket() as probe:
            try:
                probe.bind((LOOPBACK, port))
            except OSError:
                continue
        return port
