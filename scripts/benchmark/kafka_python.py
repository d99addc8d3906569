"""The reference for the facade: kafka-python and, in a process of its own, librdkafka's mock broker.

The mock broker keeps records in memory and does next to nothing, so what is measured is the client.
"""

from __future__ import annotations

from multiprocessing.connection import Connection
from statistics import quantiles
from time import perf_counter
from typing import Any

from processes import Figures

TOPIC = "bench"
KEYS = 1000
VALUE = bytes(100)
PARTITIONS = 4  # of the mock broker's topics
API_VERSION = (2, 3)  # newer clients begin with a version of ApiVersions that the mock broker does not know
# One in a hundred consumers of kafka-python 3.0.12 does not ask for its topic when it starts, but when its
# metadata is this old: after five minutes unless told otherwise.
METADATA_AGE_MS = 2000


def mock_broker(link: Connection, *, records: int = 0) -> Figures:
    """Runs until the other side is done; with so many records in the topic, as KafkaProducer batches them."""
    from confluent_kafka import Producer
    from kafka import KafkaProducer

    cluster = Producer({"test.mock.num.brokers": 1, "bootstrap.servers": "", "log_level": 0})
    (broker,) = cluster.list_topics(timeout=10).brokers.values()
    cluster.list_topics(TOPIC, timeout=10)  # creates it
    servers = f"{broker.host}:{broker.port}"
    if records:
        with KafkaProducer(bootstrap_servers=servers, api_version=API_VERSION) as producer:
            for number in range(records):
                producer.send(TOPIC, VALUE, partition=number % PARTITIONS)
    link.send(servers)
    link.recv()
    return ()


def clients(link: Connection) -> dict[str, Any]:
    return {
        "bootstrap_servers": link.recv(),
        "api_version": API_VERSION,
        "metadata_max_age_ms": METADATA_AGE_MS,
    }


def send(link: Connection, *, count: int, **what: bool) -> Figures:
    """Records sent and acknowledged in a second."""
    from kafka import KafkaProducer

    figure = send_rate(KafkaProducer(**clients(link)), count, **what)
    link.send("done")
    return (figure,)


def iterate(link: Connection, *, count: int, group: str | None) -> Figures:
    """Records consumed in a second, from the first one to the last."""
    from kafka import KafkaConsumer

    options = clients(link)
    consumer = KafkaConsumer(TOPIC, **options, auto_offset_reset="earliest", group_id=group)
    figure = iteration_rate(consumer, count)
    link.send("done")
    return (figure,)


def latency(link: Connection, *, count: int) -> Figures:
    """Seconds from sending a record to holding it, one record at a time: p50, p99."""
    from kafka import KafkaConsumer, KafkaProducer

    options = clients(link)
    # The mock broker does not wake a waiting fetch when a record comes, so it must not wait long.
    consumer = KafkaConsumer(TOPIC, **options, auto_offset_reset="earliest", fetch_max_wait_ms=1)
    figures = round_trip(KafkaProducer(**options), consumer, count)
    link.send("done")
    return figures


def first_record(link: Connection) -> Figures:
    """Seconds from the import to the first record consumed; the broker is running."""
    options = clients(link)
    began = perf_counter()
    from kafka import KafkaConsumer, KafkaProducer

    producer = KafkaProducer(**options)  # an unreferenced producer may drop records that it has not sent
    producer.send(TOPIC, VALUE)
    next(KafkaConsumer(TOPIC, **options, auto_offset_reset="earliest"))
    ended = perf_counter()
    link.send("done")
    return (ended - began,)


# The measurements below are the same for kafka-python's classes and for ours.


def send_rate(producer: Any, count: int, keyed: bool = False, header: bool = False) -> float:
    producer.send(TOPIC, VALUE).get(timeout=10)  # connected, and the topic known
    send, headers = producer.send, [("name", b"value")] if header else None
    keys = [b"key %d" % number for number in range(KEYS)] if keyed else [None]
    some = count // len(keys)
    began = perf_counter()
    if header:
        for _ in range(some):
            for key in keys:
                send(TOPIC, VALUE, key, headers)
    elif keyed:
        for _ in range(some):
            for key in keys:
                send(TOPIC, VALUE, key)
    else:
        for _ in range(count):
            send(TOPIC, VALUE)
    producer.flush()
    count = some * len(keys)
    return count / (perf_counter() - began)


def iteration_rate(consumer: Any, count: int) -> float:
    next(consumer)
    began = perf_counter()
    for _ in range(count - 1):
        next(consumer)
    return (count - 1) / (perf_counter() - began)


def round_trip(producer: Any, consumer: Any, count: int) -> Figures:
    took = []
    for number in range(count + 10):
        began = perf_counter()
        producer.send(TOPIC, VALUE)
        next(consumer)
        if number >= 10:  # the first ones connect
            took.append(perf_counter() - began)
    percentiles = quantiles(took, n=100)
    return percentiles[49], percentiles[98]
