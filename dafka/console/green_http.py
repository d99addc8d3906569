"""HTTP to servers of others, asked in the console's thread: a connection that waits as a green thread."""

from __future__ import annotations

import http.client
import ssl

import gevent.socket
from gevent.ssl import SSLSocket


class GreenConnection(http.client.HTTPConnection):
    """``seconds``: that connecting, sending and each read may take. ``tls``: None for plain HTTP."""

    def __init__(self, host: str, port: int, seconds: float, tls: ssl.SSLContext | None = None) -> None:
        super().__init__(host, port, timeout=seconds)
        self._seconds = seconds
        self._tls = tls

    def connect(self) -> None:
        self.sock = gevent.socket.create_connection((self.host, self.port), self._seconds)
        if self._tls is not None:
            self.sock = SSLSocket(self.sock, server_hostname=self.host, _context=self._tls)
