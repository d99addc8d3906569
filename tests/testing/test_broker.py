"""TestBroker: filling a broker, looking into it, waiting for it and making it fail."""

from __future__ import annotations

import threading
import time

import pytest
from kafka.errors import (
    GroupAuthorizationFailedError,
    InvalidTopicError,
    KafkaStorageError,
    MessageSizeTooLargeError,
    NotLeaderForPartitionError,
    RequestTimedOutError,
    UnknownTopicOrPartitionError,
)

from compat.kafka import KafkaProducer, TopicPartition
from dafka import Broker
from dafka.broker import BrokerInterface, connect
from dafka.testing import NotInTimeError, TestBroker, wait_until


def test_it_is_a_broker_with_every_argument_of_one(tmp_path):
    with TestBroker(tmp_path, default_partitions=3) as broker:
        assert isinstance(broker, Broker)
        broker.preload("t", [b"a"])
        assert broker.partitions("t") == [0, 1, 2]
    with Broker(tmp_path) as plain:
        assert list(connect(plain.bootstrap_servers).call("metadata", None).topics) == ["t"]


def test_what_clients_find_is_the_interface(dafka_broker):
    found = connect(dafka_broker.bootstrap_servers).broker
    assert isinstance(found, BrokerInterface)
    public = [name for name in dir(BrokerInterface) if not name.startswith("_")]
    missing = [
        name for name in public if callable(getattr(BrokerInterface, name)) != callable(getattr(found, name))
    ]
    assert not missing


def test_faults_and_helpers_work_after_a_restart(tmp_path, kafka_producer):
    broker = TestBroker(tmp_path)
    with broker:
        broker.preload("t", [b"a"])
    with broker:
        broker.fail_next_produce(MessageSizeTooLargeError)
        producer = KafkaProducer(bootstrap_servers=broker.bootstrap_servers)
        with producer, pytest.raises(MessageSizeTooLargeError):
            producer.send("t", b"b").get(5)
        assert broker.values("t") == [b"a"]


# --------------------------------------------------------------------------------------- filling and looking


def test_preloaded_records_are_read_back_as_consumer_records(dafka_broker):
    dafka_broker.preload("t", [b"plain", "text", (b"k", b"v"), ("k", None), {"value": "x", "timestamp": 5}])
    records = dafka_broker.records("t")
    assert [(r.key, r.value) for r in records] == [
        (None, b"plain"),
        (None, b"text"),
        (b"k", b"v"),
        (b"k", None),
        (None, b"x"),
    ]
    assert [r.offset for r in records] == [0, 1, 2, 3, 4]
    assert records[4].timestamp == 5
    assert abs(records[0].timestamp / 1000 - time.time()) < 60


def test_headers_and_partitions_of_a_preloaded_record(dafka_broker):
    dafka_broker.create_topic("t", 3)
    dafka_broker.preload("t", [{"value": b"v", "headers": [("h", b"1"), ("n", None)], "partition": 2}])
    dafka_broker.preload("t", [b"w"], partition=1)
    first, second = dafka_broker.records("t")
    assert (first.partition, first.value) == (1, b"w")
    assert (second.partition, second.headers) == (2, [("h", b"1"), ("n", None)])
    assert dafka_broker.values("t", 2) == [b"v"]
    assert dafka_broker.values("t", 0) == []


def test_preloaded_keys_go_where_a_producer_sends_them(dafka_broker, kafka_producer):
    dafka_broker.create_topic("preloaded", 5)
    dafka_broker.create_topic("produced", 5)
    keys = [b"key-%d" % number for number in range(50)]
    dafka_broker.preload("preloaded", [(key, b"") for key in keys])
    for key in keys:
        kafka_producer.send("produced", key=key, value=b"")
    kafka_producer.flush(5)
    homes = [{r.key: r.partition for r in dafka_broker.records(topic)} for topic in ("preloaded", "produced")]
    assert homes[0] == homes[1]
    assert len(set(homes[0].values())) == 5


def test_preloaded_records_without_a_key_are_spread_evenly(dafka_broker):
    dafka_broker.create_topic("t", 4)
    dafka_broker.preload("t", [b"x"] * 40)
    assert set(dafka_broker.end_offsets("t").values()) == {10}


def test_many_and_large_records_are_preloaded(dafka_broker):
    dafka_broker.preload("many", (b"%d" % number for number in range(12_345)))
    assert dafka_broker.values("many") == [b"%d" % number for number in range(12_345)]
    dafka_broker.preload("large", [b"x" * 400_000] * 50)
    assert list(map(len, dafka_broker.values("large"))) == [400_000] * 50


@pytest.mark.parametrize("record", [1, (b"a",), (b"a", b"b", b"c"), {"values": b"x"}, {"value": 1.5}])
def test_what_is_no_record_cannot_be_preloaded(dafka_broker, record):
    with pytest.raises(TypeError):
        dafka_broker.preload("t", [b"fine", record])
    assert dafka_broker.values("t") == []


def test_errors_of_the_broker_come_out_of_filling(dafka_broker):
    with pytest.raises(UnknownTopicOrPartitionError, match="7"):
        dafka_broker.preload("t", [b"a"], partition=7)
    with pytest.raises(InvalidTopicError):
        dafka_broker.preload("no such/topic", [b"a"])
    with pytest.raises(InvalidTopicError):
        dafka_broker.create_topic("..")


def test_a_topic_that_does_not_exist_is_empty(dafka_broker):
    assert dafka_broker.topics() == []
    assert dafka_broker.records("t") == dafka_broker.partitions("t") == []
    assert dafka_broker.end_offsets("t") == dafka_broker.lag("g", "t") == dafka_broker.committed("g") == {}
    assert dafka_broker.topics() == []  # and looking does not create it


def test_committed_offsets_and_lag_of_a_group(dafka_broker, kafka_consumer_factory):
    dafka_broker.create_topic("t", 2)
    dafka_broker.preload("t", [b"x"] * 10)
    dafka_broker.preload("other", [b"y"])
    assert dafka_broker.lag("g") == {}
    assert dafka_broker.lag("g", "t") == {("t", 0): 5, ("t", 1): 5}
    consumer = kafka_consumer_factory("t", group_id="g", enable_auto_commit=False, max_poll_records=3)
    wait_until(lambda: consumer.poll(100))
    consumer.commit()
    assert sum(dafka_broker.committed("g").values()) == 3
    assert sum(dafka_broker.lag("g", "t").values()) == 7
    assert dafka_broker.committed("g", "other") == {}
    assert all(isinstance(partition, TopicPartition) for partition in dafka_broker.committed("g"))


# ------------------------------------------------------------------------------------------ waiting


def test_waiting_for_records_returns_them_when_they_are_there(dafka_broker, kafka_producer):
    later = threading.Timer(0.05, lambda: [kafka_producer.send("t", b"%d" % n) for n in range(3)])
    later.start()
    assert [r.value for r in dafka_broker.wait_for_records("t", 3)] == [b"0", b"1", b"2"]
    later.join()


def test_waiting_in_vain_fails_the_test_and_says_what_was_there(dafka_broker):
    dafka_broker.preload("t", [b"a"])
    with pytest.raises(AssertionError, match="3 records in topic 't', there are 1"):
        dafka_broker.wait_for_records("t", 3, timeout=0.02)
    with pytest.raises(NotInTimeError, match="group 'g', there is nothing committed yet"):
        dafka_broker.wait_for_lag("g", timeout=0.02)
    with pytest.raises(NotInTimeError, match=r"not within 0\.01 s: the moon"):
        dafka_broker.wait_until(lambda: False, 0.01, "the moon")


def test_waiting_for_a_group_to_catch_up(dafka_broker, kafka_consumer_factory):
    dafka_broker.preload("t", [b"x"] * 100)

    def consume() -> None:
        consumer = kafka_consumer_factory("t", group_id="g", consumer_timeout_ms=100)
        for _ in consumer:
            pass
        consumer.commit()

    thread = threading.Thread(target=consume)
    thread.start()
    dafka_broker.wait_for_lag("g")
    assert dafka_broker.committed("g") == {("t", 0): 100}
    thread.join()


def test_what_the_condition_raises_comes_through():
    with pytest.raises(KeyError):
        wait_until(lambda: {}["x"], 5)
    assert wait_until(lambda: "found", 0) == "found"


# ------------------------------------------------------------------------------------------ failing


def test_a_failing_produce_fails_the_future_once(dafka_broker, kafka_producer):
    dafka_broker.fail_next_produce(MessageSizeTooLargeError)
    with pytest.raises(MessageSizeTooLargeError):
        kafka_producer.send("t", b"a").get(5)
    kafka_producer.send("t", b"b").get(5)
    assert dafka_broker.values("t") == [b"b"]


def test_a_retriable_error_is_retried_and_the_program_notices_nothing(dafka_broker, kafka_producer):
    dafka_broker.fail_next_produce(NotLeaderForPartitionError, times=2)
    assert kafka_producer.send("t", b"a").get(10).offset == 0
    assert dafka_broker.values("t") == [b"a"]


def test_without_retries_it_is_not_retried(dafka_broker):
    dafka_broker.fail_next_produce(NotLeaderForPartitionError)
    with (
        KafkaProducer(
            bootstrap_servers=dafka_broker.bootstrap_servers, retries=0, enable_idempotence=False
        ) as producer,
        pytest.raises(NotLeaderForPartitionError),
    ):
        producer.send("t", b"a").get(5)
    assert dafka_broker.values("t") == []


def test_only_the_topic_that_was_named_fails(dafka_broker, kafka_producer):
    dafka_broker.fail_next_produce(MessageSizeTooLargeError, topic="bad")
    good, bad = kafka_producer.send("good", b"a"), kafka_producer.send("bad", b"b")
    assert good.get(5).offset == 0
    with pytest.raises(MessageSizeTooLargeError):
        bad.get(5)


def test_an_answer_that_gets_lost_leaves_the_records_written(dafka_broker):
    with KafkaProducer(
        bootstrap_servers=dafka_broker.bootstrap_servers, retries=0, enable_idempotence=False
    ) as producer:
        dafka_broker.fail_next_produce(RequestTimedOutError, written=True)
        with pytest.raises(RequestTimedOutError):
            producer.send("t", b"a").get(5)
    assert dafka_broker.values("t") == [b"a"]


def test_a_failing_commit_notes_nothing(dafka_broker, kafka_consumer_factory):
    dafka_broker.preload("t", [b"a"])
    consumer = kafka_consumer_factory("t", group_id="g", enable_auto_commit=False)
    assert next(consumer).value == b"a"
    dafka_broker.fail_next_commit(GroupAuthorizationFailedError)
    with pytest.raises(GroupAuthorizationFailedError):
        consumer.commit()
    assert dafka_broker.committed("g") == {}
    consumer.commit()
    assert dafka_broker.committed("g") == {("t", 0): 1}


def test_delayed_fetches_come_late_and_only_while_ordered(dafka_broker, kafka_consumer_factory):
    dafka_broker.preload("t", [b"a"])
    with dafka_broker.delay_fetches(0.3):
        begin = time.monotonic()
        assert next(kafka_consumer_factory("t")).value == b"a"
        assert time.monotonic() - begin >= 0.3
    dafka_broker.delay_fetches(30, topic="another")
    begin = time.monotonic()
    assert next(kafka_consumer_factory("t")).value == b"a"
    assert time.monotonic() - begin < 5


def test_a_poll_does_not_take_longer_because_fetches_are_delayed(dafka_broker, kafka_consumer_factory):
    dafka_broker.preload("slow", [b"a"])
    dafka_broker.preload("fast", [b"b"])
    consumer = kafka_consumer_factory("slow", "fast")
    dafka_broker.delay_fetches(30, topic="slow")
    begin = time.monotonic()
    assert [r.value for r in wait_until(lambda: consumer.poll(100))["fast", 0]] == [b"b"]
    assert consumer.poll(100) == {}
    assert time.monotonic() - begin < 5
    dafka_broker.clear_faults()
    assert [r.value for r in wait_until(lambda: consumer.poll(100))["slow", 0]] == [b"a"]


def test_records_held_back_come_at_once_when_the_delay_is_taken_back(dafka_broker, kafka_consumer_factory):
    dafka_broker.preload("t", [b"a"])
    dafka_broker.delay_fetches(30)
    consumer = kafka_consumer_factory("t")
    later = threading.Timer(0.1, dafka_broker.clear_faults)
    later.start()
    begin = time.monotonic()
    assert consumer.poll(20_000)
    assert time.monotonic() - begin < 5
    later.join()


def test_looking_and_filling_go_past_the_faults(dafka_broker):
    dafka_broker.fail_next_produce(KafkaStorageError, times=100)
    dafka_broker.delay_fetches(30)
    dafka_broker.preload("t", [b"a"])
    assert dafka_broker.values("t") == [b"a"]


def test_faults_are_taken_back(dafka_broker, kafka_producer, kafka_consumer_factory):
    dafka_broker.fail_next_produce(MessageSizeTooLargeError, times=100)
    dafka_broker.fail_next_commit(KafkaStorageError)
    dafka_broker.delay_fetches(30)
    dafka_broker.clear_faults()
    kafka_producer.send("t", b"a").get(5)
    consumer = kafka_consumer_factory("t", group_id="g")
    assert next(consumer).value == b"a"
    consumer.commit()


def test_a_broker_with_delayed_fetches_can_be_stopped(dafka_broker, kafka_consumer_factory):
    dafka_broker.preload("t", [b"a"])
    dafka_broker.delay_fetches(30)
    kafka_consumer_factory("t").poll(10)
    begin = time.monotonic()
    dafka_broker.stop()
    assert time.monotonic() - begin < 5


@pytest.mark.parametrize("error", [ValueError, KafkaStorageError(), "KafkaStorageError", None])
def test_only_error_classes_of_kafka_can_be_ordered(dafka_broker, error):
    with pytest.raises(TypeError, match=r"kafka\.errors"):
        dafka_broker.fail_next_produce(error)


def test_faults_that_could_not_happen_are_refused(dafka_broker):
    for times in (0, -1, 1.5):
        with pytest.raises(ValueError, match=f"not {times}"):
            dafka_broker.fail_next_commit(KafkaStorageError, times=times)
    for seconds in (-1, float("nan")):
        with pytest.raises(ValueError, match=f"not {seconds}"):
            dafka_broker.delay_fetches(seconds)


def test_a_number_of_partitions_that_is_none_is_refused(dafka_broker):
    with pytest.raises(TypeError, match="'3'"):
        dafka_broker.create_topic("t", "3")
