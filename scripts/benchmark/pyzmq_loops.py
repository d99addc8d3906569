"""The reference for the mesh: the shortest loops that publish and receive with pyzmq, and no parsing.

Messages are two frames, as RECORD is in libdafka's framing. No high-water mark: nothing is lost, and the
publishing loop never waits for the receiving one.
"""

from __future__ import annotations

from multiprocessing.connection import Connection
from time import perf_counter

import zmq
from processes import Figures

HEADER = b"Mbench\0\x01" + bytes(1 + 32 + 1 + 5 + 8)  # as long as RECORD's: address, subject, sequence
VALUE = bytes(100)


def publish(link: Connection, *, count: int) -> Figures:
    """Messages sent in a second."""
    with zmq.Context() as context, context.socket(zmq.XPUB) as publisher:
        publisher.setsockopt(zmq.SNDHWM, 0)
        link.send(publisher.bind_to_random_port("tcp://127.0.0.1"))
        publisher.recv()  # the subscription
        send = publisher.send_multipart
        began = perf_counter()
        for _ in range(count):
            send((HEADER, VALUE))
        ended = perf_counter()
        link.recv()
    return (count / (ended - began),)


def receive(link: Connection, *, count: int) -> Figures:
    """Messages received in a second, from the first one to the last."""
    with zmq.Context() as context, context.socket(zmq.SUB) as subscriber:
        subscriber.setsockopt(zmq.RCVHWM, 0)
        subscriber.subscribe(b"M")
        subscriber.connect(f"tcp://127.0.0.1:{link.recv()}")
        receive = subscriber.recv_multipart
        receive()
        began = perf_counter()
        for _ in range(count - 1):
            receive()
        ended = perf_counter()
    link.send("done")
    return ((count - 1) / (ended - began),)
