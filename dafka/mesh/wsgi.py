"""A server for few requests over HTTP: those of who scrapes metrics, or asks for the health of a node."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterable
from socketserver import ThreadingMixIn
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

SECONDS = 60
"""In which a request comes."""


class _Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True


class _Server6(_Server):
    address_family = socket.AF_INET6


class _Silent(WSGIRequestHandler):
    """Writes no line for each request."""

    timeout = SECONDS

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing."""


def serve(host: str, port: int, answer: Callable[..., Iterable[bytes]]) -> WSGIServer:
    """A server of the WSGI application ``answer``, which is bound and does not serve yet.

    Raises OSError if the address cannot be bound, or if ``host`` is unknown.
    """
    family = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0][0]
    return make_server(host, port, answer, _Server6 if family == socket.AF_INET6 else _Server, _Silent)
