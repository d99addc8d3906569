"""A socket towards a server that notices when its connection ends.

ZeroMQ connects again by itself and says nothing. A client that waits for a response must know, because the
response went with the old connection: it opens the socket anew and asks again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from math import ceil
from typing import TypeAlias

import zmq

from dafka.hub.waits import LONGEST, wait_of
from dafka.zper.clients.errors import ConnectionLostError

Context: TypeAlias = "zmq.Context[zmq.Socket[bytes]]"
Addresses: TypeAlias = "str | Sequence[str]"

RECONNECT, RECONNECT_MOST = 100, 2000  # ms between two attempts to connect, at first and later
_LONGEST_LINGER = 2_000_000.0  # seconds; libzmq has 31 bits for milliseconds
REOPEN = 0.1  # s from one opening of a socket to the next, at least


class Deadline:
    """When waiting ends. ``seconds`` is None or infinite for never. Raises ValueError for NaN, TypeError."""

    def __init__(self, seconds: float | None) -> None:
        wait = wait_of(seconds)
        self._end = None if wait is None or wait > LONGEST else time.monotonic() + wait

    def left(self) -> float | None:
        """Seconds, 0 or more."""
        return None if self._end is None else max(0.0, self._end - time.monotonic())

    def milliseconds(self) -> int | None:
        """The same for poll(), which waits for ever with None."""
        left = self.left()
        return None if left is None else ceil(left * 1000)

    def passed(self) -> bool:
        return self.left() == 0


def connect(socket: zmq.Socket[bytes], addresses: Sequence[str]) -> None:
    """Connect to all of them. Raises ValueError for one that ZeroMQ does not take."""
    for address in addresses:
        try:
            socket.connect(address)
        except zmq.ZMQError as error:
            raise ValueError(
                f"cannot connect to {address!r}, an address is tcp://host:port: {error}"
            ) from error


class Connection:
    """A DEALER socket with an identity.

    ``identity`` is called at every opening: a server may still hold the connection of before under the old
    one. With ``notice`` the end of a connection is an error; without it ZeroMQ connects again and what is
    queued in the socket stays there.
    """

    def __init__(
        self,
        addresses: Addresses,
        identity: Callable[[], bytes],
        *,
        context: Context | None = None,
        high_water_mark: int = 1000,
        notice: bool = True,
    ) -> None:
        self.addresses = [addresses] if isinstance(addresses, str) else list(addresses)
        if not self.addresses:
            raise ValueError("an address to connect to is needed")
        self._identity = identity
        self._context: Context = context or zmq.Context.instance()
        self._high_water_mark = high_water_mark
        self._notice = notice
        self._monitor: zmq.Socket[bytes] | None = None
        self.opened = 0
        """How often."""
        self.is_asked = False
        """Whether a request was sent, and its response was not taken."""
        self.closed = False
        self._socket: zmq.Socket[bytes] | None = None
        self._open()

    def _open(self) -> None:
        self._opened_at = time.monotonic()
        self.opened += 1
        socket = self._context.socket(zmq.DEALER)
        try:
            socket.setsockopt(zmq.IDENTITY, self._identity())
            socket.setsockopt(zmq.LINGER, 0)  # close() says how long
            socket.setsockopt(zmq.RECONNECT_IVL, RECONNECT)
            socket.setsockopt(zmq.RECONNECT_IVL_MAX, RECONNECT_MOST)
            socket.setsockopt(zmq.TCP_KEEPALIVE, 1)
            socket.set_hwm(self._high_water_mark)
            if self._notice:
                self._monitor = socket.get_monitor_socket(zmq.EVENT_DISCONNECTED)
            poller = zmq.Poller()
            poller.register(socket, zmq.POLLIN)
            if self._monitor is not None:
                poller.register(self._monitor, zmq.POLLIN)
            connect(socket, self.addresses)
        except BaseException:
            if self._monitor is not None:
                self._monitor.close(0)
            socket.close(0)
            raise
        self._poller = poller
        self._socket = socket

    def reopen(self, deadline: Deadline) -> None:
        """Forget everything on its way, and connect anew; if Ctrl-C ends this, at the next call."""
        self._check_open()
        self._shut(0)
        self.is_asked = False
        pause = self._opened_at + REOPEN - time.monotonic()
        left = deadline.left()
        if pause > 0:
            time.sleep(pause if left is None else min(pause, left))
        self._open()

    def try_send(self, frames: Sequence[bytes]) -> bool:
        """Whether there was room for the message."""
        try:
            self.socket.send_multipart(frames, zmq.DONTWAIT, copy=True)
        except zmq.Again:
            return False
        return True

    def try_receive(self) -> list[bytes] | None:
        """A message, if there is one."""
        try:
            return self.socket.recv_multipart(zmq.DONTWAIT)
        except zmq.Again:
            return None

    def receive(self, deadline: Deadline) -> list[bytes] | None:
        """The next message; None if the deadline passes first.

        Raises :class:`ConnectionLostError` when all messages of a connection that has ended have been read.
        """
        while True:
            message = self.try_receive()
            if message is not None or not self.wait(deadline, to_send=False):
                return message

    def wait(self, deadline: Deadline, *, to_send: bool) -> bool:
        """Wait until there is a message, or room for one; False if the deadline passes first.

        Raises :class:`ConnectionLostError` if the connection has ended and there is no message.
        """
        socket = self.socket
        self._poller.modify(socket, zmq.POLLIN | (zmq.POLLOUT if to_send else 0))
        ready = dict(self._poller.poll(deadline.milliseconds()))
        if self._monitor in ready and not int(socket.getsockopt(zmq.EVENTS)) & zmq.POLLIN:
            raise ConnectionLostError(f"the connection to {', '.join(self.addresses)} has ended")
        return bool(ready)

    @property
    def ended(self) -> bool:
        """Whether a connection has ended since the opening, where that is an error. Messages received while
        it is False are of the same connection."""
        return self._monitor is not None and bool(self._monitor.poll(0))

    @property
    def socket(self) -> zmq.Socket[bytes]:
        self._check_open()
        if self._socket is None:
            self._open()
        assert self._socket is not None
        return self._socket

    def close(self, linger: float | None) -> None:
        """``linger`` is how many seconds what is queued may take to be sent; None: for ever."""
        self.closed = True
        self._shut(linger)

    def _check_open(self) -> None:
        if self.closed:
            raise ValueError("the client is closed")

    def _shut(self, linger: float | None) -> None:
        if self._socket is None:
            return
        if self._monitor is not None:
            self._socket.disable_monitor()
            self._monitor.close(0)
            self._monitor = None
        wait = wait_of(linger)
        self._socket.close(-1 if wait is None else int(max(0.0, min(wait, _LONGEST_LINGER)) * 1000))
        self._socket = None
