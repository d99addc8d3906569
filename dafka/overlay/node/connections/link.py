"""A TCP connection to a peer: a green thread reads it and cuts what comes, a queue holds what is sent."""

from __future__ import annotations

import logging
import socket as sockets
import time
from collections.abc import Iterable
from contextlib import suppress
from typing import Any, Protocol

import gevent
import gevent.event

from dafka.hub.readable import Readable
from dafka.hub.turns import Pace, TurnGauge
from dafka.overlay.limits import HANDSHAKE_OCTETS, MESSAGE_OCTETS
from dafka.overlay.node import limits
from dafka.overlay.wire.frames import FrameReader
from dafka.protocol.errors import MalformedMessage
from dafka.sockets import listening
from dafka.sockets.budget import Budget
from dafka.sockets.outbox import Outbox, Queued

log = logging.getLogger(__name__)


class Carrier(Protocol):
    """The owner of links."""

    def began(self, link: Link) -> None: ...

    def heard(self, link: Link, messages: list[bytes]) -> None: ...

    def malformed(self, link: Link, error: MalformedMessage) -> None: ...

    def ended(self, link: Link) -> None: ...


class _Finished(gevent.GreenletExit):  # type: ignore[misc]
    """Reading is to end."""


class Link:
    """A link calls its carrier in a green thread of its own: :meth:`Carrier.began` first, at the end
    :meth:`Carrier.ended`, unless the link is closed from here."""

    def __init__(
        self,
        number: int,
        socket: Any,
        address: tuple[str, int],
        is_connector: bool,
        received: Budget,
        queued: Queued,
        turns: TurnGauge,
        carrier: Carrier,
    ) -> None:
        self.number = number
        self.address = address
        """Where the other end is, ``(host, port)``: as it was to be connected to, or where it came from."""
        self.is_connector = is_connector
        self.is_plain = False
        """Whether the peer speaks version 1."""
        self._socket = socket
        self._reader = FrameReader(HANDSHAKE_OCTETS)
        self._received = received
        self._turns = turns
        self._readable = Readable(socket, turns)
        self._carrier = carrier
        self._at_once = 1
        self._green: gevent.Greenlet | None = None
        self._pace = Pace()
        self._resumed = gevent.event.Event()
        self._resumed.set()
        self._closing = self._closed = False
        prepare(socket)
        self._outbox = Outbox(socket, queued, self.abort)

    # -- for the carrier ----------------------------------------------------------------------------

    @property
    def queued(self) -> int:
        """Octets that the kernel has not taken yet."""
        return self._outbox.octets

    @property
    def buffers(self) -> Iterable[bytes | memoryview]:
        """The octets, as they were given to :meth:`send`."""
        return self._outbox.buffers

    @property
    def is_congested(self) -> bool:
        """Whether the queue is so long that senders should wait, if they can: :meth:`wait_for_room`."""
        return not self._outbox.has_room(0)

    def wait_for_room(self) -> None:
        """Wait as a green thread until the queue is shorter, or the connection is closed."""
        self._outbox.wait(1)

    def established(self) -> None:
        """The handshake is over: messages may be larger."""
        self._reader.limit = MESSAGE_OCTETS

    def send(self, octets: bytes) -> None:
        """Queue octets; all that was queued in a turn of the hub is sent at its end."""
        self._outbox.put([octets])
        if self._outbox.octets > limits.LINK_OCTETS:
            self.give_up(f"it reads nothing, {self.queued} octets wait")

    def give_up(self, why: str) -> None:
        """Close it at once, and log why."""
        log.warning("the peer at %s:%d is disconnected: %s", *self.address, why)
        self.abort()

    def pause(self) -> None:
        """Read nothing more for now."""
        self._resumed.clear()

    def resume(self) -> None:
        """Read again."""
        self._resumed.set()

    def finish(self) -> None:
        """Close it when what is queued is sent, and the other end has read it. Nothing more is heard."""
        if self._closing:
            return
        self._closing = True
        if self._green is not None and self._green is not gevent.getcurrent():
            self._green.kill(_Finished, block=False)

    def abort(self) -> None:
        """Close it at once. The carrier is told, unless it has said :meth:`finish`."""
        if self._closed:
            return
        self._closed = True
        self._reader = FrameReader(0)  # the link may be referred to until the next collection of garbage
        self._resumed.set()
        self._outbox.close()
        self._received.charge(self, 0)  # it may wait there
        with suppress(OSError):
            self._socket.shutdown(sockets.SHUT_RDWR)
        listening.close(self._socket)

    # -- the green thread ---------------------------------------------------------------------------

    def run(self) -> None:
        """Read until it is closed, from here or from there."""
        self._green = gevent.getcurrent()
        try:
            with suppress(_Finished):
                self._rest()
                self._carrier.began(self)
                self._read()
                self._rest()
            if not self._closing:
                self._carrier.ended(self)
            if not self._closed:
                self._linger()
        finally:
            self.abort()

    def _read(self) -> None:
        receive = self._socket._sock.recv
        received = self._received
        while not (self._closing or self._closed):
            self._resumed.wait()
            size = received.next_read(self)
            try:
                octets = receive(size)
            except BlockingIOError:
                if not self._wait_for_octets():
                    return
                self._rest()  # many may have been woken at once
                continue
            except OSError:
                return
            if not octets:
                return
            before = self._reader.held
            if before or len(octets) > limits.UNCHARGED_OCTETS:
                received.charge(self, before + len(octets))
            taken = self._take(octets)
            if before or len(octets) > limits.UNCHARGED_OCTETS or self._reader.held:
                received.charge(self, self._reader.held, anew=taken)
            self._rest()

    def _take(self, octets: bytes) -> bool:
        """Whether a message was complete."""
        reader, taken = self._reader, False
        reader.feed(octets)
        try:
            while not (self._closing or self._closed) and (messages := reader.take(self._at_once)):
                taken = True
                self._hear(messages)
                self._rest()
        except MalformedMessage as error:
            self._carrier.malformed(self, error)
        return taken

    def _hear(self, messages: list[bytes]) -> None:
        """Have messages handled, and as many the next time as there is time for: those that change a store,
        or the routing, take a hundred times as long as others."""
        began = time.thread_time()
        self._carrier.heard(self, messages)
        taken = time.thread_time() - began
        if taken > limits.HEARD_SECONDS:
            self._at_once = max(1, len(messages) // 2)
        elif self._reader.limit == MESSAGE_OCTETS and 2 * taken < limits.HEARD_SECONDS:
            self._at_once = min(2 * self._at_once, limits.HEARD_MESSAGES)

    def _rest(self) -> None:
        """Go on in a later turn of the hub, if this one has been long enough."""
        if self._turns.elapsed > limits.TURN_SECONDS:
            self._pace.pause()

    def _wait_for_octets(self) -> bool:
        try:
            self._readable.wait()
        except OSError:
            return False
        return True

    def _linger(self) -> None:
        """Octets that the other end has not read yet would be lost if there were unread ones from it."""
        with gevent.Timeout(limits.LINGER_SECONDS, False):
            while self._outbox.octets:
                gevent.sleep(0.002)
            with suppress(OSError):
                self._socket.shutdown(sockets.SHUT_WR)
                while self._socket.recv(limits.READ_OCTETS):
                    pass


def prepare(socket: Any) -> None:
    """Small messages are sent at once; a machine that is gone is noticed by its silence."""
    socket.settimeout(None)
    with suppress(OSError):  # it has already disconnected
        socket.setsockopt(sockets.IPPROTO_TCP, sockets.TCP_NODELAY, 1)
