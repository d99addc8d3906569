"""One connection: a green thread that reads requests, and the order of the responses."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from socket import MSG_DONTWAIT, MSG_PEEK, SHUT_RDWR
from typing import TYPE_CHECKING, Any

import gevent

from dafka.broker.access.acls import AclTable
from dafka.broker.access.rights import Denials, Rights
from dafka.broker.codec.errors import BadRequestError
from dafka.broker.codec.framing import LENGTH_OCTETS, Buffers
from dafka.broker.codec.produce_request import ProduceRequest
from dafka.broker.interface.broker import BrokerInterface
from dafka.broker.interface.errors import BrokerStoppedError
from dafka.broker.quotas.throttles import Throttles
from dafka.broker.server import limits
from dafka.broker.server.budget import Budget
from dafka.broker.server.context import Peer, Told
from dafka.broker.server.fetch_sessions import FetchSessions
from dafka.broker.server.long_request import PRODUCE_KEY, LongRequest
from dafka.broker.server.repeated_fetch import RepeatedFetch
from dafka.broker.server.requests import (
    Frame,
    has_produce,
    read_frame,
    read_produce,
    respond,
    respond_produce,
)
from dafka.broker.server.sending import send, send_now
from dafka.broker.server.spare_buffers import SpareBuffers
from dafka.broker.server.throttling import Room, Throttling
from dafka.broker.server.wrong_protocol import wrong_protocol
from dafka.hub.changes import Changes
from dafka.hub.readable import Readable
from dafka.hub.spare import SpareGreens, Task
from dafka.hub.turns import TurnGauge
from dafka.log import StoredBatches
from dafka.security.audit import audit
from dafka.security.errors import TlsError
from dafka.security.principals import USER
from dafka.security.renewing import Renewed
from dafka.security.sasl.steps import Identity
from dafka.sockets.errors import HandshakeError
from dafka.sockets.greetings import Greetings
from dafka.sockets.reasons import Reasons

if TYPE_CHECKING:
    from dafka.broker.server.authentication import Authentication, Sasl

RECEIVE_BYTES = 64 * 1024  # read at a time; a longer request gets a buffer of its own


class _Slot:
    """A Produce request in progress; ``response`` is None until it is answered."""

    __slots__ = ("response", "size", "task", "throttled")
    task: Task  # which answers it

    def __init__(self, size: int, throttled: float) -> None:
        self.size = size
        self.throttled = throttled  # seconds
        self.response: Buffers | None = None


class Shared:
    """The state that the connections of a listener share; ``forget`` is called with each closed one."""

    def __init__(
        self,
        broker: BrokerInterface,
        throttles: Throttles,
        forget: Callable[[Connection], None],
        turns: TurnGauge,
        acls: AclTable | None = None,
    ) -> None:
        self.broker = broker
        self.turns = turns
        self.throttles = throttles
        self.forget = forget
        self._acls = acls
        self._denials = Denials()
        self.budget = Budget(limits.TOTAL_BYTES)
        self.spares = SpareBuffers()
        self.greens = SpareGreens(limits.SPARE_GREENS)
        self.sessions = FetchSessions()
        self.reasons = Reasons()
        self.greetings: Greetings[Connection] = Greetings(limits, Connection.refuse, "handshake")
        self.requests = self.received = self.sent = 0  # since the start; octets

    def rights(self, peer: Peer, name: str) -> Rights | None:
        """The rights of a client of that name; None: everything."""
        if self._acls is None:
            return None
        return Rights(self._acls, self._denials, peer.principal, peer.host, f"{name} at {peer.listener}")


class Connection:
    """A client. :meth:`run` is its green thread and returns when the connection is closed."""

    def __init__(
        self,
        shared: Shared,
        socket: Any,
        address: Any,
        told: Told | None = None,
        tls: Renewed | None = None,
        sasl: Sasl | None = None,
    ) -> None:
        self._shared = shared
        self._broker = shared.broker
        self._budget = shared.budget
        self._sessions = shared.sessions
        self.socket = socket
        self._peer = Peer(address[0], told)
        self._peer.takes_files = tls is None
        self._throttling = Throttling(shared.throttles, self._peer)
        self._tls = tls
        self._authentication = None if sasl is None else sasl.authentication(self._authenticated)
        self.name = f"{address[0]}:{address[1]}"
        self._slots: deque[_Slot] = deque()
        self._waiting_bytes = 0
        self._writing = False
        self._room = Changes()
        self._closed = False
        self._idle_since = float("inf")  # when waiting for the next request began
        self._handshake: gevent.Greenlet | None = None
        self._waits = False  # a Fetch is in progress, and may wait for records; or the connection is not read
        self._shares = False  # there may be share sessions that end with the connection
        self._repeated = RepeatedFetch(shared.broker)

    # -- reading --------------------------------------------------------------------------------

    def run(self) -> None:
        """Read and answer requests until the connection is closed."""
        try:
            begun = self._greet()
            self._peer.rights = self._shared.rights(self._peer, self.name)
            self._read(begun)
        except (HandshakeError, TlsError) as error:
            self.refuse("tls", f"TLS: {error}")
        except BadRequestError as error:
            self.refuse(error.cause, str(error))
        except (OSError, BrokerStoppedError):
            pass  # the client has disconnected, or the broker stops
        except Exception:
            if not self._closed:  # TLS says in many ways that its socket has been closed meanwhile
                self._shared.reasons.report("internal", f"a request of {self.name} failed", ours=True)
        finally:
            try:
                if not self._closed:
                    self._shared.turns.share()  # very many may end at once, which takes 50 us each
            finally:
                self.close()
                self._repeated.close()

    def _greet(self) -> bytes:
        """TLS and SASL, where the listener has them; returns what has come of the first request."""
        if self._tls is None and self._authentication is None:
            return b""
        self._handshake = gevent.getcurrent()
        try:
            if self._tls is not None:
                self._secure(self._tls)
            if self._authentication is not None:
                return self._authenticate(self._authentication)
            self._log_connected("TLS")
            return b""
        finally:
            self._handshake = None
            self._shared.greetings.remove(self)

    def _secure(self, certificate: Renewed) -> None:
        from dafka.sockets import tls  # most brokers have no use for it

        self.socket = tls.accept(self.socket, certificate.context, limits.HANDSHAKE_SECONDS)
        shown = self.socket.getpeercert
        self._peer.principal = certificate.principal(shown(), shown(True))

    def _authenticate(self, authentication: Authentication) -> bytes:
        """Answer requests until it is known who the client is; returns what has come of the next one."""
        begun = b""
        detail = f"SASL: it was not known who it is within {limits.HANDSHAKE_SECONDS:g} s"
        with gevent.Timeout(limits.HANDSHAKE_SECONDS, BadRequestError("handshake-slow", detail)):
            while not authentication.done:
                frame, begun = authentication.next_frame(self._receive, begun)
                self._answer_sasl(authentication, memoryview(frame))
        return begun

    def _receive(self) -> bytes:
        received: bytes = self.socket.recv(RECEIVE_BYTES)
        self._shared.received += len(received)
        return received

    def _receive_into(self, buffer: memoryview) -> int:
        count: int = self.socket.recv_into(buffer)
        self._shared.received += count
        return count

    def _answer_sasl(self, authentication: Authentication, data: memoryview) -> None:
        self._shared.requests += 1
        answer, failed = authentication.answer(data, self._answered)
        if answer:
            self._write(answer)
        if failed is not None:
            audit.warning("%s at %s: %s", self.name, self._peer.listener, failed)
            raise failed

    def _answered(self, frame: Frame) -> Buffers:
        throttling, self._peer.mutations = self._throttling, None
        room: Room = self._budget.promised
        admits = None
        if throttling:
            room, admits = throttling.room(frame, room), throttling.admits(frame)
            self._peer.mutations = throttling.mutates(frame)
        return respond(self._broker, self._sessions, frame, self._peer, room, self._repeated, admits)

    def _authenticated(self, identity: Identity, mechanism: str) -> None:
        self._peer.principal = f"{USER}:{identity.name}"
        self._log_connected(mechanism)

    def _log_connected(self, how: str) -> None:
        peer = self._peer
        audit.info("%s connected from %s at %s by %s", peer.principal, self.name, peer.listener, how)

    def _read(self, begun: bytes) -> None:
        received, begun = b"", self._take(begun)
        readable = Readable(self.socket, self._shared.turns)
        while not self._closed:
            if begun:
                with gevent.Timeout(limits.REQUEST_SECONDS, _slow("a request")):
                    received = self._receive()
            else:
                self._idle_since = time.monotonic()
                if len(received) < RECEIVE_BYTES and (self._tls is None or not self.socket.pending()):
                    readable.wait()  # most clients wait for the answer
                received = self._receive()
                self._idle_since = float("inf")
            if not received:
                if begun:
                    raise BadRequestError("short", f"it ended within a request that begins with {begun!r}")
                return
            begun = self._take(begun + received if begun else received)

    def _take(self, received: bytes) -> bytes:
        """Answer the requests that begin in ``received``; returns the rest, shorter than a length field."""
        view = memoryview(received)
        position, end = 0, len(received)
        while end - position >= LENGTH_OCTETS:
            size = int.from_bytes(view[position : position + LENGTH_OCTETS], "big", signed=True)
            position += LENGTH_OCTETS
            if not 0 <= size <= end - position:
                self._handle_long(size, view[position:])
                return b""
            self._handle(view[position : position + size], view[position - LENGTH_OCTETS :])
            position += size
        return received[position:]

    def _handle_long(self, size: int, begun: memoryview) -> None:
        """Read the rest of a request into a buffer of its own, and answer it."""
        error = wrong_protocol(size.to_bytes(LENGTH_OCTETS, "big", signed=True))
        if error is not None:
            raise error
        if not 0 <= size <= limits.REQUEST_MAX_BYTES:
            detail = f"a request of {size} bytes; {limits.REQUEST_MAX_BYTES} are the most"
            raise BadRequestError("size", detail)
        if self._throttling.seconds_left():
            self._wait_as_throttled()  # now: for as long it must hold nothing of what all share
        request = LongRequest(size, begun, self._budget, self._shared.spares)
        try:
            with gevent.Timeout(limits.REQUEST_SECONDS, _slow(f"a request of {size} bytes")):
                request.fill(self._receive_into)
            self._handle(request.data)
        finally:
            request.release()

    # -- answering ------------------------------------------------------------------------------

    def _handle(self, data: memoryview, behind: memoryview | None = None) -> None:
        """Answer a request. ``behind``: all octets received so far, from this request's length on."""
        if self._throttling.seconds_left():
            self._wait_as_throttled(has_produce(behind) if behind is not None else data[:2] == PRODUCE_KEY)
        login = self._authentication
        if login is not None and login.is_for(data):
            while self._slots or self._writing:
                self._wait_for_room()
            self._answer_sasl(login, data)
            return
        frame = read_frame(data)
        self._shared.requests += 1
        if frame.is_produce:
            while self._slots and (
                self._waiting_bytes + len(data) > limits.CONNECTION_BYTES
                or len(self._slots) >= limits.CONNECTION_REQUESTS
            ):
                self._wait_for_room()
            request = read_produce(frame)
            slot = _Slot(len(data), self._throttling.produced(frame))
            self._slots.append(slot)
            self._waiting_bytes += slot.size
            self._budget.take(slot.size)
            slot.task = self._shared.greens.begin(self._produce, slot, frame, request)
            if request is not None and request.is_wide:
                slot.task.join()  # later requests must not overtake it
            return
        while self._slots or self._writing:
            self._wait_for_room()
        while frame.is_share_fetch and self._throttling.owes(frame):
            self._wait_as_throttled()
        self._shares = self._shares or frame.is_share_fetch
        self._waits = frame.is_fetch or frame.is_share_fetch
        response = self._throttling.answered(frame, partial(self._answered, frame))
        self._waits = False
        self._write(response)

    def _wait_as_throttled(self, keeps: bool = False) -> None:
        """``keeps``: records have come, which count though the client disconnects, unless that is long."""
        self._waits = not keeps or self._throttling.seconds_left() > limits.ABANDONED_SECONDS
        while not self._closed and (seconds := self._throttling.seconds_left()):
            self._room.wait(seconds)
        self._waits = False
        if self._closed:
            raise ConnectionAbortedError

    def _wait_for_room(self) -> None:
        self._room.wait()
        if self._closed:
            raise ConnectionAbortedError

    def _produce(self, slot: _Slot, frame: Frame, request: ProduceRequest | None) -> None:
        try:
            answer = partial(respond_produce, self._broker, frame, request, self._peer.rights)
            slot.response = self._throttling.answered(frame, answer, slot.throttled)
            self._flush()
        except BadRequestError as error:
            self.refuse(error.cause, str(error))
        except (OSError, BrokerStoppedError):
            self.close()
        except Exception:
            self._shared.reasons.report("internal", f"a Produce of {self.name} failed", ours=True)
            self.close()
        finally:
            self._budget.give(slot.size)

    def _flush(self) -> None:
        """Send the responses that are next in order; only one green thread sends at a time."""
        if self._writing:
            return
        self._writing = True
        try:
            if len(self._slots) > 1:
                gevent.sleep(0)  # responses of the same commit are sent together
            while self._slots and self._slots[0].response is not None and not self._closed:
                ready: Buffers = []
                while self._slots and self._slots[0].response is not None:
                    slot = self._slots.popleft()
                    self._waiting_bytes -= slot.size
                    ready += slot.response or ()
                self._room.tell()
                if ready:
                    self._write(ready)
        finally:
            self._writing = False
            self._room.tell()

    def _write(self, buffers: Buffers) -> None:
        size = sum(map(len, buffers))
        if self._tls is None:
            self._shared.sent += size
            buffers = send_now(self.socket, buffers, size)
            if not buffers:
                return
            size = sum(map(len, buffers))
            self._shared.sent -= size
        held = size - sum([len(one) for one in buffers if isinstance(one, StoredBatches)])
        self._budget.take(held)
        try:
            with gevent.Timeout(
                limits.WRITE_SECONDS, BadRequestError("unread", "the client did not read a response in time")
            ):
                send(self.socket, buffers, size)
        finally:
            self._budget.give(held)
            self._shared.sent += size

    # -- the end --------------------------------------------------------------------------------

    def refuse(self, cause: str, detail: str) -> None:
        """Close the connection because of a request, and log the reason once."""
        if not self._closed:
            self._shared.reasons.report(cause, f"connection of {self.name} closed: {detail}")
        self.close()

    def is_idle(self, since: float) -> bool:
        """Whether there has been no request since that time."""
        return self._idle_since < since

    def is_abandoned(self) -> bool:
        """Whether something waits whose client has disconnected; other requests end by themselves."""
        if not self._waits or self._closed:
            return False
        if self._tls is not None:
            return bool(self.socket.has_hung_up())
        try:
            return not self.socket._sock.recv(1, MSG_PEEK | MSG_DONTWAIT)
        except BlockingIOError:
            return False
        except OSError:
            return True

    def close(self) -> None:
        """Close the socket; batches that the broker has accepted stay accepted."""
        if self._closed:
            return
        self._closed = True
        self._shared.forget(self)
        self._room.tell()
        self._shared.greetings.remove(self)
        if self._handshake is not None and self._handshake is not gevent.getcurrent():
            self._handshake.kill(block=False)  # it owns the socket
        _shut(self.socket)
        if self._shares:
            with suppress(BrokerStoppedError):
                self._broker.forget_connection(self._peer)

    def kill(self) -> None:
        """Close, and end the waiting Produce requests."""
        self.close()
        for slot in self._slots:
            slot.task.kill()


def _slow(what: str) -> BadRequestError:
    return BadRequestError("slow", f"{what} did not arrive completely within {limits.REQUEST_SECONDS:g} s")


def _shut(socket: Any) -> None:
    with suppress(OSError):
        socket.shutdown(SHUT_RDWR)  # also if a forked process holds the descriptor
    socket.close()
