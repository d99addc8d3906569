"""Dafka nodes in two processes, measured as the plain loops are (see ``pyzmq_loops.py``).

The sending process has the tower.
"""

from __future__ import annotations

import tempfile
from multiprocessing.connection import Connection
from time import perf_counter
from typing import TYPE_CHECKING

from processes import Figures

if TYPE_CHECKING:
    from dafka import Producer

TOPIC = "bench"
VALUE = bytes(100)


def send(link: Connection, *, count: int) -> Figures:
    """Records sent in a second."""
    from dafka import Producer, Tower

    with Tower() as tower, Producer(TOPIC, tower=tower, min_stores=0) as producer:
        link.send(tower.addresses)
        meet(producer, link)
        send = producer.send
        began = perf_counter()
        for _ in range(count):
            send(VALUE)
        ended = perf_counter()
        link.recv()
    return (count / (ended - began),)


def meet(producer: Producer, link: Connection) -> None:
    """Send a record now and then until the other side has got one."""
    while not link.poll(0.05):
        producer.send(b"hello")
    link.recv()


def receive_plain(link: Connection, *, count: int) -> Figures:
    """A plain SUB socket takes the records; how many in a second."""
    import zmq

    from dafka.protocol.beacons import TowerBeacon, decode_beacon

    with zmq.Context() as context, context.socket(zmq.SUB) as beacons, context.socket(zmq.SUB) as subscriber:
        beacons.subscribe(b"B")
        beacons.connect(link.recv()[1])
        subscriber.setsockopt(zmq.RCVHWM, 0)
        subscriber.subscribe(b"M")
        beacon = decode_beacon(beacons.recv_multipart())
        assert isinstance(beacon, TowerBeacon)
        subscriber.connect(beacon.endpoint.decode())
        receive = subscriber.recv_multipart
        receive()
        link.send("met")
        while receive()[1] != VALUE:
            pass
        began = perf_counter()
        for _ in range(count - 1):
            receive()
        ended = perf_counter()
    link.send("done")
    return ((count - 1) / (ended - began),)


def consume(link: Connection, *, count: int) -> Figures:
    """Records consumed in a second, from the first one to the last."""
    from dafka import Consumer

    with Consumer([TOPIC], tower=link.recv()) as consumer:
        records = iter(consumer)
        next(records)
        link.send("met")
        while next(records).value != VALUE:
            pass
        began = perf_counter()
        for _ in range(count - 1):
            next(records)
        ended = perf_counter()
    link.send("done")
    return ((count - 1) / (ended - began),)


def send_and_flush(link: Connection, *, count: int) -> Figures:
    """Records sent, stored in the other process and acknowledged in a second."""
    from dafka import Producer, Tower

    with Tower() as tower, Producer(TOPIC, tower=tower) as producer:
        link.send(tower.addresses)
        producer.send(VALUE)
        producer.flush(timeout=30)  # the store has found this producer
        send = producer.send
        began = perf_counter()
        for _ in range(count):
            send(VALUE)
        producer.flush(timeout=60)
        ended = perf_counter()
    link.send("done")
    return (count / (ended - began),)


def store(link: Connection) -> Figures:
    """Keeps what comes until the other side is done."""
    from dafka import Store

    with tempfile.TemporaryDirectory() as folder, Store(folder, tower=link.recv()):
        link.recv()
    return ()
