"""Times of the clients: NaN is refused wherever one enters, infinity is for ever."""

from __future__ import annotations

import inspect
import math

import pytest
from kafka.errors import KafkaConfigurationError
from kafka.structs import TopicPartition
from timing import SECONDS

from compat.kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer
from compat.kafka.share import ShareConsumer
from dafka.broker import connect
from dafka.testing import TestBroker

NAN = math.nan
T0 = TopicPartition("t", 0)

CLIENTS = {
    "producer": KafkaProducer,
    "consumer": KafkaConsumer,
    "admin": KafkaAdminClient,
    "share": lambda **configs: ShareConsumer(group_id="g", **configs),
}
SETTINGS = [
    (name, key)
    for name, defaults in (
        ("producer", KafkaProducer.DEFAULT_CONFIG),
        ("consumer", KafkaConsumer.DEFAULT_CONFIG),
        ("admin", KafkaAdminClient.DEFAULT_CONFIG),
        ("share", ShareConsumer.DEFAULT_CONFIG),
    )
    for key in defaults
    if key.endswith("_ms")
]

OF_A_CONSUMER = {
    "poll": lambda one: one.poll(timeout_ms=NAN),
    "position": lambda one: one.position(T0, timeout_ms=NAN),
    "commit": lambda one: one.commit(timeout_ms=NAN),
    "committed": lambda one: one.committed(T0, timeout_ms=NAN),
    "beginning_offsets": lambda one: one.beginning_offsets([T0], timeout_ms=NAN),
    "end_offsets": lambda one: one.end_offsets([T0], timeout_ms=NAN),
    "offsets_for_times": lambda one: one.offsets_for_times({T0: 0}, timeout_ms=NAN),
    "bootstrap": lambda one: one.bootstrap(timeout_ms=NAN),
    "close": lambda one: one.close(timeout_ms=NAN),
}
OF_A_SHARE_CONSUMER = {
    "poll": lambda one: one.poll(timeout_ms=NAN),
    "commit": lambda one: one.commit(timeout_ms=NAN),
    "close": lambda one: one.close(timeout_ms=NAN),
}
OF_AN_ADMIN = {
    "alter_partition_reassignments": lambda one: one.alter_partition_reassignments({T0: [0]}, timeout_ms=NAN),
    "create_partitions": lambda one: one.create_partitions({"t": 2}, timeout_ms=NAN),
    "create_topics": lambda one: one.create_topics([], NAN),
    "delete_records": lambda one: one.delete_records({T0: 0}, timeout_ms=NAN),
    "delete_topics": lambda one: one.delete_topics(["u"], timeout_ms=NAN),
    "elect_leaders": lambda one: one.elect_leaders(0, timeout_ms=NAN),
    "find_hanging_transactions": lambda one: one.find_hanging_transactions(max_transaction_timeout_ms=NAN),
    "list_partition_offsets": lambda one: one.list_partition_offsets({T0: -1}, timeout_ms=NAN),
    "list_partition_reassignments": lambda one: one.list_partition_reassignments(timeout_ms=NAN),
    "update_features": lambda one: one.update_features({}, timeout_ms=NAN),
    "wait_for_topics": lambda one: one.wait_for_topics(["nowhere"], timeout_ms=NAN),
}


@pytest.fixture(scope="module")
def broker():
    with TestBroker(listen=None) as one:
        one.create_topic("t")
        yield one


@pytest.mark.parametrize(("name", "key"), SETTINGS)
def test_a_setting_in_milliseconds_is_a_number(broker, name, key):
    for given, said in (
        (NAN, "is a number of milliseconds, not nan"),
        (None, "is a number of milliseconds, not None"),
        ("1000", "is a number of milliseconds, not '1000'"),
        (-5000, "is a number of milliseconds of 0 or more, not -5000"),
    ):
        if given == -5000 and key in ("connections_max_idle_ms", "consumer_timeout_ms"):
            continue
        if given is None and key in ("bootstrap_timeout_ms", "connections_max_idle_ms"):
            continue
        with pytest.raises(KafkaConfigurationError, match=f"{key} {said}"):
            CLIENTS[name](bootstrap_servers=broker.bootstrap_servers, **{key: given})


def test_a_time_that_brokers_are_told_is_none_that_kafkas_protocol_has_no_room_for(broker):
    for given in (math.inf, 2**31):
        with pytest.raises(KafkaConfigurationError, match=r"request_timeout_ms .*, at most 2147483647"):
            KafkaProducer(bootstrap_servers=broker.bootstrap_servers, request_timeout_ms=given)


@pytest.mark.parametrize("wait", OF_A_CONSUMER.values(), ids=OF_A_CONSUMER)
def test_a_consumer_refuses_to_wait_nan_milliseconds(broker, wait):
    with KafkaConsumer(bootstrap_servers=broker.bootstrap_servers, group_id="g") as consumer:
        consumer.assign([T0])
        consumer.seek(T0, 0)
        with pytest.raises(ValueError, match=r"timeout_ms is a number of milliseconds.*, not nan"):
            wait(consumer)
        assert consumer.position(T0) == 0  # it is still open


def test_a_consumer_refuses_to_wait_what_is_no_number(broker):
    with KafkaConsumer(bootstrap_servers=broker.bootstrap_servers, group_id="g") as consumer:
        with pytest.raises(TypeError, match="timeout_ms is a number of milliseconds, not str: '5'"):
            consumer.poll("5")
        with pytest.raises(ValueError, match="Timeout must not be negative"):
            consumer.poll(-1)


@pytest.mark.parametrize("wait", OF_A_SHARE_CONSUMER.values(), ids=OF_A_SHARE_CONSUMER)
def test_a_share_consumer_refuses_to_wait_nan_milliseconds(broker, wait):
    with ShareConsumer("t", bootstrap_servers=broker.bootstrap_servers, group_id="s") as consumer:
        with pytest.raises(ValueError, match=r"timeout_ms is a number of milliseconds.*, not nan"):
            wait(consumer)
        assert consumer.subscription() == {"t"}


@pytest.mark.parametrize("name", sorted(OF_AN_ADMIN))
def test_an_admin_refuses_to_wait_nan_milliseconds(broker, name):
    with (
        KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers) as admin,
        pytest.raises(ValueError, match=r"timeout_ms is a number of milliseconds.*, not nan"),
    ):
        OF_AN_ADMIN[name](admin)


def test_no_method_of_an_admin_with_a_time_is_forgotten():
    assert OF_AN_ADMIN.keys() == {
        name
        for name, method in inspect.getmembers(KafkaAdminClient, inspect.isfunction)
        if not name.startswith("_")
        and any(one.endswith("timeout_ms") for one in inspect.signature(method).parameters)
    }


def test_a_producer_refuses_to_wait_nan_seconds(broker):
    with KafkaProducer(bootstrap_servers=broker.bootstrap_servers) as producer:
        producer.partitions_for("t")
        with broker.hang():
            future = producer.send("t", b"x")
            for wait in (producer.flush, producer.close, future.get):
                with pytest.raises(ValueError, match="nan"):
                    wait(NAN)
        assert future.get(math.inf).topic == "t"
        producer.flush(math.inf)


def test_looking_for_a_broker_nan_seconds_is_refused():
    with pytest.raises(ValueError, match="timeout is a number of seconds or None, not nan"):
        connect("127.0.0.1:1", NAN)
    with pytest.raises(ValueError, match="request_timeout is a number of seconds, not nan"):
        connect("127.0.0.1:1", 0, request_timeout=NAN)


def test_infinity_is_for_ever(broker):
    producer = KafkaProducer(
        bootstrap_servers=broker.bootstrap_servers, max_block_ms=math.inf, bootstrap_timeout_ms=math.inf
    )
    producer.send("t", b"x").get(timeout=SECONDS)
    producer.close(SECONDS)
    with KafkaConsumer(
        bootstrap_servers=broker.bootstrap_servers, group_id="inf", auto_offset_reset="earliest"
    ) as consumer:
        consumer.assign([T0])
        assert consumer.poll(timeout_ms=math.inf)
        assert consumer.position(T0, timeout_ms=math.inf)
        consumer.commit(timeout_ms=math.inf)
        assert consumer.committed(T0, timeout_ms=math.inf)
        assert consumer.end_offsets([T0], timeout_ms=math.inf)[T0]
        consumer.close(timeout_ms=math.inf)
