"""A connection that is made, and made again after each disconnect.

Pauses between attempts double up to limits.RECONNECT_MOST_SECONDS, each shortened by a random part, so that
the clients of a server that comes back do not all come at once. A silent peer is asked with a PING (ZMTP
3.1), and given up (cause ``silent``).

The port of a server that has died may be another program's by then. Who knows more about the server than its
port has ``expect(began, lost)`` wait until it is known to be there: it was lost, or not reached, at the time
``lost``, by the attempt of the time ``began``. Then there is an attempt at once.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable

import gevent

from dafka.hub.hub import Hub
from dafka.sockets import limits
from dafka.sockets.dialling import dial
from dafka.sockets.endpoints import Endpoint
from dafka.sockets.peer import Pattern, Peer
from dafka.sockets.shared import Shared
from dafka.zmtp.connection import Options


class Connecting:
    """Connects to ``address`` until it is closed. The owner calls :meth:`tend` every now and then.

    ``name``: what it has as ``dialled``; ``expect``: None: pauses alone.
    """

    def __init__(
        self,
        hub: Hub,
        address: Endpoint,
        shared: Shared,
        pattern: Pattern,
        options: Options,
        name: str = "",
        expect: Callable[[float, float], object] | None = None,
    ) -> None:
        self.peer: Peer | None = None
        """The connection there is, its handshake complete or not."""
        self.connected = 0
        """How often a handshake was completed."""
        self._address = address
        self._name = name
        self._shared = shared
        self._pattern = pattern
        self._options = options
        self._expect = expect
        self._pinged = 0.0
        self._closed = False
        self._green = hub.keep(self._connect_again)

    @property
    def established(self) -> Peer | None:
        """The connection there is, if its handshake is complete."""
        return self.peer if self.peer is not None and self.peer.socket_type else None

    def tend(self, now: float) -> None:
        """Give up what takes too long, and ask a silent peer whether it is there."""
        peer = self.peer
        if peer is None:
            return
        if not peer.socket_type:
            if now - peer.began > limits.HANDSHAKE_SECONDS:
                peer.close("handshake-slow", f"no handshake within {limits.HANDSHAKE_SECONDS:g} s")
            return
        if not peer.is_welcome():
            peer.close("key", "its key was taken off the list")
            return
        silent = peer.silent(now)
        if peer.ttl and silent > peer.ttl:
            peer.close("silent", f"nothing was received for the {peer.ttl:g} s of its last PING")
        elif peer.version >= (3, 1) and silent > limits.HEARTBEAT_TIMEOUT:
            peer.close("silent", f"nothing was received for {silent:.1f} s, not even answers to PING")
        elif silent > limits.HEARTBEAT_SECONDS and now - self._pinged > limits.HEARTBEAT_SECONDS:
            self._pinged = now
            peer.ping()

    def close(self) -> gevent.Greenlet:
        """Disconnect; the green thread that is about to end."""
        self._closed = True
        if self.peer is not None:
            self.peer.close()
        if self._green is not gevent.getcurrent():
            self._green.kill(block=False)
        return self._green

    def _connect_again(self) -> None:
        pause = limits.RECONNECT_SECONDS
        while not self._closed:
            connected, began = self.connected, time.monotonic()
            self._run_once()
            lost = time.monotonic()
            pause = limits.RECONNECT_SECONDS if self.connected > connected else 2 * pause
            pause = min(pause, limits.RECONNECT_MOST_SECONDS)
            if self._expect is None or self.connected == connected or lost - began < pause:
                gevent.sleep(pause * random.uniform(0.5, 1.0))
            if self._expect is not None:
                self._expect(began, lost)

    def _run_once(self) -> None:
        try:
            socket, address = dial(*self._address, limits.CONNECT_SECONDS)
        except OSError:
            return  # nobody listens there yet
        self.peer = peer = Peer(self._shared, self._pattern, self._options, socket, address, self._name)
        try:
            peer.run()
        finally:
            self.peer = None
            self.connected += bool(peer.socket_type)
