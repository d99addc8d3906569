"""Loads other than small values in a few partitions, for this project's clients and for kafka-python's.

Each load is done by this project's clients over a broker in the same process, and by kafka-python's over the
listener of a broker in another one: the mock broker, which the other lines compare with, has four partitions
and room for 5 MiB in each.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from multiprocessing.connection import Connection
from random import Random
from statistics import quantiles
from time import perf_counter, sleep
from typing import Any

from processes import Figures

TOPIC = "bench"
LATENCY_RATE = 10_000  # records a second
LATENCY_BURST = 0.001  # seconds between two bursts of records
WORDS = [b"%d," % number for number in range(1000)]

Load = Callable[..., Figures]


def in_process(load: Load, *, partitions: int, **options: Any) -> Figures:
    """The load, by this project's clients, with the broker in this process."""
    import compat.kafka
    from dafka import Broker

    with Broker(default_partitions=partitions) as broker:
        return load(compat.kafka, broker.bootstrap_servers, **options)


def by_kafka_python(link: Connection, load: Load, **options: Any) -> Figures:
    """The load, by kafka-python's clients, with a :func:`listening_broker`."""
    import kafka

    figures = load(kafka, link.recv(), **options)
    link.send("done")
    return figures


def listening_broker(link: Connection, *, partitions: int) -> Figures:
    """Run a broker that listens, until the other side is done."""
    from dafka import Broker

    with Broker(default_partitions=partitions, listen="127.0.0.1:0") as broker:
        link.send(broker.bootstrap_servers)
        link.recv()
    return ()


# -- loads --------------------------------------------------------------------------------------------


def throughput(kafka: Any, servers: str, *, size: int, count: int, compression: str | None = None) -> Figures:
    """Records of ``size`` bytes sent and acknowledged in a second, and then read by iteration in a second."""
    value = text(size)
    options = {"linger_ms": 5} if compression is None else {"linger_ms": 5, "compression_type": compression}
    producer = kafka.KafkaProducer(bootstrap_servers=servers, **options)
    producer.send(TOPIC, value).get(timeout=30)
    began = perf_counter()
    for _ in range(count):
        producer.send(TOPIC, value)
    producer.flush()
    sent = count / (perf_counter() - began)
    producer.close()
    consumer = kafka.KafkaConsumer(TOPIC, bootstrap_servers=servers, auto_offset_reset="earliest")
    next(consumer)
    began = perf_counter()
    for _ in range(count):
        next(consumer)
    read = count / (perf_counter() - began)
    consumer.close()
    return sent, read


def group(kafka: Any, servers: str, *, members: int, count: int) -> Figures:
    """A group's members, each in a thread: records they read in a second, and seconds that a rebalance takes.

    The rebalance is the one that the last member causes, while there is nothing to read: from its first poll
    until all have their share.
    """
    producer = kafka.KafkaProducer(bootstrap_servers=servers, linger_ms=5)
    partitions = len(producer.partitions_for(TOPIC))
    value = text(100)
    options = {"bootstrap_servers": servers, "group_id": "bench", "auto_offset_reset": "earliest"}
    consumers = [kafka.KafkaConsumer(TOPIC, **options) for _ in range(members)]
    shares: list[set[Any]] = [set() for _ in consumers]
    read = [0] * members
    go, stop = threading.Event(), threading.Event()
    go.set()

    def run(number: int) -> None:
        consumer = consumers[number]
        while not stop.is_set():
            go.wait()
            read[number] += sum(map(len, consumer.poll(100).values()))
            shares[number] = consumer.assignment()
        consumer.close(autocommit=False)

    def settled(first: int) -> bool:
        taken = list(shares[:first])
        return all(taken) and sum(map(len, taken)) == len(set().union(*taken)) == partitions

    threads = [threading.Thread(target=run, args=(number,), daemon=True) for number in range(members)]
    for thread in threads[:-1]:
        thread.start()
    wait_for(lambda: settled(members - 1))
    began = perf_counter()
    threads[-1].start()
    wait_for(lambda: settled(members))
    rebalanced = perf_counter() - began
    go.clear()
    for _ in range(count):
        producer.send(TOPIC, value)
    producer.close()
    already = sum(read)  # by polls that were waiting
    began = perf_counter()
    go.set()
    wait_for(lambda: sum(read) == count)
    rate = (count - already) / (perf_counter() - began)
    stop.set()
    for thread in threads:
        thread.join(10)
    return rate, rebalanced


def paced_latency(kafka: Any, servers: str, *, seconds: float) -> Figures:
    """Seconds from sending a record to holding it, at LATENCY_RATE records a second: p50, p99, p99.9."""
    producer = kafka.KafkaProducer(bootstrap_servers=servers)
    producer.send(TOPIC, b"0").get(timeout=30)
    consumer = kafka.KafkaConsumer(TOPIC, bootstrap_servers=servers, auto_offset_reset="earliest")
    next(consumer)
    count = int(LATENCY_RATE * seconds)
    burst = max(int(LATENCY_RATE * LATENCY_BURST), 1)
    took: list[float] = []

    def read() -> None:
        for _ in range(count):
            sent = float(next(consumer).value[:20])
            took.append(perf_counter() - sent)

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    due = perf_counter()
    for _ in range(count // burst):
        due += LATENCY_BURST
        delay = due - perf_counter()
        if delay > 0:
            sleep(delay)
        for _ in range(burst):
            producer.send(TOPIC, b"%020.6f" % perf_counter() + bytes(80))
    reader.join(60)
    late = sorted(took)[count // 10 :] if len(took) < count else took[count // 10 :]  # past the first ones
    percentiles = quantiles(late, n=1000)
    return percentiles[499], percentiles[989], percentiles[998]


def text(size: int) -> bytes:
    """Bytes that compress about as well as text."""
    words = Random(size).choices(WORDS, k=size // 3 + 1)
    return b"".join(words)[:size]


def wait_for(condition: Callable[[], bool], seconds: float = 60.0) -> None:
    deadline = perf_counter() + seconds
    while not condition():
        if perf_counter() > deadline:
            raise TimeoutError(f"not within {seconds} s")
        sleep(0.002)
