"""The queue of octets to one peer, sent without a green thread of its own.

Senders put buffers in, and all of them go out together at the end of the hub's turn. If the kernel does not
take everything, a watcher sends the rest when the socket has room. So ten thousand peers cost nothing but
their queues, and these are bounded: a sender waits for room, or drops its message.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable
from itertools import islice
from typing import TYPE_CHECKING, Any

import gevent
import gevent.event

from dafka.hub.changes import Changes
from dafka.hub.hub import Hub
from dafka.hub.pool import BATCHES
from dafka.hub.turns import in_later_turn
from dafka.sockets import limits
from dafka.sockets.leases import Flight

if TYPE_CHECKING:  # its cryptography is not always installed
    from dafka.zmtp.sealing import Sealer

_WRITE = 2  # libev's EV_WRITE


class Queued:
    """Octets that wait to be sent to all peers of a socket: at most ``one`` for a peer, ``all_`` together."""

    def __init__(self, hub: Hub, one: int | None = None, all_: int | None = None) -> None:
        self.hub = hub
        self.turns = hub.turns
        self._one, self._all = one, all_
        self.held = 0  # octets, with what buffers take besides
        self.sent = 0  # octets since the start
        self.waiting = 0  # senders that wait for others' octets to leave
        self.room = Changes()
        self.flight: Flight | None = None
        """What another thread sends now, or could not send (:mod:`dafka.sockets.leases`)."""
        self.version = 0
        """Leases of earlier versions are of no use any more."""

    @property
    def most(self) -> int:
        """How much may wait for all peers."""
        return self._all or limits.ALL_QUEUED_OCTETS

    def allowance(self) -> int:
        """How much may wait for one peer."""
        return min(
            self._one or limits.QUEUED_OCTETS, max(limits.QUEUED_LEAST_OCTETS, (self.most - self.held) // 4)
        )

    def is_free(self) -> bool:
        """Whether no other thread is sending. What one could not send is queued first."""
        flight = self.flight
        if flight is None:
            return True
        if not flight.ended:
            return False
        self.flight = None
        self.sent -= flight.hand_over()
        return True

    def count_flight(self, octets: int) -> None:
        """Count a flight of so many octets to all of its peers, and see to it that its rest goes out too."""
        self.sent += octets
        self._look_at_flight()

    def _look_at_flight(self, _: None = None) -> None:
        if not self.is_free():
            in_later_turn(self._look_at_flight)


class Outbox:
    """The queue of one socket. ``failed()`` is called when sending fails; the owner then closes it."""

    def __init__(self, socket: Any, queued: Queued, failed: Callable[[], None]) -> None:
        self.octets = 0
        """Octets that the kernel has not taken yet."""
        self.progressed = time.monotonic()
        """When the kernel took some, or when the first of those that wait came."""
        self.socket = socket._sock
        self._all = queued
        self._failed = failed
        self._buffers: deque[bytes | memoryview] = deque()
        self._held = 0
        self._loop = gevent.get_hub().loop
        self._writable: Any = None
        self._scheduled = False
        self._closed = False
        self._room = Changes()
        self._sealer: Sealer | None = None
        self._sealed = memoryview(b"")  # octets on their way to the kernel
        self._sealed_from: tuple[int, int] = 0, 0  # before sealing: octets, and octets held
        self._sealing = False  # a long frame, in a thread

    @property
    def buffers(self) -> Iterable[bytes | memoryview]:
        """The waiting octets, without those that are being sealed."""
        return self._buffers

    @property
    def may_be_leased(self) -> bool:
        """Whether another thread may send: what is sealed is sealed in its order."""
        return self._sealer is None and not self._closed

    def secure(self, sealer: Sealer) -> None:
        """Have everything sealed that is put in from now on."""
        self._sealer = sealer
        self._sealed = memoryview(b"".join(self._buffers))
        self._sealed_from = self.octets, self._held
        self._buffers.clear()

    def has_room(self, size: int) -> bool:
        """Whether ``size`` octets may be put in now; for an empty outbox mostly, whatever their size."""
        if not self._all.held or self._held + size <= self._all.allowance():
            return True
        return not self._held and self._all.held + size <= self._all.most

    def put(self, buffers: list[bytes]) -> None:
        """Queue octets. They are sent in order, after those that wait already."""
        if self._closed:
            return
        if not self._buffers:
            self.progressed = time.monotonic()
        size = sum(map(len, buffers))
        self._buffers += buffers
        self.octets += size
        held = size + limits.BUFFER_OCTETS * len(buffers)
        self._held += held
        self._all.held += held
        if not self._scheduled:
            self._scheduled = True
            self._all.hub.soon(self._send)

    def put_first(self, octets: bytes) -> None:
        """Queue octets in front of all others: the rest of what another thread began to send."""
        if self._closed or not octets:
            return
        waiting = [*self._buffers]
        self._buffers.clear()
        self.put([octets])
        self._buffers += waiting

    def wait(self, size: int) -> bool:
        """Wait as a green thread until there is room; whether the outbox is still open."""
        while not self._closed and not self.has_room(size):
            if self._held:
                self._room.wait()
            else:
                self._all.waiting += 1
                try:
                    self._all.room.wait()
                finally:
                    self._all.waiting -= 1
        return not self._closed

    def flush(self) -> None:
        """Send what the kernel takes now."""
        if self._waits:
            self._send_now()

    def close(self) -> None:
        """Drop the waiting octets, and wake the waiting senders. To be called before the socket is closed."""
        if self._closed:
            return
        self._closed = True
        if self._writable is not None:
            self._writable.stop()
            self._writable.close()
            self._writable = None
        self._buffers.clear()
        self._sealed = memoryview(b"")
        self.octets = 0
        self._hold(-self._held)
        self._room.tell()
        self._all.room.tell()

    def _hold(self, size: int) -> None:
        self._held += size
        self._all.held += size
        if size < 0:
            if 2 * self._held <= self._all.allowance():
                self._room.tell()
            if self._all.waiting:
                self._all.room.tell()

    def _send(self) -> None:
        """Called by the loop. ``_scheduled`` stays until everything is gone."""
        if self._all.turns.elapsed <= limits.TURN_SECONDS:
            self._send_now()
        elif not self._closed:
            if self._writable is not None:
                self._writable.stop()
            in_later_turn(self._send_now)

    @property
    def _waits(self) -> bool:
        return bool(self._buffers or self._sealed)

    def _send_now(self, _: None = None) -> None:
        if self._closed or self._sealing:
            return
        self._scheduled = True
        if not self._all.is_free():
            in_later_turn(self._send_now)
            return
        most = limits.SENT_AT_ONCE
        send = self._send_some if self._sealer is None else self._send_sealed
        try:
            while self._waits and most > 0 and not self._sealing:
                most -= send(most)
        except BlockingIOError:
            pass
        except OSError:
            self._failed()
            return
        if self._sealing:
            if self._writable is not None:
                self._writable.stop()
        elif self._waits:
            if self._writable is None:
                self._writable = self._loop.io(self.socket.fileno(), _WRITE)
            if not self._writable.active:
                self._writable.start(self._send)
        else:
            self._scheduled = False
            if self._writable is not None:
                self._writable.stop()

    def _send_some(self, most: int) -> int:
        buffers = self._buffers
        if len(buffers) == 1 or len(buffers[0]) >= most:
            sent = self.socket.send(memoryview(buffers[0])[:most])
        else:
            some, size = list[bytes | memoryview](), 0
            for buffer in islice(buffers, limits.BUFFERS_AT_ONCE):
                some.append(buffer)
                size += len(buffer)
                if size >= most:
                    break
            sent = self.socket.sendmsg(some)
        self.progressed = time.monotonic()
        self.octets -= sent
        self._all.sent += sent
        left, gone = sent, sent
        while buffers and left >= len(buffers[0]):
            left -= len(buffers.popleft())
            gone += limits.BUFFER_OCTETS
        if left:
            buffers[0] = memoryview(buffers[0])[left:]
        self._hold(-gone)
        return int(sent)

    def _send_sealed(self, most: int) -> int:
        """As :meth:`_send_some`: the octets that were put in, of what is gone; those of a piece count at its
        end."""
        if not self._sealed:
            piece, held = self._take_piece()
            self._sealed_from = len(piece), held
            if len(piece) > limits.SEALED_INLINE_OCTETS:
                self._sealing = True
                gevent.spawn(self._seal_aside, piece)
                return 0
            assert self._sealer is not None
            self._sealed = memoryview(self._sealer.seal(piece))
        if self._sealed:
            sent = self.socket.send(self._sealed)
            self.progressed = time.monotonic()
            self._all.sent += sent
            self._sealed = self._sealed[sent:]
        if self._sealed:
            return most  # the kernel has taken what it has room for
        size, held = self._sealed_from
        self.octets -= size
        self._hold(-held)
        return most if self._all.turns.elapsed > limits.TURN_SECONDS else max(size, 1)

    def _take_piece(self) -> tuple[bytes, int]:
        """The next octets to be sealed at once, and what they hold of the bounds."""
        buffers = self._buffers
        piece = [buffers.popleft()]
        size = len(piece[0])
        while buffers and size + len(buffers[0]) <= limits.SEALED_AT_ONCE:
            size += len(buffers[0])
            piece.append(buffers.popleft())
        return b"".join(piece), size + limits.BUFFER_OCTETS * len(piece)

    def _seal_aside(self, piece: bytes) -> None:
        assert self._sealer is not None
        sealed = BATCHES.run(self._sealer.seal, piece)
        self._sealing = False
        if not self._closed:
            self._sealed = memoryview(sealed)
            self._send_now()
