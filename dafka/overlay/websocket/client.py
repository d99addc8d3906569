"""A client of ``/v1/messages/json``: of our endpoints, of libbroker's and of Zeek's own server."""

from __future__ import annotations

import contextlib
import logging
import random
import ssl
import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import gevent
import gevent.event

from dafka.hub.hub import get_hub
from dafka.hub.turns import Pace
from dafka.hub.waits import bounded_wait, wait_of
from dafka.overlay.node.connections import dialling
from dafka.overlay.node.connections.tls import Security
from dafka.overlay.node.errors import Closed
from dafka.overlay.node.inbox import Feed, Inbox
from dafka.overlay.node.pending import Pending
from dafka.overlay.values import Value
from dafka.overlay.values.containers import octets_of
from dafka.overlay.websocket import limits
from dafka.overlay.websocket.client_connection import ClientConnection, uri_of
from dafka.overlay.websocket.errors import InvalidForm, MalformedJson, WebSocketError
from dafka.overlay.websocket.forms.messages import (
    Ack,
    Data,
    Failure,
    data_octets,
    read_from_server,
    subscriptions_octets,
)
from dafka.overlay.websocket.frames import Ended, Event, Opened, Text
from dafka.overlay.websocket.stream import Stream, tls_of
from dafka.overlay.websocket.tokens import checked
from dafka.overlay.wire.zeek import Batch, IdentifierUpdate, LogCreate, LogWrite, to_value
from dafka.overlay.wire.zeek import Event as ZeekEvent
from dafka.sockets.outbox import Queued

log = logging.getLogger(__name__)

_TOO_BIG = 1009  # a message was too large for the other end
_HEAD = 80  # characters of a message in which its type is looked for
_ZEEK = (ZeekEvent, LogCreate, LogWrite, IdentifierUpdate, Batch)


class Message(NamedTuple):
    """A message to a client. Octets of a topic that are not UTF-8 are kept as surrogateescape does it."""

    topic: str
    value: Value


class Client:
    """Publishes values, and gets those whose topics begin with one of ``prefixes``. Any thread may use it.

    ``url`` is that of the server, ``ws://127.0.0.1:9997`` or with its path; for ``wss://`` an ``ssl_context``
    has the trusted authorities, by default those of the system. ``token``: for a server that wants to see
    one. ``timeout``: seconds for a connection to be made; the first one is waited for. ``reconnect``: whether
    lost connections are replaced. Messages on their way when a connection is lost may be lost with it.
    ``capacity``: messages that wait to be got; the server is not read while it is reached.

    Raises ValueError for an invalid URL, TypeError for prefixes that are no strings,
    :class:`~dafka.overlay.websocket.errors.WebSocketError` if there is no connection within ``timeout``.
    """

    def __init__(
        self,
        url: str,
        *prefixes: str | bytes,
        timeout: float = 10.0,
        reconnect: bool = True,
        capacity: int = 1024,
        ssl_context: ssl.SSLContext | None = None,
        token: str | None = None,
    ) -> None:
        for prefix in prefixes:
            octets_of(prefix)
        uri = uri_of(url)
        if not uri.path:
            url = f"{url.rstrip('/')}/v1/messages/json"
        self.url = url
        self.endpoint = ""
        """The id of the server's endpoint."""
        self.version = ""
        """What the server says of its version."""
        self.refused: deque[Failure] = deque(maxlen=limits.FAILURES)
        """What the server has said about messages that it did not take, the last ones."""
        self.connections = 0
        """How many there have been."""
        self._host, self._port = uri.host, uri.port
        self._token = None if token is None else checked(token)
        self._context = ssl_context
        if uri.secure and ssl_context is None:
            self._context = ssl.create_default_context()
        if not uri.secure and ssl_context is not None:
            raise ValueError(f"{url!r} is not encrypted: an ssl_context is for wss://")
        self._first = subscriptions_octets(prefixes)
        self._timeout = bounded_wait(timeout)
        self._reconnect = reconnect
        self._hub = get_hub()
        self._inbox = _Texts(self._hub, capacity, "wait", len)
        self._pending = Pending(self._hub, self._wake_sender)
        self._published = gevent.event.Event()
        self._ready = gevent.event.Event()
        self._open: _Open | None = None
        self._is_closed = False
        self._hub.run(self._begin)

    # -- messages ---------------------------------------------------------------------------------------

    def publish(self, topic: str | bytes, value: Any, timeout: float | None = None) -> None:
        """Send a value, or one of Zeek's messages, to all subscribers of its topic.

        Waits while there is no connection, or the server is slow, for ``timeout`` seconds at most: then it
        is not sent, and :class:`~dafka.overlay.node.errors.Overloaded` is raised. Raises
        :class:`~dafka.overlay.errors.InvalidValue` for anything but a value, and at the end what :meth:`get`
        raises. The server's answer is not waited for, see :attr:`refused`: a message that is too large for it
        ends the connection, and is there too.
        """
        form: Value = to_value(value) if isinstance(value, _ZEEK) else value
        self._pending.put(octets_of(topic), data_octets(topic, form), timeout)

    def get(self, timeout: float | None = None) -> Message:
        """The next message; waits for it.

        Raises :class:`~dafka.overlay.node.errors.Empty` after ``timeout`` seconds,
        :class:`~dafka.overlay.node.errors.Closed` after :meth:`close`, and
        :class:`~dafka.overlay.websocket.errors.WebSocketError` when the connection is lost for good.
        """
        timeout = wait_of(timeout)
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            message = self._read(self._inbox.get(left))
            if message is not None:
                return message

    def poll(self) -> list[Message]:
        """All messages that are there, without waiting."""
        return [message for message in map(self._read, self._inbox.poll()) if message is not None]

    def __iter__(self) -> Iterator[Message]:
        """The messages until the client is closed."""
        with contextlib.suppress(Closed):
            while True:
                yield self.get()

    @property
    def available(self) -> int:
        """How many messages can be got without waiting."""
        return self._inbox.available

    def fileno(self) -> int:
        """A descriptor that is readable while messages wait, or after the end; for select and asyncio."""
        return self._inbox.fileno()

    @property
    def is_connected(self) -> bool:
        return self._open is not None

    def close(self, timeout: float = limits.CLOSE_SECONDS) -> None:
        """Send what was published, for ``timeout`` seconds at most, and say goodbye."""
        timeout = bounded_wait(timeout)
        self._inbox.close()
        with contextlib.suppress(Closed):
            self._hub.run(self._close, timeout)

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _read(self, text: str) -> Message | None:
        try:
            message = read_from_server(text)
        except (InvalidForm, MalformedJson) as error:
            log.warning("%s sent an invalid message: %s", self.url, error)
            return None
        if isinstance(message, Failure):
            self._refuse(message)
        if not isinstance(message, Data):
            return None
        return Message(message.topic.decode("utf-8", "surrogateescape"), message.value)

    def _refuse(self, failure: Failure) -> None:
        self.refused.append(failure)
        log.warning("%s did not take a message: %s: %s", self.url, *failure)

    # -- on the hub -------------------------------------------------------------------------------------

    def _begin(self) -> None:
        first = self._dial()
        self._reading = self._hub.spawn(self._run, first)
        self._sending = self._hub.spawn(self._send)

    def _dial(self) -> _Open:
        """A connection whose subscriptions are acknowledged. Raises WebSocketError."""
        opened: _Open | None = None
        try:
            with gevent.Timeout(
                self._timeout, WebSocketError(f"{self.url}: no answer within {self._timeout:g} s")
            ):
                opened = _Open(self, self._host, self._port, self._context)
                ack = opened.greet(self._first)
        except BaseException as error:
            if opened is not None:
                opened.stream.abort()
            if isinstance(error, (OSError, InvalidForm, MalformedJson)) and not isinstance(
                error, WebSocketError
            ):
                raise WebSocketError(f"{self.url}: {error}") from error
            raise
        self.endpoint, self.version = ack.endpoint, ack.version
        self.connections += 1
        self._open = opened
        self._ready.set()
        return opened

    def _run(self, opened: _Open | None) -> None:
        pause = limits.RECONNECT_SECONDS
        while not self._is_closed:
            try:
                opened = opened or self._dial()
                pause = limits.RECONNECT_SECONDS
                why: Exception = opened.read(self._inbox, self._hear)
            except WebSocketError as error:
                why = error
            if isinstance(why, WebSocketError) and why.code == _TOO_BIG:
                self._refuse(Failure("invalid_data", str(why)))
            opened, self._open = None, None
            self._ready.clear()
            if self._is_closed:
                return
            if not self._reconnect:
                self._pending.close(why)
                self._inbox.shut(why)
                return
            log.info("%s; connecting again", why)
            gevent.sleep(pause * random.uniform(0.5, 1.0))
            pause = min(2 * pause, limits.RECONNECT_MOST_SECONDS)

    def _hear(self, text: str) -> bool:
        """Whether a message is for the user: errors are not."""
        if '"error"' not in text[:_HEAD]:
            return True
        try:
            message = read_from_server(text)
        except (InvalidForm, MalformedJson):
            return True  # the user's thread says so
        if isinstance(message, Failure):
            self._refuse(message)
        return isinstance(message, Data)

    def _wake_sender(self) -> None:
        self._published.set()

    def _send(self) -> None:
        pace = Pace()
        while not self._is_closed or self._published.is_set():
            self._published.wait()
            self._published.clear()
            taken = [octets for _, some in self._pending.take() for octets in some]
            for octets in pace.over(taken, every=16):
                while not self._send_one(octets):
                    gevent.sleep(limits.RECONNECT_SECONDS)

    def _send_one(self, octets: bytes) -> bool:
        """Whether a connection has taken it."""
        self._ready.wait()
        return self._open is not None and self._open.send(octets)

    def _close(self, timeout: float) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        self._pending.close(Closed("the client was closed"))
        opened = self._open
        with gevent.Timeout(timeout, False):
            if opened is not None:
                self._published.set()
                self._sending.join()
                opened.connection.close()
                opened.put_output()
                self._reading.join()
        self._sending.kill(block=False)
        self._reading.kill(block=False)
        if self._open is not None:
            self._open.stream.abort()
        self._inbox.shut(Closed("the client was closed"))


class _Texts(Feed[str, str]):
    """The messages of a connection as they came."""

    def get(self, timeout: float | None = None) -> str:
        return self._take(timeout)

    def poll(self) -> list[str]:
        return self._take_all()

    def _left(self) -> None:
        pass  # the client ends its connection itself


class _Open:
    """One connection."""

    def __init__(self, client: Client, host: str, port: int, context: ssl.SSLContext | None) -> None:
        self.connection = ClientConnection(client.url, client._token)
        socket = dialling.connect(host, port, Security("plain"))
        hub = get_hub()
        self.stream = Stream(socket, Queued(hub), self._failed, tls_of(context, host))
        self._client = client
        self._turns = hub.turns
        self._events: deque[Event] = deque()

    def greet(self, first: bytes) -> Ack:
        """Open it, send the subscriptions, and wait for their acknowledgement."""
        self.stream.begin()
        self.put_output()
        while True:
            event = self._next()
            if isinstance(event, Opened):
                if self.connection.is_open:
                    self.connection.send(first)
                self.put_output()
            elif isinstance(event, Ended):
                raise self._lost(event)
            else:
                answer = read_from_server(event.text)
                if isinstance(answer, Ack):
                    return answer
                raise WebSocketError(f"{self._client.url} did not acknowledge the subscriptions: {answer}")

    def read(self, inbox: Inbox[str], hear: Callable[[str], bool]) -> WebSocketError:
        """Put messages into an inbox until the connection ends; why it has."""
        pace = Pace()
        try:
            while True:
                texts = []
                while self._events:
                    event = self._events.popleft()
                    if isinstance(event, Text) and hear(event.text):
                        texts.append(event.text)
                    elif isinstance(event, Ended):
                        inbox.put(texts)
                        return self._lost(event)
                inbox.put(texts)
                self._wait_for(inbox)
                self._fill()
                if self._turns.elapsed > limits.TURN_SECONDS:
                    pace.pause()
        except OSError as error:
            return WebSocketError(f"{self._client.url}: {error}")
        finally:
            self.stream.abort()

    def _wait_for(self, inbox: Inbox[str]) -> None:
        """While an inbox is full, nothing is read."""
        room = gevent.event.Event()
        while inbox.watch(room.set):
            room.wait()
            room.clear()

    def _next(self) -> Event:
        while not self._events:
            self._fill()
        return self._events.popleft()

    def _fill(self) -> None:
        octets = self.stream.read(limits.READ_OCTETS)
        self._events += self.connection.receive(octets) if octets else self.connection.receive_eof()
        self.put_output()

    def send(self, octets: bytes) -> bool:
        """Send a message; waits for room. Whether it was queued."""
        if not self.connection.is_open or not self.stream.wait_for_room(len(octets)):
            return False
        self.connection.send(octets)
        self.put_output()
        return True

    def put_output(self) -> None:
        octets = self.connection.take_output()
        if octets:
            self.stream.send([octets])

    def _lost(self, event: Ended) -> WebSocketError:
        why = event.reason or "closed by the server"
        code = "" if event.code is None else f" (code {event.code})"
        return WebSocketError(f"{self._client.url}: {why}{code}", event.code)

    def _failed(self) -> None:
        self.stream.abort()
