"""One client of a WebSocket server, on the hub.

A green thread reads what the client sends and publishes it; another one, which lives while something waits
for the client, writes. The client is a subscriber of its endpoint like others, except that it sees what
others publish at this endpoint, and not what it publishes itself.
"""

from __future__ import annotations

import ssl
import time
from collections.abc import Collection, Sequence
from typing import Any, Protocol

import gevent

from dafka.hub.pool import BATCHES
from dafka.hub.turns import Pace
from dafka.overlay.node.carrier import Carrier
from dafka.overlay.node.errors import Closed, Empty, SlowSubscriber
from dafka.overlay.node.subscriber import Subscriber
from dafka.overlay.node.types import EndpointId
from dafka.overlay.values import encode
from dafka.overlay.websocket import limits
from dafka.overlay.websocket.fan_out import FanOut
from dafka.overlay.websocket.forms.messages import (
    Ack,
    Failure,
    ack_octets,
    failure_octets,
    read_input,
    read_subscriptions,
)
from dafka.overlay.websocket.frames import Ended, Event, Text, text_frame
from dafka.overlay.websocket.server_connection import ServerConnection
from dafka.overlay.websocket.stream import Stream, tls_of
from dafka.overlay.websocket.tokens import Check
from dafka.security.audit import audit
from dafka.sockets.budget import Budget
from dafka.sockets.outbox import Queued
from dafka.sockets.reasons import Reasons


class Shared(Protocol):
    """Shared by all clients of a server."""

    carrier: Carrier
    budget: Budget
    queued: Queued
    reasons: Reasons
    fan_out: FanOut
    ssl_context: ssl.SSLContext | None
    origins: Collection[str] | None
    admits: Check | None
    ack: Ack
    capacity: int
    overflow: str

    def subscribed(self, session: Session) -> None: ...


class _Finished(gevent.GreenletExit):  # type: ignore[misc]
    """Reading is to end."""


class Session:
    """The client that has connected with ``socket`` from ``address``."""

    def __init__(self, shared: Shared, socket: Any, address: tuple[str, int]) -> None:
        self.id = EndpointId.random()
        """Its messages are sent as those of this endpoint."""
        self.began = time.monotonic()
        self._shared = shared
        self._address = address
        self._connection = ServerConnection(shared.origins, None if shared.admits is None else self._admits)
        self._stream = Stream(socket, shared.queued, self.abort, tls_of(shared.ssl_context))
        self._audience: _Audience | None = None
        self._green: gevent.Greenlet | None = None
        self._inputs = 0
        self._writing = False
        self._ended = self._ending = False
        self._pace = Pace()

    def __str__(self) -> str:
        return f"WebSocket client at {self._address[0]}:{self._address[1]}"

    @property
    def is_subscribed(self) -> bool:
        """Whether its first message has come."""
        return self._audience is not None

    def stuck(self, now: float) -> float:
        """For how many seconds it has read nothing of what is queued."""
        return self._stream.stuck(now)

    @property
    def is_closed(self) -> bool:
        return self._stream.is_closed

    def end(self, code: int, cause: str, detail: str) -> None:
        """Have its connection closed with a code, and the detail as reason; it is counted by its cause."""
        if self._ending:
            return
        self._ending = True
        if cause:
            self._shared.reasons.report(cause, f"{self} disconnected: {detail}")
        self._connection.fail(code, detail)
        self._put_output()
        if self._green is not None and self._green is not gevent.getcurrent():
            self._green.kill(_Finished, block=False)

    def abort(self) -> None:
        """Close its connection at once."""
        self._ending = True
        self._stream.abort()
        self._shared.budget.charge(self, 0)  # it may wait there

    # -- the green thread that reads --------------------------------------------------------------------

    def run(self) -> None:
        """Read until the connection ends."""
        self._green = gevent.getcurrent()
        try:
            self._read()
        except _Finished:
            pass
        except ssl.SSLError as error:
            self._report("tls", str(error))
        except OSError:
            pass  # it has disconnected
        except Closed:
            self.end(1001, "", "the endpoint was closed")
        except Exception:
            if not self._ending:
                self._shared.reasons.report("internal", f"messages of {self} failed", ours=True)
                self.end(1011, "", "an error of the server")
        finally:
            self._green = None
            self._ending = True
            if self._audience is not None:
                self._audience.close()
            self._shared.budget.charge(self, 0)
            self._connection.let_go()
            self._share_turn()
            self._stream.finish()

    def _read(self) -> None:
        shared, connection, stream = self._shared, self._connection, self._stream
        while not self._ending:
            octets = stream.read(shared.budget.next_read(self))
            if not octets:
                self._handle(connection.receive_eof(), 0)
                return
            self._share_turn()
            size = len(octets)
            shared.budget.charge(self, connection.held + size)
            view = memoryview(octets)
            done = False
            for begin in range(0, size, limits.FED_OCTETS):
                events = connection.receive(bytes(view[begin : begin + limits.FED_OCTETS]))
                done = self._handle(events, size - begin) or done
                self._put_output()
                if self._ended or self._ending:
                    return
                self._share_turn()
            shared.budget.charge(self, connection.held, anew=done)
            if not stream.has_room():  # a client that floods has to read its answers
                stream.wait_for_room()

    def _admits(self, token: str) -> bool:
        """Whether a client with this token may connect; a refused client is answered later."""
        assert self._shared.admits is not None
        if self._shared.admits(token):
            return True
        detail = f"{self} was refused: {'its token is not valid' if token else 'it has no token'}"
        audit.warning("%s", detail)
        self._shared.reasons.report("token", detail)
        gevent.sleep(limits.REFUSED_SECONDS)
        return False

    def _handle(self, events: list[Event], left: int) -> bool:
        """Whether a message was complete."""
        done = False
        for event in events:
            if isinstance(event, Text) and not self._ending:
                self._shared.budget.charge(self, self._connection.held + left + len(event.text))
                self._take(event.text)
                self._share_turn()
                done = True
            elif isinstance(event, Ended):
                self._ended = True
                if event.code is None and not self._ending:
                    self._shared.reasons.counted["protocol" if self._audience else "handshake"] += 1
        return done

    def _take(self, text: str) -> None:
        if self._audience is None:
            self._subscribe(text)
            return
        self._inputs += 1
        if len(text) > limits.DIRECT_OCTETS:
            message = BATCHES.run(_read_input, self._inputs, text)
        else:
            message = _read_input(self._inputs, text)
        if isinstance(message, Failure):
            self._send(failure_octets(message))
        else:
            self._publish(*message)

    def _subscribe(self, text: str) -> None:
        if len(text) > limits.DIRECT_OCTETS:
            first = BATCHES.run(read_subscriptions, text)
        else:
            first = read_subscriptions(text)
        if isinstance(first, Failure):
            self._send(failure_octets(first))
            self.end(1008, "subscriptions", first.context)
            return
        shared = self._shared
        self._audience = _Audience(self, shared, first.prefixes)
        self._send(ack_octets(shared.ack))
        shared.carrier.add_subscriber(self._audience)
        shared.subscribed(self)

    def _publish(self, topic: bytes, payload: bytes) -> None:
        audience, carrier = self._audience, self._shared.carrier
        assert audience is not None
        pause = limits.BLOCKED_SECONDS
        while carrier.role.core.is_blocked(topic) or carrier.subscribers.full(topic):
            gevent.sleep(pause)
            pause = min(2 * pause, limits.BLOCKED_MOST_SECONDS)
        audience.is_deaf = True
        try:
            carrier.subscribers.deliver(topic, [payload], self.id)
            carrier.carry(carrier.role.publish(topic, payload))
        finally:
            audience.is_deaf = False

    # -- the green thread that writes -------------------------------------------------------------------

    def wake(self) -> None:
        """Something waits for the client."""
        if not self._writing and not self._ending:
            self._writing = True
            self._shared.carrier.hub.spawn(self._write)

    def _write(self) -> None:
        pace = Pace()
        try:
            while not self._ending and self._stream.wait_for_room():
                if self._shared.carrier.hub.turns.elapsed > limits.TURN_SECONDS:
                    pace.pause()
                self._write_some()
        except (Empty, SlowSubscriber):
            pass  # one that is too slow was disconnected when its last message came
        except Closed:
            self.end(1001, "", "the endpoint was closed")
        finally:
            self._writing = False

    def _write_some(self) -> None:
        assert self._audience is not None
        frames: list[bytes] = []
        octets = 0
        try:
            while len(frames) < limits.AT_ONCE and octets < limits.AT_ONCE_OCTETS:
                frame = self._shared.fan_out.frame(*self._audience.next())
                frames.append(frame)
                octets += len(frame)
        finally:
            self._stream.send(frames)

    def _put_output(self) -> None:
        octets = self._connection.take_output()
        if octets:
            self._stream.send([octets])

    def _send(self, octets: bytes) -> None:
        if self._connection.is_open:
            self._put_output()
            self._stream.send([text_frame(octets)])

    def _report(self, cause: str, detail: str) -> None:
        if not self._ending:
            self._shared.reasons.report(cause, f"{self} disconnected: {detail}")

    def _share_turn(self) -> None:
        if self._shared.carrier.hub.turns.elapsed > limits.TURN_SECONDS:
            self._pace.pause()


class _Audience(Subscriber):
    """The messages waiting for a client. One that is too slow is disconnected at once: it has much to read
    already."""

    def __init__(self, session: Session, shared: Shared, prefixes: tuple[bytes, ...]) -> None:
        carrier = shared.carrier
        super().__init__(
            carrier.hub, prefixes, shared.capacity, shared.overflow, True, carrier.change_subscriber
        )
        self.is_deaf = False
        """While its client publishes."""
        self._session = session

    def put_run(self, topic: bytes, payloads: Sequence[bytes], sender: bytes) -> None:
        if not self.is_deaf:
            super().put_run(topic, payloads, sender)
            if isinstance(self._closed, SlowSubscriber):
                self._session.end(1013, "slow", str(self._closed))
            self._session.wake()

    def shut(self, error: Exception) -> None:
        super().shut(error)
        self._session.wake()

    def next(self) -> tuple[bytes, bytes]:
        """Topic and payload of the next message, without waiting. Raises Empty, Closed, SlowSubscriber."""
        return self.take_raw()


def _read_input(number: int, text: str) -> tuple[bytes, bytes] | Failure:
    """Topic and payload of a message."""
    message = read_input(number, text)
    return message if isinstance(message, Failure) else (message.topic, encode(message.value))
