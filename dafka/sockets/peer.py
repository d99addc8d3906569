"""One peer of a socket: a green thread that reads its connection, and a queue of what is sent to it."""

from __future__ import annotations

import logging
import socket as sockets
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any, Protocol

from dafka.hub.pool import BATCHES
from dafka.hub.readable import Readable
from dafka.hub.turns import Pace, in_later_turn
from dafka.sockets import limits, listening
from dafka.sockets.batches import batches
from dafka.sockets.errors import DisconnectedError
from dafka.sockets.loans import Loan
from dafka.sockets.outbox import Outbox
from dafka.sockets.shared import Shared
from dafka.sockets.tcp import prepare
from dafka.zmtp.connection import Cancel, Connection, Established, Event, Messages, Options, Ping, Subscribe
from dafka.zmtp.cutting import Frames, Taker
from dafka.zmtp.encoding import Message, encode
from dafka.zmtp.errors import ProtocolError

log = logging.getLogger(__name__)


class Pattern(Protocol):
    """The behaviour of a kind of socket towards its peers. A ProtocolError of any but ``left`` disconnects
    the peer."""

    def joined(self, peer: Peer) -> None:
        """The handshake is complete; the first call for a peer."""

    def messages(self, peer: Peer, messages: list[Frames]) -> None:
        """Messages have arrived. While this waits, the peer is not read."""

    def subscribed(self, peer: Peer, prefix: bytes) -> None:
        """A subscription has arrived, at a publisher."""

    def cancelled(self, peer: Peer, prefix: bytes) -> None:
        """A subscription was taken back."""

    def left(self, peer: Peer) -> None:
        """The connection is closed; the last call for a peer that has joined."""


class Peer:
    """A peer.

    ``identity``, ``socket_type`` (``b"DEALER"``, ...), ``version`` ((3, 1), ...) and ``key`` (with CURVE its
    public key, 32 octets; else empty) come from its handshake; ``address`` is where it connects from,
    ``(host, port)``, ``dialled`` the endpoint that was connected to. ``data`` belongs to the handler.
    """

    def __init__(
        self,
        shared: Shared,
        pattern: Pattern,
        options: Options,
        socket: Any,
        address: Any,
        dialled: str = "",
    ) -> None:
        self.identity = b""
        self.socket_type = b""
        self.version = (0, 0)
        self.key = b""
        self.address = address[:2]
        self.dialled = dialled
        self.data: Any = None
        self.express: Callable[[Peer, bytes], bool] | None = None
        """Of the handler: takes the few octets of one message that came alone; whether it knows it. It may
        lend the connection then (:mod:`dafka.sockets.loans`)."""
        self.loan: Loan | None = None
        """Of the thread that receives here in the hub's place."""
        self.socket = socket
        self.waits_since: float | None = None
        """Since when the peer's next octets are waited for; None while received ones are handled. While it is
        lent, this and ``emptied`` are the thread's to write."""
        self.emptied = 0.0
        """When all that had come was read and handled."""
        self.reads = limits.READ_FIRST_OCTETS
        """Octets read at once, as far as there is room: more while much comes."""
        self.ttl = 0.0  # of the last PING
        self.began = time.monotonic()
        self._shared = shared
        self._pattern = pattern
        self._connection = Connection(options)
        self.taker: Taker | None = self._connection.taker
        """Takes messages of this connection in bulk."""
        self._outbox = Outbox(socket, shared.queued, self.close)
        self._in_hand = 0  # octets of which not everything is handled
        self._joined = self._closed = self._sealed = False
        self._pace = Pace()
        self._readable = Readable(socket, shared.turns)
        prepare(socket, shared.keep_alive)
        self._put_output()

    # -- for the handler ------------------------------------------------------------------------

    @property
    def queued(self) -> int:
        """Octets sent that the kernel has not taken yet."""
        return self._outbox.octets

    @property
    def outbox(self) -> Outbox | None:
        """The queue, if another thread than the hub's may send in its place (:mod:`dafka.sockets.leases`)."""
        return self._outbox if self._outbox.may_be_leased else None

    @property
    def is_closed(self) -> bool:
        """Whether the connection is closed."""
        return self._closed

    def send(self, message: Message) -> None:
        """Send a message, frame by frame. Waits as a green thread while too much is queued.

        Raises DisconnectedError. Messages that are queued when a connection ends are lost, as with libzmq.
        """
        self.send_encoded(encode(message), 1)

    def send_many(self, messages: Sequence[Message]) -> None:
        """Send messages; faster than one by one. See :meth:`send`."""
        for buffers, count, octets in batches(messages):
            self._send(buffers, count, octets)
            self._share_turn()

    def send_encoded(self, buffers: list[bytes], count: int) -> None:
        """Send ``count`` messages that are encoded already (:mod:`dafka.zmtp.encoding`). See :meth:`send`."""
        self._send(buffers, count, sum(map(len, buffers)))

    def wait_for_room(self, size: int) -> None:
        """Wait as a green thread until so many octets may be queued: to read something only then.

        Raises DisconnectedError.
        """
        if not self._outbox.wait(size):
            raise DisconnectedError(f"{self} has disconnected")

    def has_room(self, size: int) -> bool:
        """Whether so many octets may be queued now."""
        return self._outbox.has_room(size)

    def offer_encoded(self, buffers: list[bytes], count: int, size: int) -> bool:
        """As :meth:`send_encoded`, but without waiting: False if there is no room."""
        if self._closed or not self._outbox.has_room(size):
            return False
        self._outbox.put(buffers)
        self._shared.messages_out += count
        return True

    def subscribe(self, prefix: bytes) -> None:
        """Tell a publisher of a subscription. Never waits: one that does not read its subscriptions is
        disconnected (cause ``unread``)."""
        self._tell(self._connection.subscribe(prefix))

    def cancel(self, prefix: bytes) -> None:
        """Take one :meth:`subscribe` back."""
        self._tell(self._connection.cancel(prefix))

    def tell_subscriptions(self, changes: Iterable[tuple[bool, bytes]]) -> None:
        """Tell a publisher of changes, each whether to subscribe and the prefix. Waits for room.

        Raises DisconnectedError.
        """
        connection = self._connection
        octets = b"".join(
            connection.subscribe(prefix) if subscribes else connection.cancel(prefix)
            for subscribes, prefix in changes
        )
        self.wait_for_room(len(octets))
        self._outbox.put([octets])

    def _tell(self, octets: bytes) -> None:
        if self._closed:
            return
        if self.queued > self._shared.told_octets:
            self.close("unread", "it does not read what is subscribed to")
            return
        self._outbox.put([octets])

    def _send(self, buffers: list[bytes], count: int, octets: int) -> None:
        self.wait_for_room(octets)
        self._outbox.put(buffers)
        self._shared.messages_out += count

    def close(self, cause: str = "", detail: str = "") -> None:
        """Close the connection at once. With a cause it is counted and logged."""
        if self._closed:
            return
        self._closed = True
        if self.loan is not None:
            self.loan.revoke()
        if cause:
            self._shared.reasons.report(cause, f"{self} disconnected: {detail}")
        self._shared.queued.version += 1
        self._outbox.flush()
        self._outbox.close()
        self._shared.with_ttl.discard(self)
        self._shared.budget.charge(self, 0)  # it may wait there
        listening.forget(self.socket)
        with suppress(OSError):
            self.socket.shutdown(sockets.SHUT_RDWR)  # also if a forked process holds the descriptor
        self._close_socket()

    def _close_socket(self, _: None = None) -> None:
        # While another thread uses it, its descriptor may not become that of another connection.
        is_received_from = self.loan is not None and self.loan.receiving
        if self._shared.queued.is_free() and not is_received_from:
            self.socket.close()
        else:
            in_later_turn(self._close_socket)

    def __str__(self) -> str:
        name = f" {self.identity!r}" if self.identity else ""
        kind = self.socket_type.decode("ascii", "replace") or "peer"
        return f"{kind}{name} at {self.address[0]}:{self.address[1]}"

    # -- the green thread -----------------------------------------------------------------------

    def run(self) -> None:
        """Read until the connection is closed."""
        try:
            self._read()
        except ProtocolError as error:
            self._put_output()
            self.close(error.cause, str(error))
        except Exception:
            if not self._closed:
                self._shared.reasons.report("internal", f"messages of {self} failed", ours=True)
        finally:
            self.close()
            self._shared.budget.charge(self, 0)
            if self._joined:
                self._pattern.left(self)

    def _read(self) -> None:
        shared, connection = self._shared, self._connection
        budget, receive = shared.budget, self.socket._sock.recv
        held, is_plain = connection.held, False
        while not self._closed:
            size = min(budget.next_read(self), self.reads)
            if self._sealed:
                size = min(size, limits.SEALED_READ_OCTETS)
            try:
                octets = receive(size)
            except BlockingIOError:
                if not self._wait():
                    return
                continue
            except OSError:
                return  # it has disconnected
            if not octets:
                return
            if len(octets) == size:
                self.reads = 2 * size
            elif 4 * len(octets) < size:
                self.reads = max(size // 2, limits.READ_FIRST_OCTETS)
            shared.octets_in += len(octets)
            is_little = len(octets) < min(size, limits.LITTLE_OCTETS)
            if is_little and is_plain and self.express is not None and self.express(self, octets):
                # Whom it was handed to is woken: what is done from here on keeps that thread from running.
                shared.messages_in += 1
                if self.loan is not None:
                    octets = self._wait_for_loan(self.loan)
                    shared.octets_in += len(octets)
                elif not self._wait():
                    return
                else:
                    continue
                if not octets:
                    continue
            self._in_hand = held + len(octets)
            done = self._take(octets)
            while connection.pending:
                self._share_turn()
                done |= self._take(b"")
            held, is_plain = connection.held, connection.is_plain
            budget.charge(self, held, anew=done)
            # Little that came was all there is: to look would cost as much as it does to handle it.
            if not is_little:
                self._share_turn()
            elif not self._wait():
                return

    def _wait(self) -> bool:
        """Wait for octets; False if the socket was closed meanwhile."""
        self.waits_since = self.emptied = time.monotonic()
        try:
            self._readable.wait()
        except OSError:
            return False
        finally:
            self.waits_since = None
        return True

    def _wait_for_loan(self, loan: Loan) -> bytes:
        """Wait until the connection is back. What was received meanwhile and nobody has dealt with."""
        self.waits_since = self.emptied = time.monotonic()  # the thread goes on with these
        loan.ended.wait()
        self._shared.messages_in += loan.messages
        self._shared.octets_in += loan.size
        if self._closed:
            return b""
        self.loan = self.waits_since = None
        return b"".join(loan.octets)

    def take_back(self, _: None = None) -> None:
        """Have the connection again that was lent, as soon as no thread is receiving."""
        if self.loan is not None and not self.loan.end():
            in_later_turn(self.take_back)

    def _share_turn(self) -> None:
        if self._shared.turns.elapsed > limits.TURN_SECONDS:
            self._pace.pause()

    def _take(self, octets: bytes) -> bool:
        """Whether anything was complete."""
        crowded = self._shared.budget.is_crowded
        most = limits.HANDLED_LEAST_MESSAGES if crowded else limits.HANDLED_MESSAGES
        if self._sealed and self._connection.opens(len(octets)) > limits.SEALED_INLINE_OCTETS:
            self._shared.budget.charge(self, self._in_hand)
            events = BATCHES.run(self._connection.receive, octets, most)
        else:
            events = self._connection.receive(octets, most)
        if self._connection.has_output:
            self._put_output()
        for place, event in enumerate(events):
            if isinstance(event, Messages):
                self._hand_over(event)
                continue
            if not place:
                self._shared.budget.charge(self, self._in_hand)
            elif not place % limits.HANDLED_EVENTS:
                self._share_turn()
            self._handle(event)
        return bool(events)

    def _hand_over(self, event: Messages) -> None:
        messages, taken = event
        count = len(messages) + taken
        self._shared.messages_in += count
        self._shared.budget.charge(self, self._in_hand + limits.MESSAGE_OVERHEAD_OCTETS * count)
        self._pattern.messages(self, messages)

    def _handle(self, event: Event) -> None:
        if isinstance(event, Subscribe):
            self._pattern.subscribed(self, event.prefix)
        elif isinstance(event, Cancel):
            self._pattern.cancelled(self, event.prefix)
        elif isinstance(event, Ping):
            self.ttl = event.ttl
            if event.ttl and not self._closed:
                self._shared.with_ttl.add(self)
            else:
                self._shared.with_ttl.discard(self)
        elif isinstance(event, Established):
            self._establish(event)

    def _establish(self, event: Established) -> None:
        self.identity, self.socket_type, self.version = event.identity, event.socket_type, event.version
        self.key = event.key
        sealer = self._connection.sealer
        if sealer is not None:
            self._sealed = True
            self._outbox.secure(sealer)
        self._shared.established(self)
        self._joined = True
        self._pattern.joined(self)

    def _put_output(self) -> None:
        # A peer that reads no answers gets fewer PONGs.
        if self._connection.has_output and self._outbox.has_room(0):
            self._outbox.put([self._connection.take_output()])

    # -- looked at every now and then -----------------------------------------------------------

    def silent(self, now: float) -> float:
        """For how many seconds nothing has come, though it would have been read."""
        return 0.0 if self.waits_since is None else now - self.waits_since

    def stuck(self, now: float) -> float:
        """For how many seconds it has read nothing of what is queued."""
        return now - self._outbox.progressed if self._outbox.octets else 0.0

    def is_welcome(self) -> bool:
        """Whether it may stay: with CURVE its key may have been taken off the list."""
        return self._connection.is_welcome

    def ping(self) -> None:
        """Ask whether the peer is there, if it speaks ZMTP 3.1."""
        octets = self._connection.ping()
        if octets and not self._outbox.octets:
            self._outbox.put([octets])
