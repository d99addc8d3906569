"""Dafka nodes in two processes, measured as the plain loops are (see ``pyzmq_loops.py``).

The sending process has the tower. ``kind`` is "raw" or "batch": the messages of the producer.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from multiprocessing.connection import Connection
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

from processes import Figures, percentiles

if TYPE_CHECKING:
    from dafka import Consumer, Producer
    from dafka.security import KeyFolder

TOPIC = "bench"
LAST = b"the last one"
SETTLING_SECONDS = 64.0  # until the HEADs of idle producers are as far apart as they get
IDLE_SECONDS = 32.0  # that the processor time of idle nodes is taken over; each partition has a HEAD in it


def send(link: Connection, *, count: int, size: int, kind: str = "raw") -> Figures:
    """Records sent in a second to the consumers."""
    from dafka import Producer, Tower

    value = bytes(size)
    with Tower() as tower, Producer(TOPIC, tower=tower, min_stores=0, batch=kind == "batch") as producer:
        link.send(tower.addresses)
        meet(producer, link)
        send = producer.send
        began = perf_counter()
        for _ in range(count):
            send(value)
        ended = perf_counter()
        send(LAST)
        link.recv()
    return (count / (ended - began),)


def meet(producer: Producer, link: Connection) -> None:
    """Send a record now and then until the other side has got one."""
    while not link.poll(0.05):
        producer.send(b"hello")
    link.recv()


def receive_plain(link: Connection, *, count: int) -> Figures:
    """A plain SUB socket takes the records of a producer; how many in a second."""
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
        began = perf_counter()
        while receive()[1] != LAST:
            pass
        ended = perf_counter()
    link.send("done")
    return (count / (ended - began),)


def consume(link: Connection) -> Figures:
    """Records consumed in a second while they are sent."""
    from dafka import Consumer

    with Consumer([TOPIC], tower=link.recv()) as consumer:
        records = iter(consumer)
        next(records)
        link.send("met")
        while next(records).value == b"hello":
            pass
        figure = _consumption(consumer)
    link.send("done")
    return (figure,)


def _consumption(consumer: Consumer) -> float:
    """Records in a second, up to the last one."""
    records = iter(consumer)
    count = 0
    began = perf_counter()
    for record in records:
        if record.value == LAST:
            break
        count += 1
    return count / (perf_counter() - began)


def send_and_flush(
    link: Connection, *, count: int, size: int, kind: str = "raw", secured: bool = False
) -> Figures:
    """Records sent, stored in the other process and acknowledged in a second.

    ``secured``: by nodes that know each other by keys (CURVE).
    """
    from dafka import Producer, Tower

    value = bytes(size)
    with ExitStack() as stack:
        keys = new_keys(stack) if secured else None
        own = keys and keys._replace(node="sensor")
        tower = stack.enter_context(Tower(keys=keys))
        producer = stack.enter_context(Producer(TOPIC, tower=tower, batch=kind == "batch", keys=own))
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
        link.recv()  # the store has closed, which reads the keys
    return (count / (ended - began),)


def perf_store(link: Connection, *, count: int, size: int) -> Figures:
    """The same, as ``dafka perf store`` reports it."""
    from dafka import Tower

    with Tower() as tower:
        link.send((tower.addresses, None))
        takes, gives = tower.addresses
        command = ["dafka.cli", "perf", "store", str(count), str(size)]
        mesh = ["--sub", takes, "--pub", gives, "--bind", "127.0.0.1"]
        done = subprocess.run(
            [sys.executable, "-m", *command, *mesh], stdout=subprocess.PIPE, text=True, check=True
        )
        link.send("done")
        link.recv()
    return (float(done.stdout.rpartition(" s: ")[2].partition("/s")[0].replace(",", "")),)


def new_keys(stack: ExitStack) -> KeyFolder:
    """A folder with the keys of a store, and of the node ``sensor``, until the end of ``stack``."""
    from dafka.security import KeyFolder, keys

    folder = stack.enter_context(tempfile.TemporaryDirectory())
    keys.new_keys(Path(folder), "node", store=True)
    keys.new_keys(Path(folder), "sensor")
    return KeyFolder(folder, "node")


def store(link: Connection) -> Figures:
    """A store that runs until the other side is done."""
    from dafka import Store

    tower, keys = link.recv()
    with tempfile.TemporaryDirectory() as folder, Store(folder, tower=tower, keys=keys):
        link.recv()
    link.send("closed")
    return ()


def serve_from_store(link: Connection, *, count: int, size: int, kind: str = "raw") -> Figures:
    """A store with records whose producer is gone."""
    from dafka import Producer, Store, Tower

    value = bytes(size)
    with tempfile.TemporaryDirectory() as folder, Tower() as tower, Store(folder, tower=tower):
        with Producer(TOPIC, tower=tower, batch=kind == "batch") as producer:
            for _ in range(count):
                producer.send(value)
            producer.send(LAST)
            producer.flush(timeout=60)
        link.send(tower.addresses)
        link.recv()
    return ()


def catch_up(link: Connection) -> Figures:
    """Records consumed in a second, from the first one that a store serves to the last."""
    from dafka import Consumer

    with Consumer([TOPIC], tower=link.recv(), offset_reset="earliest") as consumer:
        next(consumer)
        figure = _consumption(consumer)
    link.send("done")
    return (figure,)


def send_one_by_one(link: Connection, *, count: int, pause: float) -> Figures:
    """A record now and then, which says when it was sent."""
    from dafka import Producer, Tower

    with Tower() as tower, Producer(TOPIC, tower=tower, min_stores=0) as producer:
        link.send(tower.addresses)
        meet(producer, link)
        for _ in range(count):
            time.sleep(pause)
            producer.send(b"%.9f" % perf_counter())
        link.recv()
    return ()


def latency(link: Connection, *, count: int) -> Figures:
    """Seconds from sending a record to having it: p50, p99."""
    from dafka import Consumer

    with Consumer([TOPIC], tower=link.recv()) as consumer:
        records = iter(consumer)
        next(records)
        link.send("met")
        seconds: list[float] = []
        while len(seconds) < count:
            value = next(records).value
            if value is not None and value != b"hello":
                seconds.append(perf_counter() - float(value))
    link.send("done")
    return percentiles(seconds)


def own_many_topics(link: Connection, *, topics: int) -> Figures:
    """A producer for each of so many topics, with one stored record each: bytes, share of a processor."""
    from dafka import Producer, Tower

    with Tower() as tower:
        link.send(tower.addresses)
        producers = [Producer(f"topic-{number}", tower=tower) for number in range(topics)]
        for producer in producers:
            producer.send(bytes(100))
        for producer in producers:
            producer.flush(timeout=120)
        link.send("stored")
        cost = _idle_cost()
        link.recv()
    return cost


def store_many_topics(link: Connection) -> Figures:
    """The store that has these: bytes, share of a processor."""
    from dafka import Store

    with tempfile.TemporaryDirectory() as folder, Store(folder, tower=link.recv()):
        link.recv()
        cost = _idle_cost()
        link.send("measured")
    return cost


def _idle_cost() -> Figures:
    """Resident bytes and share of one processor of this process, while its user does nothing."""
    import psutil

    time.sleep(SETTLING_SECONDS)
    process = psutil.Process()
    began, used = perf_counter(), sum(process.cpu_times()[:2])
    time.sleep(IDLE_SECONDS)
    share = (sum(process.cpu_times()[:2]) - used) / (perf_counter() - began)
    return float(process.memory_info().rss), share
