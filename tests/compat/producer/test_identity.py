"""Idempotence in the producer: repeated batches are stored once, also after refusals, losses and splits."""

from __future__ import annotations

import random
import threading

import pytest
from kafka.errors import (
    InvalidRecordError,
    KafkaConnectionError,
    KafkaError,
    KafkaStorageError,
    KafkaTimeoutError,
    MessageSizeTooLargeError,
    NotLeaderForPartitionError,
    OutOfOrderSequenceNumberError,
    RequestTimedOutError,
)
from timing import until

from compat.kafka import KafkaProducer
from dafka.broker import connect
from dafka.log import Log
from dafka.testing import TestBroker


def producers_of(broker: TestBroker, topic: str = "t") -> set[int]:
    """The producer ids that partition 0 knows."""
    found = connect(broker.bootstrap_servers, 100.0).call("describe_producers", [(topic, 0)])
    return {producer.producer_id for producer in found[topic, 0].producers}


@pytest.mark.parametrize("error", [NotLeaderForPartitionError, RequestTimedOutError, KafkaStorageError])
def test_records_whose_acknowledgement_was_lost_are_stored_once(broker, new_producer, error):
    producer = new_producer(retry_backoff_ms=5, batch_size=200)
    broker.fail_next_produce(error, written=True, times=3)
    futures = [producer.send("t", b"%d" % number) for number in range(200)]
    producer.flush(100)
    assert [future.get(1).offset for future in futures] == list(range(200))
    assert broker.values("t") == [b"%d" % number for number in range(200)]


def test_without_idempotence_they_may_be_stored_twice(broker, new_producer):
    producer = new_producer(retry_backoff_ms=5, enable_idempotence=False)
    broker.fail_next_produce(RequestTimedOutError, written=True)
    producer.send("t", b"a").get(100)
    assert broker.values("t") == [b"a", b"a"]
    assert producers_of(broker) == set()


def test_random_losses_and_errors_change_neither_number_nor_order(broker, new_producer):
    broker.create_topic("t", 3)
    chance = random.Random(7)
    producer = new_producer(retry_backoff_ms=1, batch_size=150)
    for number in range(600):
        if not number % 20:
            broker.fail_next_produce(
                chance.choice([NotLeaderForPartitionError, RequestTimedOutError]),
                written=chance.random() < 0.5,
            )
        producer.send("t", b"%d" % number, partition=number % 3)
    producer.flush(100)
    for partition in range(3):
        assert broker.values("t", partition) == [b"%d" % number for number in range(partition, 600, 3)]


def test_a_producer_goes_on_behind_a_record_that_was_refused(broker, new_producer):
    broker.create_topic("t", 1, {"max.message.bytes": "1000"})
    producer = new_producer()
    producer.send("t", b"a").get(100)
    with pytest.raises(MessageSizeTooLargeError):
        producer.send("t", b"x" * 2000).get(100)
    assert producer.send("t", b"b").get(100).offset == 1
    assert len(producers_of(broker)) == 1


def test_only_the_batch_to_blame_fails_when_several_are_refused_together(broker, new_producer):
    broker.create_topic("t", 1, {"max.message.bytes": "1000"})
    producer = new_producer(batch_size=500, linger_ms=200)
    small = [producer.send("t", b"%03d" % number + b"." * 97) for number in range(10)]
    large = producer.send("t", b"x" * 2000)
    more = [producer.send("t", b"%03d" % number + b"." * 97) for number in range(10, 20)]
    producer.flush(100)
    assert isinstance(large.exception, MessageSizeTooLargeError)
    assert [future.get(1).offset for future in small + more] == list(range(20))
    assert [value[:3] for value in broker.values("t")] == [b"%03d" % number for number in range(20)]


@pytest.mark.parametrize("idempotence", [True, False])
def test_a_batch_that_is_too_large_for_its_topic_is_split_and_sent_in_pieces(
    broker, new_producer, idempotence
):
    broker.create_topic("t", 1, {"max.message.bytes": "1500"})
    producer = new_producer(batch_size=16_000, linger_ms=100, enable_idempotence=idempotence)
    outcomes: list[tuple[int, int]] = []
    futures = []
    for number in range(100):
        value = b"%03d" % number + b"." * (2000 if number == 42 else 97)
        future = producer.send(
            "t", value, key=b"k", headers=[("n", b"%d" % number)], timestamp_ms=1000 + number
        )
        future.add_callback(lambda metadata, number=number: outcomes.append((number, metadata.offset)))
        future.add_errback(lambda error, number=number: outcomes.append((number, -1)))
        futures.append(future)
    producer.flush(100)
    assert isinstance(futures[42].exception, MessageSizeTooLargeError)
    assert futures[42].failed() and not futures[41].failed()
    del futures[42]
    assert [future.get(1).offset for future in futures] == list(range(99))
    records = broker.records("t")
    assert [record.value[:3] for record in records] == [b"%03d" % n for n in range(100) if n != 42]
    assert all(
        (record.key, record.timestamp, record.headers)
        == (b"k", 1000 + int(record.value[:3]), [("n", b"%d" % int(record.value[:3]))])
        for record in records
    )
    offsets = [*range(42), -1, *range(42, 99)]
    until(lambda: len(outcomes) == 100)
    assert outcomes == list(enumerate(offsets))


def test_after_records_with_an_unknown_outcome_a_partition_gets_a_new_producer_id(broker, new_producer):
    producer = new_producer(retry_backoff_ms=20)
    sender = producer._sender
    producer.send("t", b"a").get(100)
    broker.fail_next_produce(RequestTimedOutError, written=True, times=1000)
    future = producer.send("t", b"lost")
    broker.wait_for_records("t", 2)
    sender._delivery_timeout = 0.1  # only now: others must not take longer than they may
    with pytest.raises((KafkaTimeoutError, RequestTimedOutError)):
        future.get(100)
    sender._delivery_timeout = 100.0
    broker.clear_faults()
    assert producer.send("t", b"b").get(100).offset == 2
    assert broker.values("t") == [b"a", b"lost", b"b"]
    assert len(producers_of(broker)) == 2


def test_a_producer_whose_sequences_the_broker_refuses_goes_on_under_another_id(broker, new_producer):
    producer = new_producer(retry_backoff_ms=5)
    producer.send("t", b"a").get(100)
    broker.fail_next_produce(OutOfOrderSequenceNumberError)
    assert producer.send("t", b"b").get(100).offset == 1
    assert producer.send("t", b"c").get(100).offset == 2
    assert len(producers_of(broker)) == 2


def test_a_refusal_for_good_fails_its_records_only(broker, new_producer):
    producer = new_producer(batch_size=100, linger_ms=100)
    producer.partitions_for("t")
    broker.fail_next_produce(InvalidRecordError, times=2)
    with broker.hang():  # one goes alone at most, the others together
        futures = [producer.send("t", b"%d" % number + b"." * 100) for number in range(4)]
    producer.flush(100)
    failed = [number for number, future in enumerate(futures) if future.exception is not None]
    assert failed == [0]
    assert [future.get(1).offset for future in futures[1:]] == [0, 1, 2]


def test_records_wait_for_a_broker_that_is_stopped_and_comes_back(tmp_path):
    with TestBroker(tmp_path) as broker:
        producer = KafkaProducer(bootstrap_servers=broker.bootstrap_servers, retry_backoff_ms=10)
        producer.send("t", b"a").get(100)
        broker.stop()
        futures = [producer.send("t", b"%d" % number) for number in range(10)]
        again = threading.Timer(0.3, broker.start)
        again.start()
        assert [future.get(100).offset for future in futures] == list(range(1, 11))
        again.join()
        producer.close(100)


def test_records_for_a_broker_that_stays_away_fail_after_the_delivery_timeout(tmp_path):
    with TestBroker(tmp_path) as broker:
        producer = KafkaProducer(
            bootstrap_servers=broker.bootstrap_servers,
            delivery_timeout_ms=3000,
            request_timeout_ms=300,
            retry_backoff_ms=10,
        )
        producer.send("t", b"a").get(100)
    with pytest.raises(KafkaError):
        producer.send("t", b"b").get(100)
    producer.close(100)


def test_a_folder_that_another_process_has_is_an_error_of_kafka(tmp_path, monkeypatch):
    monkeypatch.setenv("DAFKA_EMBEDDED", str(tmp_path / "data"))
    with Log(tmp_path / "data"), pytest.raises(KafkaConnectionError, match="DAFKA_EMBEDDED"):
        KafkaProducer()
