"""TLS for connections to peers, as libbroker has it.

With certificates both ends show one, which the other's CA has to have signed. ``"anonymous"`` is encrypted,
but neither end proves who it is; ``"plain"`` has no TLS. There is no detection: ends with different settings
do not become peers. Without any of these settings connections are plain, and only within this machine.

A :class:`TlsSocket` stands where a socket of the hub stood. Octets are encrypted when the kernel takes them,
a piece at a time, so that a large message does not hold up the hub.
"""

from __future__ import annotations

import ssl
from contextlib import suppress
from typing import Any, Literal

import gevent

from dafka.hub.turns import Pace
from dafka.overlay.node import limits
from dafka.overlay.node.errors import InsecureAddress
from dafka.security import PeerTls
from dafka.security.contexts import of_peers
from dafka.sockets import listening
from dafka.sockets.hosts import is_loopback

Tls = PeerTls
Secured = Tls | Literal["anonymous", "plain"] | None
"""How connections to peers are secured."""


class Security:
    """Makes connections secure, or says that they may be plain.

    Raises :class:`~dafka.security.TlsError` for files that cannot be used, ValueError for another word.
    """

    def __init__(self, secured: Secured = None) -> None:
        self._contexts: tuple[ssl.SSLContext, ssl.SSLContext] | None = None
        self._here_only = secured is None
        if isinstance(secured, PeerTls):
            self._contexts = of_peers(secured)
        elif secured == "anonymous":
            self._contexts = of_peers(None)
        elif secured not in (None, "plain"):
            raise ValueError(f"tls is Tls(...), 'anonymous', 'plain' or None, not {secured!r:.100}")

    @property
    def is_plain(self) -> bool:
        """Whether connections have no TLS."""
        return self._contexts is None

    @property
    def server_context(self) -> ssl.SSLContext | None:
        """For the end that accepts connections; None if they are plain."""
        return None if self._contexts is None else self._contexts[1]

    def check(self, host: str) -> None:
        """Raises :class:`InsecureAddress` for one outside of this machine, unless somebody has said how."""
        if self._here_only and not is_loopback(host):
            raise InsecureAddress(
                f"{host!r:.200} is not a loopback address: connections need tls=Tls(...) with certificates,"
                " or 'anonymous' (what Zeek has without any), or 'plain'"
            )

    def connect(self, socket: Any) -> Any:
        """The handshake of the side that has opened the connection; waits. Raises OSError."""
        if self._contexts is None:
            return socket
        return _shaken(TlsSocket(socket, self._contexts[0], is_server=False))

    def accept(self, socket: Any) -> Any:
        """The handshake of the other side; waits. Raises OSError."""
        if self._contexts is None:
            return socket
        return _shaken(TlsSocket(socket, self._contexts[1], is_server=True))


class TlsSocket:
    """A connected socket of gevent with TLS on it; other attributes are those of the socket."""

    def __init__(self, socket: Any, context: ssl.SSLContext, is_server: bool) -> None:
        self._socket = socket
        self._sock = _Layer(socket._sock, context, is_server)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._socket, name)

    def close(self) -> None:
        """Close the connection, without a goodbye of TLS."""
        listening.close(self._socket)

    def shake_hands(self) -> None:
        """Waits. Raises ssl.SSLError when the other end has no TLS or cannot be trusted, or OSError."""
        layer, pace = self._sock, Pace()
        while True:
            pace.pause()  # a step takes a millisecond or two: of many handshakes only some in one turn
            try:
                layer.tls.do_handshake()
            except ssl.SSLWantReadError:
                self._socket.sendall(layer.written())
                layer.read_more(self._socket.recv(limits.READ_OCTETS))
            except ssl.SSLError:
                with suppress(OSError):
                    self._socket.sendall(layer.written())  # the alert says why
                raise
            else:
                self._socket.sendall(layer.written())
                return


class _Layer:
    """Where the hub would use the plain socket: BlockingIOError says that it has to wait."""

    def __init__(self, socket: Any, context: ssl.SSLContext, is_server: bool) -> None:
        self._socket = socket
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context.wrap_bio(self._incoming, self._outgoing, server_side=is_server)
        self._encrypted = memoryview(b"")
        self._told = 0  # of the octets given to send: they are encrypted, and not all sent

    def fileno(self) -> int:
        return int(self._socket.fileno())

    def recv(self, most: int) -> bytes:
        while True:
            try:
                return self.tls.read(most)
            except ssl.SSLWantReadError:
                self.read_more(self._socket.recv(most))
            except ssl.SSLZeroReturnError:
                return b""

    def send(self, octets: bytes | memoryview) -> int:
        """Returns how many of them were sent. 0 means none, without the kernel's BlockingIOError.

        Octets count as sent when all of their encrypted form is. Until then the caller offers the same ones
        again, in front.
        """
        if not self._told:
            self._told = self.tls.write(octets[: limits.ENCRYPTED_OCTETS])
            self._encrypted = memoryview(self.written())
        while self._encrypted:
            self._encrypted = self._encrypted[self._socket.send(self._encrypted) :]
        sent, self._told = self._told, 0
        return sent

    def sendmsg(self, buffers: list[bytes | memoryview]) -> int:
        some, left = [], limits.ENCRYPTED_OCTETS
        for octets in buffers:
            some.append(octets[:left])
            left -= len(some[-1])
            if not left:
                break
        return self.send(b"".join(some))

    def written(self) -> bytes:
        """Octets that TLS wants to send."""
        return self._outgoing.read()

    def read_more(self, octets: bytes) -> None:
        """Take received octets. Raises ConnectionError at the end of the connection."""
        if not octets:
            raise ConnectionError("the connection has ended within TLS")
        self._incoming.write(octets)


def _shaken(socket: TlsSocket) -> TlsSocket:
    with gevent.Timeout(limits.HANDSHAKE_SECONDS, TimeoutError("the handshake of TLS was not done in time")):
        socket.shake_hands()
    return socket
