"""A server for few requests over HTTP, which scrape metrics or ask for the health of a node."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterable
from socketserver import ThreadingMixIn
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

SECONDS = 60
"""In which a request comes."""


CONNECTIONS = 64
"""At a time, each with a thread; a further one is closed at once."""


class _Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._places = threading.Semaphore(CONNECTIONS)
        super().__init__(*args, **kwargs)

    def process_request(self, request: Any, client_address: Any) -> None:
        if not self._places.acquire(blocking=False):
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except BaseException:  # no thread could be started
            self._places.release()
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._places.release()


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
