"""A TCP connection of the hub, in the clear or in TLS: read by a green thread, sent to through a queue."""

from __future__ import annotations

import socket as sockets
import ssl
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import gevent

from dafka.hub.readable import Readable
from dafka.overlay.websocket import limits
from dafka.overlay.websocket.tls import Tls
from dafka.sockets import listening
from dafka.sockets.outbox import Outbox, Queued
from dafka.sockets.tcp import KeepAlive, prepare


class Stream:
    """It owns ``socket``. ``failed`` is called when sending fails."""

    def __init__(self, socket: Any, queued: Queued, failed: Callable[[], None], tls: Tls | None) -> None:
        self._socket = socket
        self._outbox = Outbox(socket, queued, failed)
        self._readable = Readable(socket, queued.turns)
        self._tls = tls
        self._closed = False
        prepare(socket, KeepAlive())

    @property
    def queued(self) -> int:
        """Octets that the kernel has not taken yet."""
        return self._outbox.octets

    @property
    def is_closed(self) -> bool:
        return self._closed

    def stuck(self, now: float) -> float:
        """For how many seconds the other side has read nothing of what is queued."""
        return now - self._outbox.progressed if self._outbox.octets else 0.0

    def begin(self) -> None:
        """Begin the TLS handshake of a client."""
        if self._tls is not None:
            self._tls.receive(b"")
            self._put_tls(self._tls)

    def read(self, size: int) -> bytes:
        """Octets as soon as there are some; an empty string at the end. Raises OSError."""
        receive = self._socket._sock.recv
        while not self._closed and not (self._tls is not None and self._tls.ended):
            try:
                octets: bytes = receive(size)
            except BlockingIOError:
                self._readable.wait()
                continue
            if self._tls is not None and not octets and not self._tls.is_open:
                raise ConnectionResetError("the connection was closed in the TLS handshake")
            if self._tls is None or not octets:
                return octets
            try:
                octets = self._tls.receive(octets)
            finally:
                self._put_tls(self._tls)
            if octets:
                return octets
        return b""

    def has_room(self) -> bool:
        """Whether more may be queued now."""
        return self._outbox.has_room(0)

    def wait_for_room(self, size: int = 0) -> bool:
        """Wait as a green thread until so many octets may be queued; whether it is still open."""
        return self._outbox.wait(size)

    def send(self, buffers: list[bytes]) -> None:
        """Queue octets."""
        if self._closed:
            return
        if self._tls is None:
            self._outbox.put(buffers)
        else:
            for buffer in buffers:
                self._tls.send(buffer)
            self._put_tls(self._tls)

    def finish(self) -> None:
        """Close it when what is queued is sent; octets that still come are thrown away. Waits."""
        with gevent.Timeout(limits.LINGER_SECONDS, False), suppress(OSError):
            while self._outbox.octets:
                gevent.sleep(0.002)
            self._socket.shutdown(sockets.SHUT_WR)
            while not self._closed and self._socket.recv(limits.READ_OCTETS):
                pass
        self.abort()

    def abort(self) -> None:
        """Close it at once."""
        if self._closed:
            return
        self._closed = True
        self._outbox.flush()
        self._outbox.close()
        listening.forget(self._socket)
        with suppress(OSError):
            self._socket.shutdown(sockets.SHUT_RDWR)
        self._socket.close()

    def _put_tls(self, tls: Tls) -> None:
        octets = tls.take_output()
        if octets:
            self._outbox.put([octets])


def tls_of(context: ssl.SSLContext | None, host: str | None = None) -> Tls | None:
    """TLS with a context, for a client with the server's name; None without one."""
    return None if context is None else Tls(context, host)
