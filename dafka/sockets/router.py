"""ROUTER: a server that tells its handler who each peer is, and what it sends.

The whole of its use::

    class Handler:
        def joined(self, peer): ...              # peer.identity, peer.socket_type, ...; peer.data is yours
        def messages(self, peer, messages): ...  # [(frame, ...), ...], in order
        def left(self, peer): ...                # the last call for a peer that has joined

    router = Router(hub, listening.bind("127.0.0.1", 0), handler=Handler())
    router.endpoint                              # "tcp://127.0.0.1:49152"
    router.metrics(); router.discarded; router.close()

The calls are made in the peer's own green thread. While ``messages`` waits, that peer's connection is not
read, and nobody else is held up; it may wait for as long as it likes. An exception ends the connection. It
gets limits.HANDLED_MESSAGES at most, and must not compute for longer than some milliseconds with them.

``peer.send(frames)``, ``peer.send_many(messages)`` and ``peer.send_encoded(buffers, count)`` may be called
from any green thread; they wait while too much is queued for the peer and raise
:class:`~dafka.sockets.errors.DisconnectedError` once it has left. ``peer.close()`` ends a connection.

Envelopes are as the peer sends them: a REQ's messages begin with an empty frame, and so must the replies to
it. The identity is not among the frames.

**Types of sockets that may connect.** DEALER, REQ and ROUTER see a ROUTER. PUSH sees a PULL, and PULL sees a
PUSH: libzmq lets these two connect to nothing else. In ZMTP 3.x only DEALER, REQ and ROUTER tell their
identity; with ``all_identities`` ZMTP 2.0 is spoken with libzmq's and JeroMQ's sockets that have one
(:mod:`dafka.zmtp.greeting`), so that PUSH and PULL sockets tell it, too. A peer without identity gets one of
17 octets, which begins with a zero. With 2.0 a client misses heartbeats (TCP keep-alive finds dead peers) and
the event HANDSHAKE_SUCCEEDED of libzmq's socket monitor.

**A second peer with the same identity** takes the place of the first, whose connection is closed (cause
``handover``): it may be the same client, back before the end of its old connection was noticed. ``left`` of
the old one may come after ``joined`` of the new one, so a handler keeps its state in ``peer.data``, or by
peer.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any, Protocol

from dafka.hub.hub import Hub
from dafka.sockets.accepting import Accepting
from dafka.sockets.peer import Peer
from dafka.zmtp import limits as zmtp_limits
from dafka.zmtp.connection import Options
from dafka.zmtp.cutting import Frames, Taker
from dafka.zmtp.mechanisms import MakeMechanism

TYPES = (b"ROUTER", b"PULL", b"PUSH")


class Handler(Protocol):
    """The user of a Router, which handles peers and messages."""

    def joined(self, peer: Peer) -> None: ...

    def messages(self, peer: Peer, messages: list[Frames]) -> None: ...

    def left(self, peer: Peer) -> None: ...


class Router:
    """Serves peers on ``socket``, a bound socket from :func:`dafka.sockets.listening.bind`. Hub side.

    ``max_message``: octets of a message over all of its frames; a larger one ends its connection.
    ``mechanism``: decides which peers may connect, as in ``lambda check: PlainServer(check, allows)``; None:
    NULL, all. ``make_taker`` is as a Subscriber's: messages taken by a connection's ``peer.taker`` are not
    among its messages.
    """

    def __init__(
        self,
        hub: Hub,
        socket: Any,
        *,
        handler: Handler,
        max_message: int = zmtp_limits.MESSAGE_OCTETS,
        all_identities: bool = True,
        mechanism: MakeMechanism | None = None,
        make_taker: Callable[[], Taker] | None = None,
    ) -> None:
        self._handler = handler
        self._by_identity: dict[bytes, Peer] = {}
        options = Options(
            TYPES,
            accepts=True,
            max_octets=max_message,
            prefer_2=all_identities,
            mechanism=mechanism,
            make_taker=make_taker,
        )
        self._accepting = Accepting(hub, socket, _Pattern(self._by_identity, handler), options)
        self.endpoint = self._accepting.endpoint
        self.discarded = self._accepting.shared.discarded

    def peer(self, identity: bytes) -> Peer | None:
        """The peer with that identity."""
        return self._by_identity.get(identity)

    def metrics(self) -> dict[str, int]:
        """Figures by the names of :mod:`dafka.sockets.metrics`."""
        return self._accepting.metrics()

    def close(self) -> None:
        """Close the port and all connections; queued octets are sent first, for LINGER_SECONDS at most."""
        self._accepting.close()


class _Pattern:
    def __init__(self, by_identity: dict[bytes, Peer], handler: Handler) -> None:
        self._by_identity = by_identity
        self._handler = handler
        self.messages = handler.messages

    def joined(self, peer: Peer) -> None:
        if not peer.identity:
            peer.identity = b"\0" + uuid.uuid4().bytes
        earlier = self._by_identity.get(peer.identity)
        self._by_identity[peer.identity] = peer
        if earlier is not None:
            earlier.close("handover", "a newer connection has the same identity")
        self._handler.joined(peer)

    def left(self, peer: Peer) -> None:
        if self._by_identity.get(peer.identity) is peer:
            del self._by_identity[peer.identity]
        self._handler.left(peer)

    def subscribed(self, peer: Peer, prefix: bytes) -> None:
        pass  # to a ROUTER nobody subscribes

    cancelled = subscribed
