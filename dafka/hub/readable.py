"""Waiting until something has come over a connection, where thousands may have something in one moment.

gevent switches to the green thread of each connection that has something, however long the turn has lasted:
with 8000 connections that alone made one of 32 ms. A :class:`Readable` looks at the turn first: in a long one
it only has its green thread go on in a later one, which takes less than half of that.
"""

from __future__ import annotations

import errno
import os
import time
from typing import Any

from gevent.hub import Waiter

from dafka.hub import limits
from dafka.hub.turns import TurnGauge, in_later_turn


class Readable(Waiter):  # type: ignore[misc] # gevent has no types for it
    """The waiting green thread of one connection, a socket of gevent's. Hub side."""

    def __init__(self, socket: Any, turns: TurnGauge) -> None:
        super().__init__()
        self._socket = socket
        self._turns = turns

    def wait(self) -> None:
        """Wait until something can be received. Raises OSError if the socket is closed, or was meanwhile."""
        watcher = self._socket._read_event
        if watcher is None:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        self.clear()
        watcher.start(self._ready)
        try:
            self.get()
        finally:
            watcher.stop()

    def _ready(self) -> None:
        """Called by the loop. (When a socket is closed, gevent calls ``throw`` of the object that this is a
        method of.)"""
        if time.monotonic() - self._turns.began < limits.PACE_SECONDS:
            self.switch(None)
            return
        watcher = self._socket._read_event
        if watcher is not None:
            watcher.stop()  # it would tell so in each turn
        in_later_turn(self.switch)
