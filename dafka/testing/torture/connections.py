"""Faults of connections over TCP: a listener whose sockets can be cut, slowed down and silenced.

A connection is a client of its own (:class:`~dafka.testing.torture.applying.ChaoticClient`), named by the
client id of its first request. The faults of its calls are carried out on its next answer. With TLS there are
no halves of frames to cut, and nothing to be silent with: there the connection ends before the answer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from copy import copy
from socket import SHUT_RDWR
from typing import Any

import gevent

from dafka.broker.codec.errors import BadRequestError
from dafka.broker.codec.framing import LENGTH_OCTETS, read_header
from dafka.broker.server.connection import Connection
from dafka.broker.server.listener import Door, Listener
from dafka.sockets import listening
from dafka.testing.torture.applying import ChaoticBroker, ChaoticClient
from dafka.testing.torture.deciding import CutError

PIECES = 5  # of a slow answer


class ChaoticListener(Listener):
    """A listener of a :class:`~dafka.testing.torture.applying.ChaoticBroker`. Hub side."""

    def _accept(self, door: Door, socket: Any, address: Any) -> None:
        chaos = self._chaotic.chaos
        if chaos.refusals > 0:
            chaos.refusals -= 1
            listening.close(socket)
            return
        super()._accept(door, socket, address)

    def __init__(self, *args: Any, **options: Any) -> None:
        self._links: dict[Connection, ChaoticSocket] = {}
        super().__init__(*args, **options)

    @property
    def _chaotic(self) -> ChaoticBroker:
        return self._shared.broker  # type: ignore[return-value]

    def _connected(self, door: Door, socket: Any, address: Any) -> Connection:
        chaos = self._chaotic.chaos
        client = ChaoticClient(chaos, f"{address[0]}:{address[1]}")
        link = ChaoticSocket(socket, client, halves=door.tls is None)
        client.link = link
        chaos.links.add(link)
        shared = copy(self._shared)
        shared.broker = client  # type: ignore[assignment]
        carrier = link if door.tls is None else socket
        connection = Connection(shared, carrier, address, door.told, door.tls, door.sasl)
        self._links[connection] = link
        return connection

    def _forget(self, connection: Connection) -> None:
        super()._forget(connection)
        link = self._links.pop(connection, None)
        if link is not None:
            listening.forget(link.socket)
            self._chaotic.chaos.links.discard(link)


class ChaoticSocket:
    """A socket of the hub with faults; everything not defined here is the socket's."""

    def __init__(self, socket: Any, client: ChaoticClient, halves: bool) -> None:
        self.socket = socket
        self._client = client
        self._halves = halves
        self._named = False
        self._cut = False
        self._silent = False
        self._slow = 0.0  # seconds for the next answer

    def __getattr__(self, name: str) -> Any:
        return getattr(self.socket, name)

    def carries(self, socket: Any) -> bool:
        """Whether it is, or is around, that socket of a connection."""
        return socket is self or socket is self.socket or getattr(socket, "_sock", None) is self.socket

    # -- faults ---------------------------------------------------------------------------------

    def cut_next(self) -> None:
        if not self._halves:
            raise CutError("before the answer")
        self._cut = True

    def slow_next(self, seconds: float) -> None:
        if not self._halves:
            gevent.sleep(seconds)
        else:
            self._slow = seconds

    def silence(self) -> None:
        if not self._halves:
            raise CutError("before the answer")
        self._silent = True

    def cut(self) -> None:
        # The green thread of the connection finds it closed, and gives everything back.
        gevent.spawn(_shut, self.socket)

    # -- as a socket ------------------------------------------------------------------------------

    def recv(self, *args: Any) -> bytes:
        received: bytes = self.socket.recv(*args)
        if not self._named and received:
            self._named = True
            self._client.name = _client_id(received) or self._client.name
        return received

    def send(self, data: Any, *options: Any) -> int:
        return self._send([data], lambda: self.socket.send(data, *options))

    def sendmsg(self, buffers: Sequence[Any], *options: Any) -> int:
        return self._send(buffers, lambda: self.socket.sendmsg(buffers, *options))

    def _send(self, buffers: Sequence[Any], send: Callable[[], int]) -> int:
        if not (self._silent or self._cut or self._slow):
            return send()
        octets = b"".join(buffers)
        if self._silent:
            return len(octets)
        if self._cut:
            self.socket.sendall(octets[: len(octets) // 2])
            raise CutError("in the middle of an answer")
        pause, self._slow = self._slow / PIECES, 0.0
        size = len(octets) // PIECES + 1
        for begin in range(0, len(octets), size):
            gevent.sleep(pause)
            self.socket.sendall(octets[begin : begin + size])
        return len(octets)


def _client_id(received: bytes) -> str:
    """The client id of the request that begins with these octets, if they have it."""
    try:
        return read_header(memoryview(received)[LENGTH_OCTETS:]).client_id or ""
    except (BadRequestError, ValueError):
        return ""


def _shut(socket: Any) -> None:
    with suppress(OSError):  # it has ended already
        socket.shutdown(SHUT_RDWR)
