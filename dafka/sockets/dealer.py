"""DEALER: a client that connects to a ROUTER, and again after each disconnect.

::

    class Handler:
        def joined(self, peer): ...              # connected: peer.send(frames) works from now on
        def messages(self, peer, messages): ...  # [[frame, ...], ...], in order
        def left(self, peer): ...                # disconnected; a next joined comes with another peer

    dealer = Dealer(hub, "tcp://127.0.0.1:5555", handler=Handler(), identity=b"me")
    dealer.peer                                  # the connected peer, or None
    dealer.metrics(); dealer.discarded; dealer.close()

Calls, sending and back-pressure are those of a Router (:mod:`dafka.sockets.router`). Messages that are queued
when a connection ends are lost: the handler sends again what was not answered. Pauses between attempts double
up to limits.RECONNECT_MOST_SECONDS, each shortened by a random part, so that the clients of a server that
comes back do not all come at once. A silent peer is asked with a PING (ZMTP 3.1), and given up (cause
``silent``).
"""

from __future__ import annotations

import random
import time
from typing import Any

import gevent
import gevent.socket

from dafka.hub.hub import Hub
from dafka.sockets import limits, listening
from dafka.sockets.endpoints import to_connect
from dafka.sockets.peer import Peer
from dafka.sockets.router import Handler
from dafka.sockets.shared import Shared
from dafka.zmtp import limits as zmtp_limits
from dafka.zmtp.connection import Options
from dafka.zmtp.mechanisms import MakeMechanism


class Dealer:
    """Connects to ``endpoint`` (``tcp://host:port``) until it is closed. Hub side. Raises EndpointError.

    ``mechanism``: as in ``lambda check: PlainClient(check, username, password)``; None: NULL.
    """

    def __init__(
        self,
        hub: Hub,
        endpoint: str,
        *,
        handler: Handler,
        identity: bytes = b"",
        max_message: int = zmtp_limits.MESSAGE_OCTETS,
        mechanism: MakeMechanism | None = None,
    ) -> None:
        if len(identity) > zmtp_limits.IDENTITY_OCTETS:
            raise ValueError(f"an identity has {zmtp_limits.IDENTITY_OCTETS} octets at most: {identity!r}")
        self.endpoint = endpoint
        self.peer: Peer | None = None
        self._address = to_connect(endpoint)
        self._options = Options(
            (b"DEALER",), accepts=False, identity=identity, max_octets=max_message, mechanism=mechanism
        )
        self._handler = handler
        self._shared = Shared(hub, self._established)
        self.discarded = self._shared.discarded
        self._trying: Peer | None = None
        self._connected = 0
        self._pinged = 0.0
        self._closed = False
        self._connecting = hub.keep(self._connect_again)
        self._tending = hub.keep(self._tend)

    def metrics(self) -> dict[str, int]:
        """Figures by the names of :mod:`dafka.sockets.metrics`."""
        return {
            "connections": int(self._trying is not None),
            "peers": int(self.peer is not None),
            "accepted": self._connected,
            **self._shared.metrics(),
        }

    def close(self) -> None:
        """Disconnect; what is queued is sent first, for limits.LINGER_SECONDS at most."""
        if self._closed:
            return
        self._closed = True
        ends = time.monotonic() + limits.LINGER_SECONDS
        while self.peer is not None and self.peer.queued and time.monotonic() < ends:
            gevent.sleep(0.005)
        self._tending.kill(block=False)
        if self._trying is not None:
            self._trying.close()
        self._connecting.kill(timeout=limits.LINGER_SECONDS)
        self._shared.reasons.close()

    def _connect_again(self) -> None:
        pause = limits.RECONNECT_SECONDS
        while not self._closed:
            connected = self._connected
            self._run_once()
            pause = limits.RECONNECT_SECONDS if self._connected > connected else 2 * pause
            pause = min(pause, limits.RECONNECT_MOST_SECONDS)
            gevent.sleep(pause * random.uniform(0.5, 1.0))

    def _run_once(self) -> None:
        try:
            socket, address = self._connect()
        except OSError:
            return  # nobody listens there yet
        self._trying = Peer(self._shared, _Pattern(self, self._handler), self._options, socket, address)
        try:
            self._trying.run()
        finally:
            self._trying = None

    def _connect(self) -> tuple[Any, Any]:
        error: OSError | None = None
        for family, address in listening.resolve(*self._address):
            socket = gevent.socket.socket(family, gevent.socket.SOCK_STREAM)
            listening.keep(socket)
            socket.settimeout(limits.CONNECT_SECONDS)
            try:
                socket.connect(address)
                return socket, address
            except OSError as failed:
                error = failed
                listening.close(socket)
            except BaseException:
                listening.close(socket)
                raise
        raise error or OSError("no address")

    def _established(self, peer: Peer) -> None:
        self._connected += 1

    def _tend(self) -> None:
        while True:
            gevent.sleep(limits.TEND_SECONDS)
            peer = self._trying
            if peer is None:
                continue
            now = time.monotonic()
            if self.peer is not peer:
                if now - peer.began > limits.HANDSHAKE_SECONDS:
                    peer.close("handshake-slow", f"no handshake within {limits.HANDSHAKE_SECONDS:g} s")
                continue
            silent = peer.silent(now)
            if peer.ttl and silent > peer.ttl:
                peer.close("silent", f"nothing was received for the {peer.ttl:g} s of its last PING")
            elif peer.version >= (3, 1) and silent > limits.HEARTBEAT_TIMEOUT:
                peer.close("silent", f"nothing was received for {silent:.1f} s, not even answers to PING")
            elif silent > limits.HEARTBEAT_SECONDS and now - self._pinged > limits.HEARTBEAT_SECONDS:
                self._pinged = now
                peer.ping()


class _Pattern:
    def __init__(self, dealer: Dealer, handler: Handler) -> None:
        self._dealer = dealer
        self._handler = handler
        self.messages = handler.messages

    def joined(self, peer: Peer) -> None:
        self._dealer.peer = peer
        self._handler.joined(peer)

    def left(self, peer: Peer) -> None:
        self._dealer.peer = None
        self._handler.left(peer)

    def subscribed(self, peer: Peer, prefix: bytes) -> None:
        pass  # to a DEALER nobody subscribes

    cancelled = subscribed
