"""Measurements with Kafka's clients at any broker in another process."""

from __future__ import annotations

import uuid
from statistics import quantiles
from time import perf_counter
from typing import Any

from processes import Figures

SECONDS = 120.0
BATCH = 10_000
TOO_MANY = 1_000_000  # records that librdkafka may buffer: its memory limit is not measured


def new_topic(servers: str, partitions: int) -> str:
    """Create a topic; returns its name."""
    from confluent_kafka.admin import AdminClient, NewTopic

    name = f"bench-{uuid.uuid4().hex[:12]}"
    admin = AdminClient({"bootstrap.servers": servers})
    (created,) = admin.create_topics([NewTopic(name, partitions, 1)]).values()
    created.result(SECONDS)
    give_up = perf_counter() + SECONDS
    while len(admin.list_topics(name, timeout=SECONDS).topics[name].partitions) < partitions:
        if perf_counter() > give_up:
            raise TimeoutError(f"{name} was created and is not there")
    return name


def fill(servers: str, topic: str, size: int, count: int, acks: str = "all", **door: Any) -> float:
    """Seconds that librdkafka took to write records and have them acknowledged; ``door``: how it logs in."""
    from confluent_kafka import Producer

    producer = Producer(
        {
            **door,
            "bootstrap.servers": servers,
            "acks": acks,
            "linger.ms": 5,
            "queue.buffering.max.messages": TOO_MANY,
            "queue.buffering.max.kbytes": 1 << 20,
        }
    )
    producer.list_topics(topic, timeout=SECONDS)  # connected
    value, produce = bytes(size), producer.produce
    began = perf_counter()
    for number in range(count):
        try:
            produce(topic, value)
        except BufferError:  # the broker is behind by as many as may wait
            while len(producer) > TOO_MANY // 2:
                producer.poll(0.1)
            produce(topic, value)
        if not number % BATCH:
            producer.poll(0)
    if producer.flush(SECONDS):
        raise TimeoutError(f"not acknowledged within {SECONDS} s")
    return perf_counter() - began


def librdkafka_produce(*, servers: str, size: int, partitions: int, count: int, acks: str) -> Figures:
    """Records a second."""
    return (count / fill(servers, new_topic(servers, partitions), size, count, acks),)


def librdkafka_consume(*, servers: str, size: int, partitions: int, count: int) -> Figures:
    """Records a second, from the first one to the last."""
    topic = new_topic(servers, partitions)
    fill(servers, topic, size, count)
    return ((count - 1) / consume_all(servers, topic, partitions, count),)


def consume_all(servers: str, topic: str, partitions: int, count: int, **door: Any) -> float:
    """Seconds that librdkafka took to read so many records, from the first one to the last."""
    from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

    consumer = Consumer(
        {
            **door,
            "bootstrap.servers": servers,
            "group.id": "not used",
            "enable.auto.commit": False,
            # With a full queue librdkafka pauses for a second (fetch.queue.backoff.ms).
            "queued.min.messages": TOO_MANY,
            "queued.max.messages.kbytes": 1 << 20,
        }
    )
    consumer.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in range(partitions)])
    got = len(consumer.consume(1, SECONDS))
    began = perf_counter()
    while got < count:
        batch = consumer.consume(min(BATCH, count - got), 1.0)  # it waits for as many as it is asked for
        got += sum(message.error() is None for message in batch)
        if perf_counter() > began + SECONDS:
            raise TimeoutError(f"{got} of {count} records within {SECONDS} s")
    seconds = perf_counter() - began
    consumer.close()
    return seconds


def kafka_python_produce(*, servers: str, size: int, partitions: int, count: int) -> Figures:
    """Records a second, with kafka-python's own settings."""
    from kafka import KafkaProducer

    return (_send(KafkaProducer(bootstrap_servers=servers), new_topic(servers, partitions), size, count),)


def kafka_python_consume(*, servers: str, size: int, partitions: int, count: int) -> Figures:
    """Records a second, from the first one to the last."""
    from kafka import KafkaConsumer

    return (_iterate(KafkaConsumer, servers, size, partitions, count),)


def facade_produce(*, servers: str, size: int, partitions: int, count: int) -> Figures:
    """Records a second with this project's KafkaProducer over TCP."""
    from compat.kafka import KafkaProducer

    return (_send(KafkaProducer(bootstrap_servers=servers), new_topic(servers, partitions), size, count),)


def facade_consume(*, servers: str, size: int, partitions: int, count: int) -> Figures:
    """Records a second with this project's KafkaConsumer over TCP."""
    from compat.kafka import KafkaConsumer

    return (_iterate(KafkaConsumer, servers, size, partitions, count),)


def embedded_produce(*, size: int, partitions: int, count: int) -> Figures:
    """Records a second with this project's KafkaProducer and a broker in the same process."""
    from compat.kafka import KafkaProducer
    from dafka import Broker

    with Broker(listen="127.0.0.1:0") as broker:
        topic = new_topic(broker.bootstrap_servers, partitions)
        return (_send(KafkaProducer(bootstrap_servers=broker.bootstrap_servers), topic, size, count),)


def embedded_consume(*, size: int, partitions: int, count: int) -> Figures:
    """Records a second with this project's KafkaConsumer and a broker in the same process."""
    from compat.kafka import KafkaConsumer
    from dafka import Broker

    with Broker(listen="127.0.0.1:0") as broker:
        return (_iterate(KafkaConsumer, broker.bootstrap_servers, size, partitions, count),)


def latency(*, servers: str, count: int) -> Figures:
    """Seconds from sending a record to holding it, one at a time, with librdkafka: p50, p99."""
    from confluent_kafka import Consumer, Producer, TopicPartition

    topic = new_topic(servers, 1)
    producer = Producer({"bootstrap.servers": servers, "linger.ms": 0})
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "not used", "enable.auto.commit": False})
    consumer.assign([TopicPartition(topic, 0, 0)])
    took = []
    for number in range(count + 10):
        began = perf_counter()
        producer.produce(topic, bytes(100))
        producer.poll(0)
        if consumer.poll(SECONDS) is None:
            raise TimeoutError(f"nothing came for {SECONDS} s")
        if number >= 10:  # the first ones connect
            took.append(perf_counter() - began)
    consumer.close()
    producer.flush(SECONDS)
    percentiles = quantiles(took, n=100)
    return percentiles[49], percentiles[98]


def first_record(*, servers: str) -> Figures:
    """Writes one record and reads it, with a client that is ready to: nothing to measure but the broker."""
    from confluent_kafka import Consumer, Producer, TopicPartition

    topic = new_topic(servers, 1)
    producer = Producer({"bootstrap.servers": servers, "linger.ms": 0})
    producer.produce(topic, b"first")
    producer.flush(SECONDS)
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "not used"})
    consumer.assign([TopicPartition(topic, 0, 0)])
    if consumer.poll(SECONDS) is None:
        raise TimeoutError(f"nothing came for {SECONDS} s")
    return ()


def group_start(*, servers: str) -> Figures:
    """Seconds from subscribing in a new group to its first record."""
    from confluent_kafka import Consumer

    topic = new_topic(servers, 1)
    fill(servers, topic, 100, 1)
    # The first group of all has the broker make its own topic of offsets; that is not a group's start.
    for _ in range(2):
        consumer = Consumer(
            {
                "bootstrap.servers": servers,
                "group.id": f"group-{uuid.uuid4().hex[:8]}",
                "auto.offset.reset": "earliest",
            }
        )
        consumer.list_topics(timeout=SECONDS)  # connected
        began = perf_counter()
        consumer.subscribe([topic])
        if consumer.poll(SECONDS) is None:
            raise TimeoutError(f"nothing came for {SECONDS} s")
        figure = perf_counter() - began
        consumer.close()
    return (figure,)


def _send(producer: Any, topic: str, size: int, count: int) -> float:
    value, send = bytes(size), producer.send
    send(topic, value).get(timeout=SECONDS)  # connected, and the topic known
    began = perf_counter()
    for _ in range(count):
        send(topic, value)
    producer.flush()
    return count / (perf_counter() - began)


def _iterate(consumer_class: Any, servers: str, size: int, partitions: int, count: int) -> float:
    topic = new_topic(servers, partitions)
    fill(servers, topic, size, count)
    consumer = consumer_class(topic, bootstrap_servers=servers, auto_offset_reset="earliest")
    next(consumer)
    began = perf_counter()
    for _ in range(count - 1):
        next(consumer)
    figure = (count - 1) / (perf_counter() - began)
    consumer.close()
    return figure
