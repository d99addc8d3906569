"""The facade over a broker in the same process, measured as kafka-python is (see ``kafka_python.py``)."""

from __future__ import annotations

from multiprocessing.connection import Connection
from time import perf_counter

from kafka_python import PARTITIONS, TOPIC, VALUE, iteration_rate, round_trip, send_rate
from processes import Figures


def send(*, count: int, **what: bool) -> Figures:
    """Records sent, committed to disk and acknowledged in a second."""
    from compat.kafka import KafkaProducer
    from dafka import Broker

    with Broker(default_partitions=PARTITIONS) as broker:
        return (send_rate(KafkaProducer(bootstrap_servers=broker.bootstrap_servers), count, **what),)


def send_over_tcp(link: Connection, *, count: int) -> Figures:
    """The same with the broker in another process, a :func:`facade_loads.listening_broker`."""
    from compat.kafka import KafkaProducer

    figure = send_rate(KafkaProducer(bootstrap_servers=link.recv()), count)
    link.send("done")
    return (figure,)


def iterate(*, count: int, group: str | None) -> Figures:
    """Records consumed in a second, from the first one to the last."""
    from compat.kafka import KafkaConsumer, KafkaProducer
    from dafka import Broker

    with Broker(default_partitions=PARTITIONS) as broker:
        servers = broker.bootstrap_servers
        send_rate(KafkaProducer(bootstrap_servers=servers), count)
        consumer = KafkaConsumer(
            TOPIC, bootstrap_servers=servers, auto_offset_reset="earliest", group_id=group
        )
        return (iteration_rate(consumer, count),)


def latency(*, count: int) -> Figures:
    """Seconds from sending a record to holding it, one record at a time: p50, p99."""
    from compat.kafka import KafkaConsumer, KafkaProducer
    from dafka import Broker

    with Broker(default_partitions=PARTITIONS) as broker:
        servers = broker.bootstrap_servers
        consumer = KafkaConsumer(TOPIC, bootstrap_servers=servers, auto_offset_reset="earliest")
        return round_trip(KafkaProducer(bootstrap_servers=servers), consumer, count)


def longest_turn(*, count: int) -> Figures:
    """Seconds of processor time of the hub's longest turn while so many records are sent."""
    from compat.kafka import KafkaProducer
    from dafka import Broker
    from dafka.hub.hub import get_hub

    with Broker(default_partitions=PARTITIONS) as broker:
        send_rate(KafkaProducer(bootstrap_servers=broker.bootstrap_servers), 1000)
        hub = get_hub()
        hub.run(hub.turns.reset)
        send_rate(KafkaProducer(bootstrap_servers=broker.bootstrap_servers), count)
        return (hub.turns.longest_cpu,)


def first_record() -> Figures:
    """Seconds from the import to the first record consumed, the broker's start included."""
    began = perf_counter()
    from compat.kafka import KafkaConsumer, KafkaProducer
    from dafka import Broker

    with Broker() as broker:
        servers = broker.bootstrap_servers
        producer = KafkaProducer(bootstrap_servers=servers)
        producer.send(TOPIC, VALUE)
        next(KafkaConsumer(TOPIC, bootstrap_servers=servers, auto_offset_reset="earliest"))
        return (perf_counter() - began,)


def resident_memory(*, count: int) -> Figures:
    """Bytes, of a process that is a broker and the producer that sent it so many records."""
    import psutil

    from compat.kafka import KafkaProducer
    from dafka import Broker

    with Broker(default_partitions=PARTITIONS) as broker:
        send_rate(KafkaProducer(bootstrap_servers=broker.bootstrap_servers), count)
        return (float(psutil.Process().memory_info().rss),)
