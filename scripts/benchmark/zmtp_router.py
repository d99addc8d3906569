"""Our Router measured: rates at which a libzmq client sends to it and receives from it, beside a ROUTER of
pyzmq's.

Server and client are processes of their own, and the clients are the same on both sides.
"""

from __future__ import annotations

import threading
from multiprocessing.connection import Connection
from time import perf_counter, thread_time

import zmq
from processes import Figures

SIZE = 100
HIGH_WATER_MARK = 10_000


def send(link: Connection, *, count: int, kind: int) -> Figures:
    """A client that sends as fast as it can."""
    value = bytes(SIZE)
    with zmq.Context() as context, context.socket(kind) as client:
        client.setsockopt(zmq.SNDHWM, HIGH_WATER_MARK)
        client.setsockopt(zmq.IDENTITY, b"client")
        client.connect(link.recv())
        for _ in range(count):
            client.send(value)
        link.recv()
    return ()


def receive(link: Connection, *, count: int, kind: int) -> Figures:
    """Messages that a client receives in a second."""
    with zmq.Context() as context, context.socket(kind) as client:
        client.setsockopt(zmq.RCVHWM, HIGH_WATER_MARK)
        client.setsockopt(zmq.IDENTITY, b"client")
        client.connect(link.recv())
        if kind == zmq.DEALER:
            client.send(b"here")  # a ROUTER of libzmq's knows only peers that have sent something
        client.recv()
        began = perf_counter()
        for _ in range(count - 1):
            client.recv()
        ended = perf_counter()
    link.send("done")
    return ((count - 1) / (ended - began),)


def take_plain(link: Connection, *, count: int) -> Figures:
    """Messages that pyzmq's ROUTER receives in a second, in the shortest loop."""
    with zmq.Context() as context, context.socket(zmq.ROUTER) as router:
        router.setsockopt(zmq.RCVHWM, HIGH_WATER_MARK)
        link.send(f"tcp://127.0.0.1:{router.bind_to_random_port('tcp://127.0.0.1')}")
        router.recv_multipart()
        began = perf_counter()
        for _ in range(count - 1):
            router.recv_multipart()
        ended = perf_counter()
    link.send("done")
    return ((count - 1) / (ended - began),)


def give_plain(link: Connection, *, count: int) -> Figures:
    """A ROUTER of pyzmq's that sends as fast as it can."""
    message = [b"client", bytes(SIZE)]
    with zmq.Context() as context, context.socket(zmq.ROUTER) as router:
        router.setsockopt(zmq.SNDHWM, HIGH_WATER_MARK)
        router.setsockopt(zmq.ROUTER_MANDATORY, 1)  # it waits instead of dropping
        link.send(f"tcp://127.0.0.1:{router.bind_to_random_port('tcp://127.0.0.1')}")
        router.recv_multipart()
        for _ in range(count):
            router.send_multipart(message)
        link.recv()
    return ()


def take(link: Connection, *, count: int) -> Figures:
    """Messages that our Router hands over in a second, and in a second of the hub's processor time."""
    figures: list[float] = []
    done = threading.Event()

    class Handler:
        taken = 0
        began = cpu = 0.0

        def joined(self, peer: object) -> None:
            pass

        def messages(self, peer: object, messages: list[list[bytes]]) -> None:
            if not self.taken:
                self.began, self.cpu = perf_counter(), thread_time()
            self.taken += len(messages)
            if self.taken == count:
                figures.extend((count / (perf_counter() - self.began), count / (thread_time() - self.cpu)))
                done.set()

        def left(self, peer: object) -> None:
            pass

    with _router(Handler()) as endpoint:
        link.send(endpoint)
        done.wait()
        link.send("done")
    return tuple(figures)


def give(link: Connection, *, count: int) -> Figures:
    """Our Router, which sends a client as much as it takes."""
    from dafka.hub.hub import get_hub

    class Handler:
        def joined(self, peer: object) -> None:
            get_hub().spawn(peer.send_many, [[bytes(SIZE)]] * count)  # type: ignore[attr-defined]

        def messages(self, peer: object, messages: list[list[bytes]]) -> None:
            pass

        def left(self, peer: object) -> None:
            pass

    with _router(Handler()) as endpoint:
        link.send(endpoint)
        link.recv()
    return ()


class _router:
    """A Router for the time of a ``with`` block, which gets its endpoint."""

    def __init__(self, handler: object) -> None:
        from dafka.hub.hub import get_hub
        from dafka.sockets import listening
        from dafka.sockets.router import Router

        hub = self._hub = get_hub()
        self._router = hub.run(
            lambda: Router(hub, listening.bind("127.0.0.1", 0), handler=handler)  # type: ignore[arg-type]
        )

    def __enter__(self) -> str:
        return self._router.endpoint

    def __exit__(self, *_: object) -> None:
        self._hub.run(self._router.close)
