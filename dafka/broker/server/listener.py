"""The listener: the TCP ports of the hub that Kafka's clients connect to."""

from __future__ import annotations

import socket as sockets
import time
from collections.abc import Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import gevent

from dafka.broker.access.accounts import Accounts
from dafka.broker.access.acls import AclTable
from dafka.broker.interface.broker import BrokerInterface
from dafka.broker.listening import Listen
from dafka.broker.quotas.table import CONNECTED
from dafka.broker.quotas.throttles import Throttles
from dafka.broker.server import limits
from dafka.broker.server.connection import Connection, Shared
from dafka.broker.server.context import Told
from dafka.hub.hub import Hub
from dafka.hub.turns import Pace
from dafka.security.renewing import Renewed
from dafka.security.sasl.options import ServerSasl
from dafka.sockets import listening
from dafka.sockets.listening import Port

if TYPE_CHECKING:
    from dafka.broker.server.authentication import Sasl


class Door(NamedTuple):
    """A bound socket from :func:`dafka.sockets.listening.bind`, what its clients are told, its TLS and
    its SASL."""

    socket: Any
    told: Told
    tls: Renewed | None = None
    sasl: Sasl | None = None

    @property
    def greets(self) -> bool:
        """Whether there are handshakes before the first request."""
        return self.tls is not None or self.sasl is not None


def with_sasl(
    doors: Sequence[Door], listeners: Sequence[Listen], options: ServerSasl | None, accounts: Accounts
) -> list[Door]:
    """``doors``, with SASL where the listener of the same place has it; ``options`` None: by SCRAM."""
    if not any(one.has_sasl for one in listeners):
        return list(doors)
    from dafka.broker.server.authentication import Sasl  # most brokers have no use for it

    sasl = Sasl(options or ServerSasl(), accounts)
    return [
        door._replace(sasl=sasl if listen.has_sasl else None)
        for door, listen in zip(doors, listeners, strict=True)
    ]


class Listener:
    """Answers Kafka's clients at ``doors``. They share its limits and ``throttles``, and ``acls`` say what
    each may do (None: everything). Hub side."""

    def __init__(
        self,
        hub: Hub,
        broker: BrokerInterface,
        doors: Iterable[Door],
        throttles: Throttles,
        acls: AclTable | None = None,
    ) -> None:
        self._shared = Shared(broker, throttles, self._forget, hub.turns, acls)
        self.discarded = self._shared.reasons.counted
        self._hub = hub
        self._connections: dict[Connection, gevent.Greenlet | None] = {}
        self._closed = False
        self._accepted = 0
        self._ports = [Port(hub, door.socket, partial(self._accept, door)) for door in doors]
        self._checking = hub.keep(self._end_abandoned)
        self._refused: dict[Any, gevent.Greenlet] = {}  # sockets of addresses that connect too often

    def metrics(self) -> dict[str, int]:
        """Figures since the start, by the names of :mod:`dafka.mesh.metrics`."""
        shared = self._shared
        return {
            "listener_connections": len(self._connections),
            "listener_accepted": self._accepted,
            "listener_requests": shared.requests,
            "listener_bytes_in": shared.received,
            "listener_bytes_out": shared.sent,
            "listener_held_bytes": shared.budget.used,
            "listener_fetch_sessions": len(shared.sessions),
            "listener_throttled": shared.throttles.waits,
        }

    def close(self) -> None:
        """Close the port and all connections."""
        if self._closed:
            return
        self._closed = True
        for port in self._ports:
            port.close()
        self._checking.kill(block=False)
        for socket, waiting in list(self._refused.items()):
            waiting.kill(block=False)
            self._close_refused(socket)
        for connection, green in Pace().over(list(self._connections.items()), every=10):
            connection.kill()
            if green is not None:
                green.kill(block=False)
        self._shared.greens.close()
        self._shared.reasons.close()

    def _forget(self, connection: Connection) -> None:
        self._connections.pop(connection, None)
        listening.forget(connection.socket)

    def _end_abandoned(self) -> None:
        """End connections without requests; and fetches whose clients have disconnected, for nothing reads a
        connection while it is answered."""
        while True:
            gevent.sleep(limits.GONE_SECONDS)
            since = time.monotonic() - limits.IDLE_SECONDS
            for connection, green in Pace().over(list(self._connections.items())):
                if green is not None and connection.is_abandoned():
                    green.kill(block=False)
                elif connection.is_idle(since):
                    connection.close()

    def _accept(self, door: Door, socket: Any, address: Any) -> None:
        if self._closed:  # it came while the others were closed
            listening.close(socket)
            return
        self._accepted += 1
        if len(self._connections) >= limits.CONNECTIONS:
            self.discarded["connections"] += 1
            listening.close(socket)
            return
        if self._shared.throttles.has(CONNECTED) and self._is_refused(socket, address[0]):
            return
        if door.greets:
            self._shared.greetings.make_room()
        _prepare(socket, address)
        connection = self._connected(door, socket, address)
        if door.greets:
            self._shared.greetings.add(connection)
        self._connections[connection] = None
        self._connections[connection] = self._hub.spawn(connection.run)

    def _is_refused(self, socket: Any, host: str) -> bool:
        """Whether that address connects too often. Its socket is closed later, so that it does not come again
        at once; nothing is read from it."""
        seconds = self._shared.throttles.connects(host)
        if not seconds:
            return False
        self.discarded["throttled"] += 1
        if len(self._refused) >= limits.REFUSED_SOCKETS:
            listening.close(socket)
        else:
            self._refused[socket] = gevent.spawn_later(seconds, self._close_refused, socket)
        return True

    def _close_refused(self, socket: Any) -> None:
        self._refused.pop(socket, None)
        listening.close(socket)

    def _connected(self, door: Door, socket: Any, address: Any) -> Connection:
        return Connection(self._shared, socket, address, door.told, door.tls, door.sasl)


def _prepare(socket: Any, address: Any) -> None:
    socket.settimeout(None)  # a limit costs a timer for each use; see :meth:`Listener._end_abandoned`
    try:
        if socket.getsockname()[0] == address[0]:
            socket.setsockopt(sockets.SOL_SOCKET, sockets.SO_SNDBUF, limits.NEAR_SEND_BUFFER)
        socket.setsockopt(sockets.IPPROTO_TCP, sockets.TCP_NODELAY, 1)
        socket.setsockopt(sockets.SOL_SOCKET, sockets.SO_KEEPALIVE, 1)
    except OSError:
        pass  # the client has already disconnected
