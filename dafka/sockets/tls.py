"""TLS on sockets of the hub: the handshake of an accepted connection, and one to a server."""

from __future__ import annotations

import select
import ssl
from typing import Any

import gevent
import gevent.socket
from gevent.ssl import SSLSocket

from dafka.hub.turns import Pace
from dafka.sockets import listening
from dafka.sockets.errors import HandshakeError

_HUNG_UP = getattr(select, "POLLRDHUP", 0)
JOINED_OCTETS = 64 * 1024  # that one call encrypts; TLS cuts them into records of 16 KiB


class TlsSocket:
    """A socket with TLS around it, as connections use it. It owns the socket."""

    def __init__(self, socket: SSLSocket) -> None:
        self._socket = socket
        self.recv = socket.recv
        self.recv_into = socket.recv_into
        self.send = socket.send
        self.sendall = socket.sendall
        self.shutdown = socket.shutdown
        self.settimeout = socket.settimeout
        self.getpeercert = socket.getpeercert
        self.pending = socket.pending

    @property
    def _sock(self) -> Any:
        """The system's socket, for what looks past TLS."""
        return self._socket._sock

    @property
    def _read_event(self) -> Any:
        """What tells that octets have come, for those who wait until then."""
        return self._socket._read_event

    def sendmsg(self, buffers: list[memoryview]) -> int:
        """Encrypt and send the first of ``buffers``, and how many octets that were."""
        first = buffers[0]
        if len(first) < JOINED_OCTETS:
            some, size = [], 0
            for buffer in buffers:
                if size >= JOINED_OCTETS:
                    break
                some.append(buffer[: JOINED_OCTETS - size])
                size += len(some[-1])
            return int(self._socket.send(b"".join(some)))
        return int(self._socket.send(first[:JOINED_OCTETS]))

    def has_hung_up(self) -> bool:
        """Whether the other side has closed the connection; False where the system cannot tell (no Linux)."""
        if not _HUNG_UP:
            return False
        poll = select.poll()
        poll.register(self._socket.fileno(), _HUNG_UP)
        return bool(poll.poll(0))

    def close(self) -> None:
        """Close it, without waiting for the other side's goodbye."""
        listening.close(self._socket)


def accept(socket: Any, context: ssl.SSLContext, seconds: float) -> TlsSocket:
    """TLS with the client of an accepted socket, which is the TlsSocket's from now on.

    Waits as a green thread. Raises :class:`HandshakeError`, which says what was wrong; the socket is closed.
    """
    return TlsSocket(handshake(socket, context, seconds, server_side=True))


def connect(socket: Any, context: ssl.SSLContext, host: str, seconds: float) -> TlsSocket:
    """TLS with the server that a socket is connected to. As :func:`accept`."""
    name = host if context.check_hostname or ssl.HAS_SNI else None
    return TlsSocket(handshake(socket, context, seconds, server_side=False, server_hostname=name))


def handshake(socket: Any, context: ssl.SSLContext, seconds: float, **options: Any) -> SSLSocket:
    """As :func:`accept` and :func:`connect`, with ``options`` of gevent's SSLSocket, which is returned."""
    idle = socket.gettimeout()
    secured: Any = socket
    try:
        with gevent.Timeout(seconds, TimeoutError(f"it was not finished within {seconds:g} s")):
            socket.settimeout(None)
            listening.forget(socket)
            secured = SSLSocket(socket, do_handshake_on_connect=False, _context=context, **options)
            listening.keep(secured)
            secured.settimeout(0.0)
            _finish(secured)
            secured.settimeout(idle)
    except (OSError, ValueError) as error:
        listening.close(secured)
        raise HandshakeError(_words(error)) from error
    except BaseException:
        listening.close(secured)
        raise
    return secured


def _finish(socket: SSLSocket) -> None:
    """The steps of a handshake. Each takes a millisecond or two: of many clients' only some in one turn."""
    pace = Pace()
    while True:
        pace.pause()
        try:
            socket.do_handshake()
            return
        except ssl.SSLWantReadError:
            gevent.socket.wait_read(socket.fileno())
        except ssl.SSLWantWriteError:
            gevent.socket.wait_write(socket.fileno())


_REASONS = {
    "HTTP_REQUEST": "the client speaks plain HTTP",
    "WRONG_VERSION_NUMBER": "the other side does not speak TLS: is it set to PLAINTEXT?",
    "UNKNOWN_PROTOCOL": "the other side does not speak TLS: is it set to PLAINTEXT?",
    "RECORD_LAYER_FAILURE": "the other side does not speak TLS: is it set to PLAINTEXT?",
    "PEER_DID_NOT_RETURN_A_CERTIFICATE": "the client shows no certificate, and must",
    "UNSUPPORTED_PROTOCOL": "the other side's version of TLS is older than 1.2",
    "NO_SHARED_CIPHER": "the two sides have no cipher in common",
}


def _words(error: Exception) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the certificate is not accepted: {error.verify_message}"
    if isinstance(error, (ssl.SSLEOFError, ConnectionError)):
        return (
            "the other side has closed the connection (it may not speak TLS, or not accept the certificate)"
        )
    reason = getattr(error, "reason", None) or ""
    if reason in _REASONS:
        return _REASONS[reason]
    if reason.startswith(("TLSV1_ALERT", "SSLV3_ALERT", "TLSV13_ALERT")):
        alert = reason.partition("ALERT_")[2].replace("_", " ").lower()
        return f"the other side refuses: {alert}"
    return reason.replace("_", " ").lower() or str(error)
