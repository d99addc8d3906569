"""TLS for connections to peers, as libbroker has it.

Without any file it is anonymous: encrypted, and nobody knows with whom. With files both ends show a
certificate, which the other's CA has to have signed; names of hosts are not looked at. There is no detection:
both ends have TLS or none has.

A :class:`TlsSocket` stands where a socket of the hub stood. Octets are encrypted when the kernel takes them,
a piece at a time, so that a large message does not hold up the hub.
"""

from __future__ import annotations

import ssl
from contextlib import suppress
from typing import Any, NamedTuple

import gevent

from dafka.overlay.node import limits
from dafka.sockets import listening

# What libbroker offers without a certificate, and OpenSSL only takes at security level 0.
_ANONYMOUS = "AECDH-AES256-SHA@SECLEVEL=0"
_ANONYMOUS_CURVE = "secp384r1"
_WITH_CERTIFICATES = "HIGH:!aNULL:!MD5"


class Tls(NamedTuple):
    """Files in PEM: a certificate with its chain, its key and the key's passphrase, and whom to trust.

    All empty: anonymous.
    """

    certificate: str = ""
    key: str = ""
    passphrase: str = ""
    cafile: str = ""
    capath: str = ""


class TlsError(ValueError):
    """Settings of TLS that do not go together, or files that cannot be read."""


class Security:
    """Makes connections secure. Raises :class:`TlsError` for what cannot be used."""

    def __init__(self, tls: Tls) -> None:
        self._client = _context(ssl.PROTOCOL_TLS_CLIENT, tls)
        self._server = _context(ssl.PROTOCOL_TLS_SERVER, tls)

    @property
    def server_context(self) -> ssl.SSLContext:
        """For who accepts connections."""
        return self._server

    def connect(self, socket: Any) -> TlsSocket:
        """The handshake of the side that has opened the connection; waits. Raises OSError."""
        return _shaken(TlsSocket(socket, self._client, False))

    def accept(self, socket: Any) -> TlsSocket:
        """The handshake of the other side; waits. Raises OSError."""
        return _shaken(TlsSocket(socket, self._server, True))


class TlsSocket:
    """A connected socket of gevent with TLS on it; what it does not say itself the socket does."""

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
        layer = self._sock
        while True:
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
        """How many of them were sent: 0 is none, as the kernel has it, but an error.

        Octets that are encrypted are not told as sent before all of what became of them is sent. Until then
        the same ones are offered again, in front.
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
        """What TLS has to say."""
        return self._outgoing.read()

    def read_more(self, octets: bytes) -> None:
        """What came. Raises ConnectionError at the end of the connection."""
        if not octets:
            raise ConnectionError("the connection has ended within TLS")
        self._incoming.write(octets)


def _shaken(socket: TlsSocket) -> TlsSocket:
    with gevent.Timeout(limits.TLS_SECONDS, TimeoutError("the handshake of TLS was not done in time")):
        socket.shake_hands()
    return socket


def _context(protocol: int, tls: Tls) -> ssl.SSLContext:
    context = ssl.SSLContext(protocol)
    context.check_hostname = False
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION
    if not any(tls):
        context.verify_mode = ssl.CERT_NONE
        context.maximum_version = ssl.TLSVersion.TLSv1_2
        context.set_ciphers(_ANONYMOUS)
        context.set_ecdh_curve(_ANONYMOUS_CURVE)
        return context
    if not tls.certificate or not (tls.cafile or tls.capath):
        raise TlsError("TLS with a certificate needs the certificate, its key, and a CA that signs others'")
    context.verify_mode = ssl.CERT_REQUIRED
    context.set_ciphers(_WITH_CERTIFICATES)
    try:
        # OpenSSL would ask a terminal for a passphrase that is missing.
        context.load_cert_chain(tls.certificate, tls.key or None, lambda: tls.passphrase)
        context.load_verify_locations(tls.cafile or None, tls.capath or None)
    except OSError as error:
        raise TlsError(f"certificate {tls.certificate}, key {tls.key}: {error}") from error
    return context
