"""Listening sockets of the hub: bound, accepted from, and closed in forked children.

They belong to the hub's gevent loop. Programs that are started with exec do not inherit them
(Python's default), and a forked child closes its copies at once, so a port and its connections end when their
owner closes them.
"""

from __future__ import annotations

import errno
import logging
import os
import socket as sockets
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import gevent
import gevent.socket
from gevent import monkey

from dafka.hub.hub import Hub
from dafka.hub.turns import Pace
from dafka.sockets import limits
from dafka.sockets.hosts import host_octets

log = logging.getLogger(__name__)

_getaddrinfo = monkey.get_original("socket", "getaddrinfo")
_NO_MORE = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}


class Port:
    """Accepts connections on ``socket``, a bound socket from :func:`bind`: ``accepted(socket, address)``.

    While ``accepted`` waits, nothing more is accepted. It owns the socket, and ends it with :func:`close`.
    Raises OSError.
    """

    def __init__(self, hub: Hub, socket: Any, accepted: Callable[[Any, Any], None]) -> None:
        self._socket = socket
        self._accepted = accepted
        self._closed = False
        self._turns = hub.turns
        self._pace = Pace()
        try:
            socket.listen(limits.BACKLOG)
        except OSError as error:  # another socket was bound there as well, and has listened first
            host, port = self.address
            close(socket)
            raise OSError(error.errno, f"cannot listen on {host}:{port}: {error.strerror}") from error
        self._accepting = hub.keep(self._accept)

    @property
    def address(self) -> tuple[str, int]:
        """The host and the port."""
        host, port = self._socket.getsockname()[:2]
        return host, port

    def close(self) -> None:
        """Close the port; connections stay."""
        if not self._closed:
            self._closed = True
            self._accepting.kill(block=False)
            close(self._socket)

    def _accept(self) -> None:
        full = False
        while not self._closed:
            try:
                socket, address = self._socket.accept()
            except OSError as error:
                if self._closed:
                    return
                if error.errno not in _NO_MORE:
                    continue  # the client has already disconnected
                if not full:
                    log.warning("no connection can be accepted: %s", error)
                full = True
                gevent.sleep(limits.FULL_SECONDS)
                continue
            full = False
            keep(socket)
            try:
                self._accepted(socket, address)
            except BaseException:  # it may be waiting when the port is closed
                close(socket)
                raise
            if self._turns.elapsed > limits.TURN_SECONDS:
                self._pace.pause()


def bind(host: str, port: int) -> Any:
    """A socket of the hub bound to an interface and a port (0: any). Raises OSError."""
    try:
        family, address = resolve(host or None, port, passive=True)[0]
    except OSError as error:
        raise OSError(f"{host!r} is not an address of this machine: {error}") from error
    socket = gevent.socket.socket(family, sockets.SOCK_STREAM)
    try:
        # Old connections of an earlier owner do not block the port; another listening process still does.
        socket.setsockopt(sockets.SOL_SOCKET, sockets.SO_REUSEADDR, 1)
        socket.bind(address)
    except OSError as error:
        socket.close()
        raise OSError(error.errno, f"cannot listen on {host}:{port}: {error.strerror}") from error
    keep(socket)
    return socket


def resolve(host: str | None, port: int, *, passive: bool = False) -> list[tuple[Any, Any]]:
    """The families and addresses of a host, one at least. Raises OSError."""
    flags = sockets.AI_PASSIVE if passive else 0
    octets = None if host is None else host_octets(host)
    try:  # numeric addresses need no resolver and no thread
        found = _getaddrinfo(octets, port, type=sockets.SOCK_STREAM, flags=flags | sockets.AI_NUMERICHOST)
    except OSError:
        found = gevent.socket.getaddrinfo(octets, port, type=sockets.SOCK_STREAM, flags=flags)
    return [(family, address) for family, _, _, _, address in found]


def keep(socket: Any) -> None:
    """Have a socket of the hub closed in forked children, until it is closed here with :func:`close`."""
    _open.add(socket)


def forget(socket: Any) -> None:
    """Take :func:`keep` back."""
    _open.discard(socket)


def close(socket: Any) -> None:
    """Close a socket of the hub."""
    _open.discard(socket)
    socket.close()


_open: set[Any] = set()  # the sockets of this process


def _give_back_after_fork() -> None:
    for socket in _open:
        with suppress(OSError):  # one that is closed already does not keep the others open
            # Without gevent, whose loop belongs to the parent process.
            os.close(socket._sock.detach())
    _open.clear()


os.register_at_fork(after_in_child=_give_back_after_fork)
