"""A proxy that records what goes through it, in both directions."""

from __future__ import annotations

import socket
import threading
from contextlib import ExitStack, suppress


class Recorder:
    """Connections to ``listen`` are led on to ``to``, both ``(host, port)``. ``octets``: all that went by."""

    def __init__(self, listen: tuple[str, int], to: tuple[str, int]) -> None:
        self._to = to
        self._pieces: list[bytes] = []
        self._stack = ExitStack()
        self._listener = self._stack.enter_context(socket.create_server(listen))
        self.address: tuple[str, int] = self._listener.getsockname()[:2]
        self._threads = [self._start(self._accept)]

    @property
    def octets(self) -> bytes:
        return b"".join(self._pieces)

    def close(self) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # wakes who accepts
        self._stack.close()
        for thread in self._threads:
            thread.join(10)

    def _start(self, run: object, *arguments: object) -> threading.Thread:
        thread = threading.Thread(target=run, args=arguments, daemon=True)  # type: ignore[arg-type]
        thread.start()
        return thread

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
                server = socket.create_connection(self._to)
            except OSError:
                return
            for one in (client, server):
                self._stack.callback(_close, one)
            self._threads += [
                self._start(self._lead, client, server),
                self._start(self._lead, server, client),
            ]

    def _lead(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while octets := source.recv(65536):
                self._pieces.append(octets)
                target.sendall(octets)
        for one in (source, target):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)


def _close(one: socket.socket) -> None:
    with suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)
    one.close()
