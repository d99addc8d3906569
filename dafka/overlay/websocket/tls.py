"""TLS without I/O: octets of the connection in, octets of the application out, and the other way round."""

from __future__ import annotations

import ssl

_AT_ONCE = 64 * 1024


class Tls:
    """One side of a connection. ``host`` is the name that a client checks the server's certificate for."""

    def __init__(self, context: ssl.SSLContext, host: str | None = None) -> None:
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._object = context.wrap_bio(
            self._incoming, self._outgoing, server_side=host is None, server_hostname=host
        )
        self._is_open = False
        self._early = b""  # to be sent when the handshake is over
        self.ended = False
        """Whether the other side has said that nothing more will come."""

    @property
    def is_open(self) -> bool:
        """Whether the handshake is over."""
        return self._is_open

    def receive(self, octets: bytes) -> bytes:
        """The plain octets in those from the other side; an empty string if they belong to the handshake.

        Raises ssl.SSLError. There may be output then, too.
        """
        self._incoming.write(octets)
        plain = bytearray()
        try:
            if not self._is_open:
                self._object.do_handshake()
                self._is_open = True
                early, self._early = self._early, b""
                self.send(early)
            while some := self._object.read(_AT_ONCE):
                plain += some
            self.ended = True
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLZeroReturnError:
            self.ended = True
        return bytes(plain)

    def send(self, octets: bytes) -> None:
        """Encrypt octets; :meth:`take_output` has them then."""
        if not self._is_open:
            self._early += octets
        elif octets:
            self._object.write(octets)

    def take_output(self) -> bytes:
        """The octets to send to the other side now."""
        return self._outgoing.read()
