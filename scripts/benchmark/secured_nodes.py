"""Native nodes that know each other by keys (CURVE), measured as those without are (``native_nodes.py``)."""

from __future__ import annotations

import tempfile
from multiprocessing.connection import Connection
from pathlib import Path
from time import perf_counter

from native_nodes import TOPIC
from processes import Figures


def send_and_flush(link: Connection, *, count: int, size: int, kind: str = "raw", secured: bool) -> Figures:
    """Records sent, stored in the other process and acknowledged in a second."""
    from dafka import Producer, Tower
    from dafka.security import KeyFolder
    from dafka.security.keys import new_keys

    value = bytes(size)
    with tempfile.TemporaryDirectory() as folder:
        keys = None
        if secured:
            keys = KeyFolder(folder, "node")
            new_keys(Path(folder), "node")
        with (
            Tower(keys=keys) as tower,
            Producer(TOPIC, tower=tower, batch=kind == "batch", keys=keys) as producer,
        ):
            link.send((tower.addresses, keys))
            producer.send(value)
            producer.flush(timeout=30)  # the store has found this producer
            send = producer.send
            began = perf_counter()
            for _ in range(count):
                send(value)
            producer.flush(timeout=120)
            ended = perf_counter()
            link.send("done")
            link.recv()
    return (count / (ended - began),)


def store(link: Connection) -> Figures:
    """A store that runs until the other side is done."""
    from dafka import Store

    tower, keys = link.recv()
    with tempfile.TemporaryDirectory() as folder, Store(folder, tower=tower, keys=keys):
        link.recv()
    link.send("closed")
    return ()


def handshakes(link: Connection, *, count: int, secured: bool) -> Figures:
    """Connections that a node takes in and answers in a second, one after the other."""
    import zmq

    from dafka.security import KeyFolder

    (address, folder) = link.recv()
    context = KeyFolder(folder, "node").context() if secured else zmq.Context()
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
    from dafka.security import KeyFolder
    from dafka.security.keys import new_keys
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

    with tempfile.TemporaryDirectory() as folder:
        new_keys(Path(folder), "node")
        keys = KeyFolder(folder, "node").load_server()
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
