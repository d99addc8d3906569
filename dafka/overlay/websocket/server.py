"""The WebSocket server of an endpoint, on the hub: accepts clients and looks after them."""

from __future__ import annotations

import ssl
import time
from collections.abc import Collection
from importlib.metadata import version
from typing import Any

import gevent

from dafka.hub.turns import Pace
from dafka.overlay.node.carrier import Carrier
from dafka.overlay.node.inbox import check_queue
from dafka.overlay.node.types import EndpointId
from dafka.overlay.websocket import limits
from dafka.overlay.websocket.fan_out import FanOut
from dafka.overlay.websocket.forms.messages import Ack
from dafka.overlay.websocket.session import Session
from dafka.overlay.websocket.tokens import Tokens, check_of
from dafka.sockets import listening
from dafka.sockets.budget import Budget
from dafka.sockets.greetings import Greetings
from dafka.sockets.outbox import Queued
from dafka.sockets.reasons import Reasons


class Server:
    """Serves ``/v1/messages/json`` at an address. Raises OSError. Hub side.

    ``ssl_context``: for wss. ``origins``: as those of
    :class:`~dafka.overlay.websocket.server_connection.ServerConnection`. ``tokens``: those of clients that
    may connect, see :mod:`~dafka.overlay.websocket.tokens`; None: everybody. ``capacity`` and ``overflow``:
    as those of :meth:`dafka.overlay.Endpoint.subscribe`, for each client.
    """

    def __init__(
        self,
        carrier: Carrier,
        host: str,
        port: int,
        *,
        ssl_context: ssl.SSLContext | None = None,
        origins: Collection[str] | None = (),
        tokens: Tokens | None = None,
        capacity: int = limits.CAPACITY,
        overflow: str = "disconnect",
    ) -> None:
        check_queue(capacity, overflow)  # here, and not when the first client comes
        self.carrier = carrier
        self.ssl_context = ssl_context
        self.origins = origins
        self.admits = None if tokens is None else check_of(tokens)
        self.capacity = capacity
        self.overflow = overflow
        self.ack = Ack(str(EndpointId(carrier.me)), version("dafka"))
        self.budget = Budget()
        self.queued = Queued(carrier.hub)
        self.reasons = Reasons()
        self.fan_out = FanOut()
        self.accepted = 0
        self._sessions: dict[Session, gevent.Greenlet] = {}
        self._greetings: Greetings[Session] = Greetings(limits, _end, "subscriptions")
        carrier.check()
        self._port = listening.Port(carrier.hub, listening.bind(host, port), self._accept)
        self._tending = carrier.hub.keep(self._tend)
        carrier.on_close.append(self.close)

    @property
    def address(self) -> tuple[str, int]:
        """The host and the port."""
        return self._port.address

    def metrics(self) -> dict[str, int]:
        """Connections now, clients that have subscribed, connections since the start, and closed ones by
        cause."""
        return {
            "connections": len(self._sessions),
            "clients": len(self._sessions) - len(self._greetings),
            "accepted": self.accepted,
            "received_octets": self.budget.used,
            "queued_octets": self.queued.held,
            **{f"closed_{cause.replace('-', '_')}": count for cause, count in self.reasons.counted.items()},
        }

    def subscribed(self, session: Session) -> None:
        """The first message of a client has come."""
        self._greetings.remove(session)

    def close(self) -> None:
        """Close the port and say goodbye to all clients; queued messages are sent, for some seconds at
        most."""
        self._port.close()
        self._tending.kill(block=False)
        for session in Pace().over(list(self._sessions), every=16):
            session.end(1001, "", "the server was closed")
        ends = time.monotonic() + limits.LINGER_SECONDS
        while any(not session.is_closed for session in self._sessions) and time.monotonic() < ends:
            gevent.sleep(0.005)
        for session in Pace().over(list(self._sessions), every=16):
            session.abort()
        self.reasons.close()

    def _accept(self, socket: Any, address: Any) -> None:
        self.accepted += 1
        if len(self._sessions) >= limits.CONNECTIONS:
            self.reasons.report(
                "connections", f"a WebSocket client was refused: there are {limits.CONNECTIONS}"
            )
            listening.close(socket)
            return
        self._greetings.make_room()
        session = Session(self, socket, address[:2])
        self._greetings.add(session)
        self._sessions[session] = self.carrier.hub.spawn(self._run, session)

    def _run(self, session: Session) -> None:
        try:
            session.run()
        finally:
            self._sessions.pop(session, None)
            self._greetings.remove(session)

    def _tend(self) -> None:
        while True:
            gevent.sleep(limits.TEND_SECONDS)
            self._greetings.end_late()
            now = time.monotonic()
            for session in Pace().over(list(self._sessions)):
                if session.stuck(now) > limits.UNREAD_SECONDS:
                    session.end(1013, "unread", f"it has read nothing for {limits.UNREAD_SECONDS:g} s")


_CODES = {"handshakes": 1013, "handshake-slow": 1008}


def _end(session: Session, cause: str, detail: str) -> None:
    session.end(_CODES[cause], cause, detail)
