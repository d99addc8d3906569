"""The reference for the facade: kafka-python and, in a process of its own, librdkafka's mock broker.

The mock broker keeps records in memory and does next to nothing, so what is measured is the client. Its
topics have four partitions.
"""

from __future__ import annotations

from multiprocessing.connection import Connection
from statistics import quantiles
from time import perf_counter
from typing import Any

TOPIC = "bench"
VALUE = bytes(100)


def mock_broker(link: Connection, *, records: int = 0) -> float:
    """Runs until the other side is done; with so many records in the topic."""
    from confluent_kafka import Producer

    cluster = Producer({"test.mock.num.brokers": 1, "bootstrap.servers": "", "log_level": 0})
    (broker,) = cluster.list_topics(timeout=10).brokers.values()
    cluster.list_topics(TOPIC, timeout=10)  # creates it
    for _ in range(records):
        cluster.produce(TOPIC, VALUE)
        cluster.poll(0)
    cluster.flush()
    link.send(f"{broker.host}:{broker.port}")
    link.recv()
    return 0.0


def clients(link: Connection) -> dict[str, Any]:
    # The mock broker does not know the version of ApiVersions that kafka-python 3 opens with.
    return {"bootstrap_servers": link.recv(), "api_version": (2, 3)}


def send(link: Connection, *, count: int) -> float:
    """Records sent and acknowledged in a second."""
    from kafka import KafkaProducer

    figure = send_rate(KafkaProducer(**clients(link)), count)
    link.send("done")
    return figure


def iterate(link: Connection, *, count: int) -> float:
    """Records consumed in a second, from the first one to the last."""
    from kafka import KafkaConsumer

    figure = iteration_rate(KafkaConsumer(TOPIC, **clients(link), auto_offset_reset="earliest"), count)
    link.send("done")
    return figure


def latency(link: Connection, *, count: int, percentile: int) -> float:
    """Seconds from sending a record to holding it, one record at a time."""
    from kafka import KafkaConsumer, KafkaProducer

    options = clients(link)
    consumer = KafkaConsumer(TOPIC, **options, auto_offset_reset="earliest")
    figure = round_trip(KafkaProducer(**options), consumer, count, percentile)
    link.send("done")
    return figure


def first_record(link: Connection) -> float:
    """Seconds from the import to the first record consumed; the broker is running."""
    options = clients(link)
    began = perf_counter()
    from kafka import KafkaConsumer, KafkaProducer

    KafkaProducer(**options).send(TOPIC, VALUE)
    next(KafkaConsumer(TOPIC, **options, auto_offset_reset="earliest"))
    ended = perf_counter()
    link.send("done")
    return ended - began


# What follows is the measuring itself, the same for kafka-python's classes and for ours.


def send_rate(producer: Any, count: int) -> float:
    producer.send(TOPIC, VALUE).get(timeout=10)  # connected, and the topic known
    send = producer.send
    began = perf_counter()
    for _ in range(count):
        send(TOPIC, VALUE)
    producer.flush()
    return count / (perf_counter() - began)


def iteration_rate(consumer: Any, count: int) -> float:
    next(consumer)
    began = perf_counter()
    for _ in range(count - 1):
        next(consumer)
    return (count - 1) / (perf_counter() - began)


def round_trip(producer: Any, consumer: Any, count: int, percentile: int) -> float:
    took = []
    for number in range(count + 10):
        began = perf_counter()
        producer.send(TOPIC, VALUE)
        next(consumer)
        if number >= 10:  # the first ones connect
            took.append(perf_counter() - began)
    return quantiles(took, n=100)[percentile - 1]
