"""The listener: a TCP port of the hub that Kafka's clients connect to.

Its sockets belong to the hub's gevent loop. Programs that are started with exec do not inherit them (Python's
default), and a forked child closes its copies at once, so a port and its connections end when the broker
stops.
"""

from __future__ import annotations

import errno
import logging
import os
import socket as sockets
from typing import Any

import gevent
import gevent.socket
from gevent import monkey

from dafka.broker.interface.broker import BrokerInterface
from dafka.broker.server import limits
from dafka.broker.server.connection import Connection, Shared
from dafka.hub.hub import Hub

log = logging.getLogger(__name__)

BACKLOG = 1024
FULL_SECONDS = 0.1  # between attempts to accept while the process has no free descriptor
_getaddrinfo = monkey.get_original("socket", "getaddrinfo")
_NO_MORE = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}


class Listener:
    """Answers Kafka's clients on ``socket``, a bound socket from :func:`bind`. Hub side."""

    def __init__(self, hub: Hub, broker: BrokerInterface, socket: Any) -> None:
        self._shared = Shared(broker, self._forget)
        self.discarded = self._shared.reasons.counted
        self._hub = hub
        self._socket = socket
        self._connections: dict[Connection, gevent.Greenlet | None] = {}
        self._closed = False
        self._accepted = 0
        socket.listen(BACKLOG)
        self._accepting = hub.keep(self._accept)
        self._checking = hub.keep(self._end_abandoned)

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
        }

    def close(self) -> None:
        """Close the port and all connections at once."""
        if self._closed:
            return
        self._closed = True
        self._accepting.kill(block=False)
        self._checking.kill(block=False)
        close(self._socket)
        for connection, green in list(self._connections.items()):
            connection.kill()
            if green is not None:
                green.kill(block=False)
        self._shared.reasons.close()

    def _forget(self, connection: Connection) -> None:
        self._connections.pop(connection, None)
        _open.discard(connection.socket)

    def _end_abandoned(self) -> None:
        """End fetches whose clients have disconnected; nothing reads a connection while it is answered."""
        while True:
            gevent.sleep(limits.GONE_SECONDS)
            for connection, green in list(self._connections.items()):
                if green is not None and connection.is_abandoned():
                    green.kill(block=False)

    def _accept(self) -> None:
        full = False
        while not self._closed:
            try:
                socket, address = self._socket.accept()
            except OSError as error:
                if self._closed:
                    return
                if error.errno not in _NO_MORE:
                    continue  # the client has already disconnected
                if not full:
                    log.warning("no connection can be accepted: %s", error)
                full = True
                gevent.sleep(FULL_SECONDS)
                continue
            full = False
            self._accepted += 1
            if len(self._connections) >= limits.CONNECTIONS:
                self.discarded["connections"] += 1
                socket.close()
                continue
            _prepare(socket)
            _open.add(socket)
            connection = Connection(self._shared, socket, address)
            self._connections[connection] = None
            self._connections[connection] = self._hub.spawn(connection.run)


def bind(host: str, port: int) -> Any:
    """A socket of the hub bound to an interface and a port (0: any). Raises OSError."""
    try:
        family, _, _, _, address = _resolved(host or None, port)
    except OSError as error:
        raise OSError(f"{host!r} is not an address of this machine: {error}") from error
    socket = gevent.socket.socket(family, sockets.SOCK_STREAM)
    try:
        # Old connections of an earlier broker do not block the port; another listening process still does.
        socket.setsockopt(sockets.SOL_SOCKET, sockets.SO_REUSEADDR, 1)
        socket.bind(address)
    except OSError as error:
        socket.close()
        raise OSError(error.errno, f"cannot listen on {host}:{port}: {error.strerror}") from error
    _open.add(socket)
    return socket


def _resolved(host: str | None, port: int) -> Any:
    passive = sockets.AI_PASSIVE
    try:  # numeric addresses need no resolver and no thread; as octets they need no IDNA either
        octets = None if host is None else host.encode("ascii")
        return _getaddrinfo(octets, port, type=sockets.SOCK_STREAM, flags=passive | sockets.AI_NUMERICHOST)[0]
    except (OSError, UnicodeEncodeError):
        return gevent.socket.getaddrinfo(host, port, type=sockets.SOCK_STREAM, flags=passive)[0]


def close(socket: Any) -> None:
    """Close a socket from :func:`bind`."""
    _open.discard(socket)
    socket.close()


def _prepare(socket: Any) -> None:
    socket.settimeout(limits.IDLE_SECONDS)
    try:
        socket.setsockopt(sockets.IPPROTO_TCP, sockets.TCP_NODELAY, 1)
        socket.setsockopt(sockets.SOL_SOCKET, sockets.SO_KEEPALIVE, 1)
    except OSError:
        pass  # the client has already disconnected


_open: set[Any] = set()  # the sockets of this process


def _give_back_after_fork() -> None:
    for socket in _open:
        # Without gevent, whose loop belongs to the parent process.
        os.close(socket._sock.detach())
    _open.clear()


os.register_at_fork(after_in_child=_give_back_after_fork)
