"""TestBroker: starting it, filling it and looking into it."""

from __future__ import annotations

import time

import pytest
from kafka.errors import (
    InvalidTopicError,
    MessageSizeTooLargeError,
    UnknownTopicOrPartitionError,
)

from compat.kafka import KafkaProducer, TopicPartition
from dafka import Broker
from dafka.broker import BrokerInterface, connect
from dafka.testing import TestBroker, wait_until


def test_it_is_a_broker_with_every_argument_of_one(tmp_path):
    with TestBroker(tmp_path, default_partitions=3) as broker:
        assert isinstance(broker, Broker)
        broker.preload("t", [b"a"])
        assert broker.partitions("t") == [0, 1, 2]
    with Broker(tmp_path) as plain:
        assert list(connect(plain.bootstrap_servers).call("metadata", None).topics) == ["t"]


def test_clients_of_this_process_get_the_interface(dafka_broker):
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
            producer.send("t", b"b").get(100)
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
    kafka_producer.flush(100)
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
def test_invalid_records_cannot_be_preloaded(dafka_broker, record):
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


def test_an_invalid_number_of_partitions_is_refused(dafka_broker):
    with pytest.raises(TypeError, match="'3'"):
        dafka_broker.create_topic("t", "3")
