"""Where connections of an endpoint come from: ports that accept them, and addresses that are dialled."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import gevent

from dafka.hub.hub import Hub
from dafka.overlay.node import limits
from dafka.overlay.node.connections import dialling
from dafka.overlay.node.connections.tls import Security
from dafka.overlay.peering.statuses import NetworkInfo
from dafka.sockets import listening
from dafka.sockets.greetings import Greetings

log = logging.getLogger(__name__)

Where = tuple[str, int]


class _Guest:
    """Somebody who was accepted, and whose handshake of TLS is under way."""

    def __init__(self, socket: Any) -> None:
        self.socket = socket
        self.green: gevent.Greenlet | None = None

    def end(self, cause: str, detail: str) -> None:
        log.debug("a connection was closed (%s): %s", cause, detail)
        listening.close(self.socket)
        if self.green is not None:
            self.green.kill(block=False)


class Doors:
    """``opened(socket, where, address)`` gets each connection, secured; ``address`` is what was dialled, None
    for an accepted one. ``failed(address)``: it could not be connected to. Hub side."""

    def __init__(
        self,
        hub: Hub,
        security: Security,
        opened: Callable[[Any, Where, NetworkInfo | None], None],
        failed: Callable[[NetworkInfo], None],
    ) -> None:
        self.security = security
        self._hub = hub
        self._opened = opened
        self._failed = failed
        self._ports: list[listening.Port] = []
        self._greetings: Greetings[_Guest] = Greetings(limits, _Guest.end, "handshake of TLS")
        self._dialling: set[gevent.Greenlet] = set()

    @property
    def addresses(self) -> list[Where]:
        """Where connections are accepted."""
        return [port.address for port in self._ports]

    def listen(self, host: str, port: int) -> int:
        """Accept connections; the port. Raises OSError, :class:`InsecureAddress`."""
        self.security.check(host)
        opened = listening.Port(self._hub, listening.bind(host, port), self._accept)
        self._ports.append(opened)
        return opened.address[1]

    def dial(self, address: NetworkInfo) -> None:
        """Connect to an address."""
        green = self._hub.spawn(self._dial, address)
        self._dialling.add(green)
        green.link(self._dialling.discard)

    def close_ports(self) -> None:
        """Accept nobody any more."""
        for port in self._ports:
            port.close()

    def close(self) -> None:
        """Accept and dial nobody any more; handshakes under way end."""
        self.close_ports()
        for green in list(self._dialling):
            green.kill(block=False)
        for guest in list(self._greetings):
            guest.end("closed", "the endpoint was closed")

    def _dial(self, address: NetworkInfo) -> None:
        where = address.address, address.port
        try:
            socket = dialling.connect(*where, self.security)
        except OSError as error:
            log.debug("no connection to %s:%d: %s", *where, error)
            self._failed(address)
        else:
            self._opened(socket, where, address)

    def _accept(self, socket: Any, address: Any) -> None:
        if self.security.is_plain:
            self._opened(socket, address[:2], None)
            return
        self._greetings.make_room()
        guest = _Guest(socket)
        self._greetings.add(guest)
        guest.green = self._hub.spawn(self._greet, guest, address[:2])

    def _greet(self, guest: _Guest, where: Where) -> None:
        try:
            secured = dialling.accept(guest.socket, self.security)
        except OSError as error:
            log.debug("no connection from %s:%d: %s", *where, error)
            return
        finally:
            self._greetings.remove(guest)
        self._opened(secured, where, None)
