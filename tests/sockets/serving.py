"""Our sockets in the hub of the test's process, and libzmq's on the other side."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import gevent
import gevent.event
import zmq
from ports import LOOPBACK
from timing import until
from zmtp.vectors import GREETING_31, ready

from dafka.hub.hub import get_hub
from dafka.sockets import listening
from dafka.sockets.dealer import Dealer
from dafka.sockets.errors import DisconnectedError
from dafka.sockets.peer import Peer
from dafka.sockets.publisher import Publisher
from dafka.sockets.router import Router
from dafka.sockets.subscriber import Subscriber
from dafka.zmtp.commands import encode_command

SECONDS = 100.0  # deadline of whatever a test waits for


class Recorder:
    """A handler that keeps what it is told, and answers if ``answer(peer, message)`` returns a message."""

    def __init__(self, answer: Callable[[Peer, list[bytes]], list[bytes] | None] | None = None) -> None:
        self.peers: list[Peer] = []
        self.left_peers: list[Peer] = []
        self.received: list[tuple[Peer, list[bytes]]] = []
        self.hold = gevent.event.Event()
        """Cleared in the hub: messages wait."""
        self.hold.set()
        self.waiting = 0
        self.answer = answer

    @property
    def messages_of(self) -> dict[bytes, list[list[bytes]]]:
        """What each identity has sent."""
        by_identity: dict[bytes, list[list[bytes]]] = {}
        for peer, message in list(self.received):
            by_identity.setdefault(peer.identity, []).append(message)
        return by_identity

    @property
    def all(self) -> list[list[bytes]]:
        """All messages in the order of their arrival."""
        return [message for _, message in list(self.received)]

    def joined(self, peer: Peer) -> None:
        self.peers.append(peer)

    def messages(self, peer: Peer, messages: list[tuple[bytes, ...]]) -> None:
        self.waiting += 1
        self.hold.wait()
        self.waiting -= 1
        taken = list(map(list, messages))
        self.received += [(peer, message) for message in taken]
        if self.answer is not None:
            answers = [self.answer(peer, message) for message in taken]
            peer.send_many([answer for answer in answers if answer is not None])

    def left(self, peer: Peer) -> None:
        self.left_peers.append(peer)


@contextmanager
def router(handler: Recorder, **options: Any) -> Iterator[Router]:
    """A Router on a free port of loopback."""
    hub = get_hub()

    def begin() -> Router:
        return Router(hub, listening.bind(LOOPBACK, 0), handler=handler, **options)

    served = hub.run(begin)
    try:
        yield served
    finally:
        hub.run(handler.hold.set)
        hub.run(served.close)


@contextmanager
def publisher(**options: Any) -> Iterator[Publisher]:
    """A Publisher on a free port of loopback."""
    hub = get_hub()
    served = hub.run(lambda: Publisher(hub, listening.bind(LOOPBACK, 0), **options))
    try:
        yield served
    finally:
        hub.run(served.close)


@contextmanager
def subscriber(handler: Recorder, *endpoints: str, **options: Any) -> Iterator[Subscriber]:
    """A Subscriber of ours, connected to these."""
    hub = get_hub()
    made = hub.run(lambda: Subscriber(hub, handler=handler, **options))
    try:
        for endpoint in endpoints:
            hub.run(made.connect, endpoint)
        yield made
    finally:
        hub.run(handler.hold.set)
        hub.run(made.close)


@contextmanager
def dealer(endpoint: str, handler: Recorder, **options: Any) -> Iterator[Dealer]:
    """A Dealer of ours."""
    hub = get_hub()
    made = hub.run(lambda: Dealer(hub, endpoint, handler=handler, **options))
    try:
        yield made
    finally:
        hub.run(handler.hold.set)
        hub.run(made.close)


@contextmanager
def server(
    kind: int,
    endpoint: str = f"tcp://{LOOPBACK}:*",
    context: zmq.Context[zmq.Socket[bytes]] | None = None,
    **options: Any,
) -> Iterator[zmq.Socket[bytes]]:
    """A socket of libzmq's, bound; ``options`` by the names of pyzmq in lower case."""
    made = (context or zmq.Context.instance()).socket(kind)
    made.linger = 0
    made.rcvtimeo = made.sndtimeo = int(SECONDS * 1000)
    for name, value in options.items():
        setattr(made, name, value)
    until(lambda: _is_bound(made, endpoint))  # libzmq closes an earlier socket some time after close()
    try:
        yield made
    finally:
        made.close()


def _is_bound(made: zmq.Socket[bytes], endpoint: str) -> bool:
    try:
        made.bind(endpoint)
    except zmq.ZMQError as error:
        if error.errno != zmq.EADDRINUSE:
            raise
        return False
    return True


@contextmanager
def client(kind: int, endpoint: str, identity: bytes = b"", **options: Any) -> Iterator[zmq.Socket[bytes]]:
    """A socket of libzmq's, connected; ``options`` by the names of pyzmq in lower case."""
    made = zmq.Context.instance().socket(kind)
    made.linger = 0
    made.rcvtimeo = made.sndtimeo = int(SECONDS * 1000)
    if identity:
        made.identity = identity
    for name, value in options.items():
        setattr(made, name, value)
    made.connect(endpoint)
    try:
        yield made
    finally:
        made.close()


def plain(endpoint: str) -> socket.socket:
    """A plain TCP connection."""
    host, port = endpoint.removeprefix("tcp://").rsplit(":", 1)
    return socket.create_connection((host, int(port)), timeout=SECONDS)


def silent_subscriber(served: Publisher, prefix: bytes) -> socket.socket:
    """A plain connection that has subscribed and reads nothing by itself, with little room in the kernel."""
    host, port = served.endpoint.removeprefix("tcp://").rsplit(":", 1)
    before = served.metrics()["subscriptions"]
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.settimeout(0.2)
    connection.connect((LOOPBACK if host == "0.0.0.0" else host, int(port)))
    connection.sendall(GREETING_31 + ready(b"SUB") + encode_command(b"SUBSCRIBE", prefix))
    until(lambda: served.metrics()["subscriptions"] > before)
    with suppress(TimeoutError):
        while connection.recv(65536):
            pass
    connection.settimeout(SECONDS)
    return connection


def in_hub(function: Callable[..., Any], *args: Any) -> Any:
    """Run in the hub and wait for the outcome."""
    return get_hub().run(function, *args)


def sending(peer: Peer, messages: list[list[bytes]]) -> gevent.Greenlet:
    """Send in a green thread of the hub, until the peer has left."""

    def send() -> None:
        with suppress(DisconnectedError):
            peer.send_many(messages)

    return get_hub().run(lambda: get_hub().spawn(send))


def later(function: Callable[..., Any], *args: Any) -> threading.Thread:
    """Run in a thread of its own."""
    thread = threading.Thread(target=function, args=args, daemon=True)
    thread.start()
    return thread
