"""The interface over TCP, and transactions of the facade, keep their promises with either broker."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator

import pytest
from clients.adapters.client import SECONDS
from clients.conftest import MakeTopic
from kafka.errors import InvalidProducerEpochError, KafkaError, OffsetOutOfRangeError, ProducerFencedError
from timing import until

from compat.kafka import KafkaConsumer, KafkaProducer, TopicPartition
from compat.kafka.structs import OffsetAndMetadata
from dafka.broker import connect
from dafka.broker.interface.broker import FetchFrom
from dafka.protocol.batch_writer import encode_batch

Make = Callable[[], KafkaProducer]


@pytest.mark.parametrize("offset", [0, 99])
def test_an_offset_out_of_range_comes_with_the_partitions_limits(
    servers: str, new_topic: MakeTopic, offset: int
) -> None:
    partition = (new_topic(1), 0)
    now = int(time.time() * 1000)
    connection = connect(servers, SECONDS)
    try:
        batch = encode_batch([(now, None, b"x", ())] * 3)
        assert connection.call("produce", {partition: [batch]})[partition].error is None
        assert connection.call("delete_records", {partition: 2})[partition].low_watermark == 2
        wanted = {partition: FetchFrom(offset, 1000)}
        found = connection.call("fetch", wanted, max_wait=SECONDS, min_bytes=1, max_bytes=1000)[partition]
        assert found.error is OffsetOutOfRangeError
        assert (found.log_start_offset, found.high_watermark) == (2, 3)
    finally:
        connection.close()


@pytest.fixture
def transactional_id() -> str:
    return f"facade-{uuid.uuid4().hex[:8]}"


@pytest.fixture
def new_producer(servers: str, transactional_id: str) -> Iterator[Make]:
    made: list[KafkaProducer] = []

    def make() -> KafkaProducer:
        producer = KafkaProducer(bootstrap_servers=servers, transactional_id=transactional_id)
        made.append(producer)
        producer.init_transactions()
        return producer

    yield make
    for producer in made:
        producer.close(SECONDS)


@pytest.fixture
def state(servers: str, transactional_id: str) -> Iterator[Callable[[], tuple[str, int]]]:
    """The state of the transaction, and the producer's epoch."""
    connection = connect(servers, SECONDS)

    def look() -> tuple[str, int]:
        def look_once() -> tuple[str, int] | None:
            found = connection.call("describe_transactions", [transactional_id])[transactional_id]
            return None if found.state.startswith("Prepare") else (found.state, found.epoch)

        return until(look_once, "the end of the transaction")  # Apache Kafka answers in front of the markers

    yield look
    connection.close()


def read(servers: str, topic: str) -> list[bytes]:
    partitions = [TopicPartition(topic, number) for number in range(3)]
    with KafkaConsumer(
        bootstrap_servers=servers, auto_offset_reset="earliest", isolation_level="read_committed"
    ) as consumer:
        consumer.assign(partitions)
        ends = consumer.end_offsets(partitions)
        values: list[bytes] = []
        while any(consumer.position(one) < ends[one] for one in partitions):
            values += [record.value for some in consumer.poll(200).values() for record in some]
    return sorted(values)


def test_each_end_raises_the_epoch(
    servers: str, topic: str, new_producer: Make, state: Callable[[], tuple[str, int]]
) -> None:
    producer = new_producer()
    group = f"g-{topic}"
    states = []
    for number, commit in enumerate((True, False, True)):
        producer.begin_transaction()
        for partition in range(3):
            producer.send(topic, b"%d.%d" % (number, partition), partition=partition)
        offset = OffsetAndMetadata(10 + number, "", -1)
        producer.send_offsets_to_transaction({TopicPartition(topic, 0): offset}, group)
        producer.flush(SECONDS)
        producer.commit_transaction() if commit else producer.abort_transaction()
        states.append(state())
    producer.begin_transaction()
    producer.abort_transaction()  # nothing was sent, and the broker need not be asked
    states.append(state())
    assert states == [("CompleteCommit", 1), ("CompleteAbort", 2), *[("CompleteCommit", 3)] * 2]
    assert read(servers, topic) == sorted(b"%d.%d" % (number, one) for number in (0, 2) for one in range(3))
    with KafkaConsumer(bootstrap_servers=servers, group_id=group) as consumer:
        assert consumer.committed(TopicPartition(topic, 0)) == 12


def test_the_next_instance_fences_the_one_before(servers: str, topic: str, new_producer: Make) -> None:
    old = new_producer()
    old.begin_transaction()
    old.send(topic, b"old", partition=0).get(SECONDS)
    new = new_producer()
    with pytest.raises(InvalidProducerEpochError):
        old.send(topic, b"late", partition=1).get(SECONDS)
    with pytest.raises(KafkaError, match="in an error state"):
        old.commit_transaction()
    with pytest.raises(ProducerFencedError):
        old.abort_transaction()
    new.begin_transaction()
    new.send(topic, b"new", partition=0)
    new.commit_transaction()
    assert read(servers, topic) == [b"new"]


def test_a_refused_record_is_answered_with_an_abort(
    servers: str, new_topic: MakeTopic, new_producer: Make
) -> None:
    topic = new_topic(3, max_message_bytes="1000")
    producer = new_producer()
    producer.begin_transaction()
    producer.send(topic, b"before", partition=0).get(SECONDS)
    with pytest.raises(KafkaError):
        producer.send(topic, b"x" * 2000, partition=1).get(SECONDS)
    with pytest.raises(KafkaError, match="in an error state"):
        producer.commit_transaction()
    producer.abort_transaction()
    producer.begin_transaction()
    producer.send(topic, b"after", partition=1)
    producer.commit_transaction()
    assert read(servers, topic) == [b"after"]
