"""DEALER: a client that connects to a ROUTER, and again after each disconnect.

::

    class Handler:
        def joined(self, peer): ...              # connected: peer.send(frames) works from now on
        def messages(self, peer, messages): ...  # [(frame, ...), ...], in order
        def left(self, peer): ...                # disconnected; a next joined comes with another peer

    dealer = Dealer(hub, "tcp://127.0.0.1:5555", handler=Handler(), identity=b"me")
    dealer.peer                                  # the connected peer, or None
    dealer.metrics(); dealer.discarded; dealer.close()

Calls, sending and back-pressure are those of a Router (:mod:`dafka.sockets.router`). Messages that are queued
when a connection ends are lost: the handler sends again what was not answered. How it connects again is in
:mod:`dafka.sockets.connecting`.
"""

from __future__ import annotations

import time

import gevent

from dafka.hub.hub import Hub
from dafka.sockets import limits
from dafka.sockets.connecting import Connecting
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
        address = to_connect(endpoint)
        options = Options(
            (b"DEALER",), accepts=False, identity=identity, max_octets=max_message, mechanism=mechanism
        )
        self._shared = Shared(hub, self._established)
        self.discarded = self._shared.discarded
        self._connected = 0
        self._closed = False
        self._connecting = Connecting(hub, address, self._shared, _Pattern(self, handler), options)
        self._tending = hub.keep(self._tend)

    def metrics(self) -> dict[str, int]:
        """Figures by the names of :mod:`dafka.sockets.metrics`."""
        return {
            "connections": int(self._connecting.peer is not None),
            "peers": int(self.peer is not None),
            "accepted": self._connected,
            **self._shared.metrics(),
        }

    def close(self) -> None:
        """Disconnect; queued messages are sent first, for limits.LINGER_SECONDS at most."""
        if self._closed:
            return
        self._closed = True
        ends = time.monotonic() + limits.LINGER_SECONDS
        while self.peer is not None and self.peer.queued and time.monotonic() < ends:
            gevent.sleep(0.005)
        self._tending.kill(block=False)
        self._connecting.close().join(limits.LINGER_SECONDS)
        self._shared.reasons.close()

    def _established(self, peer: Peer) -> None:
        self._connected += 1

    def _tend(self) -> None:
        while True:
            gevent.sleep(limits.TEND_SECONDS)
            self._connecting.tend(time.monotonic())


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
