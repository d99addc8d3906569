"""Connections of nodes that know each other by keys (CURVE), and of those that do not."""

from __future__ import annotations

from contextlib import ExitStack
from multiprocessing.connection import Connection
from time import perf_counter

from native_nodes import new_keys
from processes import Figures


def handshakes(link: Connection, *, count: int, secured: bool) -> Figures:
    """Connections that a node takes in and answers in a second, one after the other."""
    import zmq

    (address, folder) = link.recv()
    context = folder.context() if secured else zmq.Context()
    with context:
        began = perf_counter()
        for _ in range(count):
            with context.socket(zmq.DEALER) as socket:
                socket.linger = 0
                socket.connect(address)
                socket.send(b"x")
                socket.recv()
        ended = perf_counter()
    link.send("done")
    return (count / (ended - began),)


def answer(link: Connection, *, secured: bool) -> Figures:
    """A ROUTER of ours that sends back what it gets."""
    from dafka.hub.hub import get_hub
    from dafka.sockets import listening
    from dafka.sockets.peer import Peer
    from dafka.sockets.router import Router
    from dafka.zmtp.curve import CurveServer

    class Echo:
        def joined(self, peer: Peer) -> None:
            pass

        def messages(self, peer: Peer, messages: list[list[bytes]]) -> None:
            peer.send_many(messages)

        def left(self, peer: Peer) -> None:
            pass

    with ExitStack() as stack:
        folder = new_keys(stack)
        keys = folder.load_server()
        hub = get_hub()
        router = hub.run(
            lambda: Router(
                hub,
                listening.bind("127.0.0.1", 0),
                handler=Echo(),
                mechanism=(lambda check: CurveServer(check, *keys)) if secured else None,
            )
        )
        link.send((router.endpoint, folder))
        link.recv()
        hub.run(router.close)
    return ()
