"""The reference for the mesh: the shortest loops that publish and receive with pyzmq, and no parsing.

Messages are two frames, as RECORD is in libdafka's framing. No high-water mark: nothing is lost, and the
publishing loop never waits for the receiving one.
"""

from __future__ import annotations

import time
from multiprocessing.connection import Connection
from time import perf_counter

import zmq
from processes import Figures, percentiles

HEADER = b"Mbench\0\x01" + bytes(1 + 32 + 1 + 5 + 8)  # as long as RECORD's: address, subject, sequence


def publish(link: Connection, *, count: int, size: int) -> Figures:
    """Messages sent in a second."""
    value = bytes(size)
    with zmq.Context() as context, context.socket(zmq.XPUB) as publisher:
        publisher.setsockopt(zmq.SNDHWM, 0)
        link.send(publisher.bind_to_random_port("tcp://127.0.0.1"))
        publisher.recv()  # the subscription
        send = publisher.send_multipart
        began = perf_counter()
        for _ in range(count):
            send((HEADER, value))
        ended = perf_counter()
        link.recv()
    return (count / (ended - began),)


def receive(link: Connection, *, count: int) -> Figures:
    """Messages received in a second, from the first one to the last."""
    with zmq.Context() as context, _subscriber(context, link.recv()) as subscriber:
        receive = subscriber.recv_multipart
        receive()
        began = perf_counter()
        for _ in range(count - 1):
            receive()
        ended = perf_counter()
    link.send("done")
    return ((count - 1) / (ended - began),)


def publish_one_by_one(link: Connection, *, count: int, pause: float) -> Figures:
    """A message now and then, which says when it was sent."""
    with zmq.Context() as context, context.socket(zmq.XPUB) as publisher:
        link.send(publisher.bind_to_random_port("tcp://127.0.0.1"))
        publisher.recv()
        for _ in range(count):
            time.sleep(pause)
            publisher.send_multipart((HEADER, b"%.9f" % perf_counter()))
        link.recv()
    return ()


def latency(link: Connection, *, count: int) -> Figures:
    """Seconds from sending a message to having it: p50, p99."""
    with zmq.Context() as context, _subscriber(context, link.recv()) as subscriber:
        seconds = []
        for _ in range(count):
            _, sent = subscriber.recv_multipart()
            seconds.append(perf_counter() - float(sent))
    link.send("done")
    return percentiles(seconds)


def _subscriber(context: zmq.Context[zmq.Socket[bytes]], port: int) -> zmq.Socket[bytes]:
    subscriber = context.socket(zmq.SUB)
    subscriber.setsockopt(zmq.RCVHWM, 0)
    subscriber.subscribe(b"M")
    subscriber.connect(f"tcp://127.0.0.1:{port}")
    return subscriber
