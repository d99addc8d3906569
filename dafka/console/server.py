"""The thread that serves browsers.

It has a gevent loop of its own: work of the console, long lists and searches, makes no turn of the hub
longer. Calls of the broker cross into the hub and wait as green threads of this loop. A browser that does not
send or read for some time is disconnected, and only so many are served at once.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import ExitStack, suppress
from http.client import HTTPException
from typing import Any

import gevent
import gevent.event
import gevent.pool
from gevent import monkey
from gevent.pywsgi import WSGIHandler, WSGIServer

from dafka.console import limits
from dafka.hub.hub import Waiter
from dafka.security.renewing import Renewed
from dafka.sockets import listening, tls
from dafka.sockets.errors import HandshakeError

log = logging.getLogger(__name__)

Make = Callable[[ExitStack], Any]
"""Makes the WSGI application, and leaves with the stack what is to be closed behind it."""

_start_thread = monkey.get_original("_thread", "start_new_thread")
_STOP_SECONDS = 0.2  # that answers under way may take when the console is closed


class _Handler(WSGIHandler):  # type: ignore[misc]  # gevent has no types
    """One connection of a browser."""

    def __init__(self, socket: Any, address: Any, server: Any, rfile: Any = None) -> None:
        listening.keep(socket)
        socket.settimeout(limits.SOCKET_SECONDS)
        super().__init__(socket, address, server, rfile)

    def read_requestline(self) -> Any:
        # Browsers keep connections without a request, but no others wait for one that they keep.
        with gevent.Timeout(limits.SOCKET_SECONDS, TimeoutError("no request")):
            return super().read_requestline()

    def read_request(self, raw_requestline: Any) -> Any:
        """In a bounded time, however few octets come at a time."""
        with gevent.Timeout(limits.HEAD_SECONDS, TimeoutError("the head of the request took too long")):
            return super().read_request(raw_requestline)

    def MessageClass(self, *args: Any) -> Any:
        headers = super().MessageClass(*args)
        if not _is_clear(headers) or ("Transfer-Encoding" in headers and self.request_version == "HTTP/1.0"):
            headers.status = "it has more than one end, or name"
        return headers

    def _connection_upgrade_requested(self) -> bool:
        """Never: the body of a request that asks for another protocol ends where every body ends."""
        return False

    def finalize_headers(self) -> None:
        super().finalize_headers()
        if self.command == "HEAD":  # without a body there is no last chunk of one
            self.response_use_chunked = False

    def run_application(self) -> None:
        try:
            super().run_application()
        finally:
            self._skip_body()

    def _skip_body(self) -> None:
        """Read the rest of the body that the application has not read, in a bounded time."""
        body = self.wsgi_input
        try:
            with gevent.Timeout(limits.BODY_SECONDS, TimeoutError("the body took too long")):
                body._discard()
        except OSError:
            body._chunked_input_error = True  # nothing more is read of it
            self.close_connection = True

    def _handle_client_error(self, error: Any) -> Any:
        if isinstance(error, (TimeoutError, ConnectionError)):
            return None  # the browser is too slow, or has gone
        if isinstance(error, HTTPException):
            error = ValueError(str(error))
        return super()._handle_client_error(error)

    def handle(self) -> None:
        socket, reader = self.socket, self.rfile
        try:
            super().handle()
        finally:
            # The socket is closed when its file is, and that only when nothing refers to it any more: by a
            # collection of garbage in any thread, perhaps after the end of this one and its loop.
            with suppress(OSError):
                reader.close()
            listening.forget(socket)

    def log_request(self) -> None:
        """Requests are not logged: their paths name topics and what was searched for."""

    def handle_error(self, kind: Any, value: Any, trace: Any) -> None:
        if isinstance(value, OSError):  # the browser has gone, or does not read
            self.close_connection = True
            return
        super().handle_error(kind, value, trace)


def _is_clear(headers: Any) -> bool:
    """Whether everybody sees the same end of the body: a proxy that sees another one lets a second request
    through, hidden in the first one."""
    lengths, codings = (headers.get_all(name, ()) for name in ("Content-Length", "Transfer-Encoding"))
    if len(lengths) + len(codings) > 1 or len(headers.get_all("Host", ())) > 1:
        return False
    return all(one.isascii() and one.isdigit() for one in lengths) and all(
        one.lower() == "chunked" for one in codings
    )


class _TlsServer(WSGIServer):  # type: ignore[misc]  # gevent has no types
    """Each connection begins with a handshake, for which it has a bounded time."""

    renewed: Renewed

    def wrap_socket_and_handle(self, client_socket: Any, address: Any) -> Any:
        try:
            secured = tls.handshake(
                client_socket, self.renewed.context, limits.HANDSHAKE_SECONDS, server_side=True
            )
        except HandshakeError as error:  # of one that speaks HTTP without TLS, or says nothing
            log.debug("no TLS with %s: %s", address, error)
            return None
        try:
            return self.handle(secured, address)
        finally:
            listening.close(secured)


class Server:
    """Serves from when it is made. Any thread, the hub's too. Raises OSError if it cannot listen."""

    def __init__(self, host: str, port: int, make: Make, renewed: Renewed | None = None) -> None:
        """``make`` is called in the thread that serves; ``renewed``: the certificate, None without TLS."""
        self._host, self._port, self._make = host, port, make
        self._tls = renewed
        self._ready, self._ended = Waiter(), Waiter()
        self._failure: BaseException | None = None
        self._stop: Any = None
        self.address = ("", 0)
        _start_thread(self._run, ())
        self._ready.wait()
        if self._failure is not None:
            self._ended.wait()
            raise self._failure

    def close(self) -> None:
        """Disconnect everybody; waits."""
        self._stop.send()
        self._ended.wait()

    def _run(self) -> None:
        loop = gevent.get_hub().loop
        stopped = gevent.event.Event()
        rest = ExitStack()
        try:
            try:
                socket = listening.bind(self._host, self._port)
                self.address = socket.getsockname()[:2]
                socket.listen(limits.CONNECTIONS)
                server = (WSGIServer if self._tls is None else _TlsServer)(
                    socket,
                    self._make(rest),
                    log=None,
                    error_log=_ToLog(),
                    handler_class=_Handler,
                    spawn=gevent.pool.Pool(limits.CONNECTIONS),
                    **({} if self._tls is None else {"ssl_context": self._tls.context}),
                )
                server.renewed = self._tls
                server.stop_timeout = _STOP_SECONDS
                self._stop = loop.async_()
                self._stop.start(stopped.set)
                server.start()
            except BaseException as error:
                self._failure = error
                return
            finally:
                self._ready.set()
            stopped.wait()
            server.stop(timeout=_STOP_SECONDS)
            listening.forget(socket)
        finally:
            rest.close()
            if self._stop is not None:
                self._stop.close()
            # Before a caller that may end the program goes on: an interpreter that ends while a green thread
            # of this loop runs crashes.
            try:
                gevent.get_hub().destroy(destroy_loop=True)
            finally:
                self._ended.set()


class _ToLog:
    """A file in which gevent writes its errors."""

    def write(self, text: str) -> None:
        if text.strip():
            log.error("%s", text.rstrip())

    def flush(self) -> None:
        """There is nothing to flush."""
