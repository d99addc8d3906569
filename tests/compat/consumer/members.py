"""The topic that members of a group share in these tests, and how they come to share it."""

from __future__ import annotations

from collections.abc import Callable

from timing import until

from compat.kafka import KafkaConsumer, KafkaProducer, TopicPartition
from tests.compat.consumer.readers import settled

PARTITIONS = 12
T = [TopicPartition("t", number) for number in range(PARTITIONS)]

Members = Callable[..., KafkaConsumer]


def produce(producer: KafkaProducer, first: int, count: int) -> range:
    for number in range(first, first + count):
        producer.send("t", b"%d" % number, partition=number % PARTITIONS)
    producer.flush(100)
    return range(first, first + count)


def join(*consumers: KafkaConsumer) -> None:
    """Poll these in turn until they are all members of one generation."""

    def polled() -> bool:
        for consumer in consumers:
            consumer.poll(5, max_records=1, update_offsets=False)
        return settled(list(consumers), PARTITIONS)

    until(polled)


def read_first_records(consumer: KafkaConsumer) -> None:
    """Poll until the first record of every partition has been read."""

    def read() -> bool:
        consumer.poll(100)
        return consumer.assignment() == set(T) and all(consumer.position(one) == 1 for one in T)

    until(read)
