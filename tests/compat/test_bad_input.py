"""What kafka-python raises, this raises: same class, same moment.

Where no broker is needed to see it, the same lines run with kafka-python's own class and with ours, and
the exceptions are compared. kafka-python's producer and consumer do not look for a broker when they are
told its version.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable, Iterator
from typing import Any

import kafka
import pytest
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.coordinator.assignors.range import RangePartitionAssignor

import compat.kafka
from compat.kafka import (
    KafkaAdminClient,
    KafkaConsumer,
    KafkaProducer,
    OffsetAndMetadata,
    TopicPartition,
)
from compat.kafka.admin import ConfigResource
from compat.kafka.errors import (
    CommitFailedError,
    IllegalStateError,
    KafkaTimeoutError,
    MessageSizeTooLargeError,
)
from dafka import Broker
from dafka.testing import TestBroker
from tests.compat.refusing import NOWHERE, outcome

pytestmark = pytest.mark.usefixtures("kafka_python_ends")


# -- configuration that is refused before any broker is looked for ------------------------------------

CONFIGURATIONS = [
    ("KafkaProducer", {"no_such_key": 1}),
    ("KafkaConsumer", {"no_such_key": 1}),
    ("KafkaAdminClient", {"no_such_key": 1}),
    ("KafkaConsumer", {"fetch_max_wait_ms": 40_000}),
    ("KafkaConsumer", {"request_timeout_ms": 600_000}),
]


@pytest.mark.parametrize(("name", "config"), CONFIGURATIONS, ids=str)
def test_configuration_is_refused_as_by_kafka_python(name: str, config: dict[str, Any]) -> None:
    theirs = outcome(lambda: getattr(kafka, name)(**config))
    ours = outcome(lambda: getattr(compat.kafka, name)(**config))
    assert theirs is not None
    assert (type(ours), str(ours)) == (type(theirs), str(theirs))


# -- configuration that kafka-python refuses once it knows the broker's version -----------------------

PRODUCER_CONFIGURATIONS = [
    {"compression_type": "brotli"},
    {"transactional_id": "t", "enable_idempotence": False},
    {"enable_idempotence": True, "acks": 1},
    {"enable_idempotence": True, "acks": 0},
    {"enable_idempotence": True, "retries": 0},
    {"enable_idempotence": True, "max_in_flight_requests_per_connection": 6},
    {"transactional_id": "t", "acks": 1},
    {"delivery_timeout_ms": 1000},
    {"delivery_timeout_ms": 30_000, "linger_ms": 1},
]


CONSUMER_CONFIGURATIONS = [
    {"isolation_level": "read_everything"},
    {"group_instance_id": "i"},
    {"group_id": "g", "partition_assignment_strategy": []},
    {"group_id": "g", "partition_assignment_strategy": [RangePartitionAssignor, CooperativeStickyAssignor]},
]


def test_network_settings_are_accepted(broker: Broker) -> None:
    for client in (KafkaProducer, KafkaConsumer, KafkaAdminClient):
        with client(
            bootstrap_servers=[broker.bootstrap_servers],
            security_protocol="SSL",
            ssl_cafile="/nowhere",
            sasl_mechanism="PLAIN",
            reconnect_backoff_ms=1,
            socket_options=[],
            client_id="me",
        ):
            pass


@pytest.mark.parametrize("client", [KafkaProducer, KafkaConsumer, KafkaAdminClient])
def test_a_broker_that_is_not_there_is_a_timeout(client: Any) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{unused.getsockname()[1]}"
        with pytest.raises(KafkaTimeoutError, match=address):
            client(bootstrap_servers=address, bootstrap_timeout_ms=100)


# -- sending -----------------------------------------------------------------------------------------

SENDS: list[tuple[str, Callable[[Any], Any]]] = [
    ("neither key nor value", lambda p: p.send("t")),
    ("headers no list", lambda p: p.send("t", b"v", headers={"a": b"b"})),
    ("headers a tuple", lambda p: p.send("t", b"v", headers=(("a", b"b"),))),
    ("header no pair", lambda p: p.send("t", b"v", headers=[("a",)])),
    ("header a list", lambda p: p.send("t", b"v", headers=[["a", b"b"]])),
    ("header name octets", lambda p: p.send("t", b"v", headers=[(b"a", b"b")])),
    ("header value text", lambda p: p.send("t", b"v", headers=[("a", "b")])),
    ("header value none", lambda p: p.send("t", b"v", headers=[("a", None)])),
    ("value text", lambda p: p.send("t", "text")),
    ("value a number", lambda p: p.send("t", 5)),
    ("key text", lambda p: p.send("t", b"v", key="text")),
    ("key and value text", lambda p: p.send("t", "text", key="text")),
    ("topic none", lambda p: p.send(None, b"v")),
    ("topic octets", lambda p: p.send(b"t", b"v")),
    ("topic a list", lambda p: p.send(["t"], b"v")),
    ("topic empty", lambda p: p.send("", b"v")),
    ("topic with a space", lambda p: p.send("a b", b"v")),
    ("topic dot", lambda p: p.send(".", b"v")),
    ("topic too long", lambda p: p.send("x" * 250, b"v")),
    ("partitions for a bad topic", lambda p: p.partitions_for("a/b")),
    ("a negative timeout", lambda p: p.close(-1)),
    ("transactions", lambda p: p.begin_transaction()),
]


@pytest.fixture(scope="module")
def their_producer() -> Iterator[Any]:
    producer = kafka.KafkaProducer(**NOWHERE, max_block_ms=50)
    yield producer
    producer.close(1)


@pytest.fixture
def our_producer(broker: Broker) -> Iterator[Any]:
    with KafkaProducer(bootstrap_servers=broker.bootstrap_servers) as producer:
        yield producer


@pytest.mark.parametrize(("name", "action"), SENDS, ids=[name for name, _ in SENDS])
def test_send_refuses_as_kafka_pythons(
    their_producer: Any, our_producer: Any, name: str, action: Any
) -> None:
    theirs, ours = outcome(lambda: action(their_producer)), outcome(lambda: action(our_producer))
    assert theirs is not None and type(ours) is type(theirs)
    if name not in ("transactions",):
        assert str(ours) == str(theirs)


# kafka-python sees these when it knows the topic; its exceptions are read off its source.
KNOWN_TOPIC_SENDS: list[tuple[str, type[Exception], str, Callable[[Any], Any]]] = [
    ("no such partition", ValueError, "Unrecognized partition 7", lambda p: p.send("t", b"v", partition=7)),
    ("negative partition", ValueError, "must be >= 0", lambda p: p.send("t", b"v", partition=-1)),
    ("partition as text", TypeError, "'<' not supported", lambda p: p.send("t", b"v", partition="0")),
    ("timestamp as text", TypeError, "now", lambda p: p.send("t", b"v", timestamp_ms="now")),
    ("timestamp a float", TypeError, r"1\.5", lambda p: p.send("t", b"v", timestamp_ms=1.5)),
    ("timestamp too large", TypeError, "92233720", lambda p: p.send("t", b"v", timestamp_ms=2**63)),
    ("too large", MessageSizeTooLargeError, "1048664", lambda p: p.send("t", b"x" * 1_048_576)),
    ("key too large", MessageSizeTooLargeError, "1048664", lambda p: p.send("t", key=b"x" * 1_048_576)),
    (
        "headers too large",
        MessageSizeTooLargeError,
        "larger than",
        lambda p: p.send("t", b"v", headers=[("h", b"x" * 1_048_576)]),
    ),
]  # fmt: skip


@pytest.mark.parametrize(
    ("expected", "message", "action"),
    [case[1:] for case in KNOWN_TOPIC_SENDS],
    ids=[case[0] for case in KNOWN_TOPIC_SENDS],
)
def test_a_record_that_cannot_be_sent_is_refused_and_harms_no_other(
    our_producer: Any, expected: type[Exception], message: str, action: Any
) -> None:
    accepted = our_producer.send("t", b"before")
    with pytest.raises(expected, match=message):
        action(our_producer)
    assert accepted.get(100).offset == 0
    assert our_producer.send("t", b"after").get(100).offset == 1


def test_a_closed_producer_refuses(our_producer: Any) -> None:
    our_producer.close()
    assert not our_producer.bootstrap_connected()
    with pytest.raises(IllegalStateError, match="already closed"):
        our_producer.send("t", b"v")


# -- consuming ---------------------------------------------------------------------------------------

T0 = TopicPartition("t", 0)


def subscribed(consumer: Any, action: Callable[[Any], Any]) -> None:
    consumer.subscribe(["t"])
    action(consumer)


def assigned(consumer: Any, action: Callable[[Any], Any]) -> None:
    consumer.assign([T0])
    action(consumer)


CONSUMES: list[tuple[str, Callable[[Any], Any]]] = [
    ("nothing to subscribe to", lambda c: c.subscribe()),
    ("topics and pattern", lambda c: c.subscribe(["t"], pattern="t")),
    ("topics as text", lambda c: c.subscribe("topic")),
    ("topics a set", lambda c: c.subscribe({"topic"})),
    ("an illegal topic", lambda c: c.subscribe(["a b"])),
    ("a topic that is none", lambda c: c.subscribe([None])),
    ("an illegal pattern", lambda c: c.subscribe(pattern="(")),
    ("a listener that is none", lambda c: c.subscribe(["t"], listener=object())),
    ("assign after subscribe", lambda c: subscribed(c, lambda c: c.assign([T0]))),
    ("subscribe after assign", lambda c: assigned(c, lambda c: c.subscribe(["t"]))),
    ("a negative timeout", lambda c: c.poll(-1)),
    ("no records at all", lambda c: c.poll(max_records=0)),
    ("half a record", lambda c: c.poll(max_records=0.5)),
    ("seek without assignment", lambda c: c.seek(T0, 0)),
    ("seek with a pair", lambda c: assigned(c, lambda c: c.seek(("t", 0), 0))),
    ("seek to a negative offset", lambda c: assigned(c, lambda c: c.seek(T0, -1))),
    ("seek to text", lambda c: assigned(c, lambda c: c.seek(T0, "0"))),
    ("seek elsewhere", lambda c: assigned(c, lambda c: c.seek(TopicPartition("u", 0), 0))),
    ("beginning of a pair", lambda c: assigned(c, lambda c: c.seek_to_beginning(("t", 0)))),
    ("beginning elsewhere", lambda c: assigned(c, lambda c: c.seek_to_beginning(TopicPartition("u", 0)))),
    ("beginning of nothing", lambda c: c.seek_to_beginning()),
    ("end of nothing", lambda c: c.seek_to_end()),
    ("end of text", lambda c: assigned(c, lambda c: c.seek_to_end("t"))),
    ("position of a pair", lambda c: assigned(c, lambda c: c.position(("t", 0)))),
    ("position elsewhere", lambda c: c.position(T0)),
    ("highwater of a pair", lambda c: c.highwater(("t", 0))),
    ("highwater elsewhere", lambda c: c.highwater(T0)),
    ("pause a pair", lambda c: assigned(c, lambda c: c.pause(("t", 0)))),
    ("pause elsewhere", lambda c: assigned(c, lambda c: c.pause(TopicPartition("u", 0)))),
    ("resume text", lambda c: c.resume("t")),
    ("commit without group", lambda c: c.commit()),
    ("commit later without group", lambda c: c.commit_async()),
    ("committed without group", lambda c: c.committed(T0)),
    ("a negative time", lambda c: c.offsets_for_times({T0: -1})),
    ("a time as text", lambda c: c.offsets_for_times({T0: "now"})),
    ("assign text", lambda c: c.assign(["t"])),
]


@pytest.mark.parametrize(("name", "action"), CONSUMES, ids=[name for name, _ in CONSUMES])
def test_the_consumer_refuses_as_kafka_pythons(broker: Broker, name: str, action: Any) -> None:
    their_consumer = kafka.KafkaConsumer(**NOWHERE)
    try:
        theirs = outcome(lambda: action(their_consumer))
    finally:
        their_consumer.close(autocommit=False, timeout_ms=1)
    with KafkaConsumer(bootstrap_servers=broker.bootstrap_servers) as our_consumer:
        ours = outcome(lambda: action(our_consumer))
    assert theirs is not None and (type(ours), str(ours)) == (type(theirs), str(theirs))


# -- with a broker that both are connected to ---------------------------------------------------------

NOWHERE_TO_READ = TopicPartition("nothing", 0)


def at(offset: Any, metadata: Any = "", epoch: Any = -1) -> OffsetAndMetadata:
    return OffsetAndMetadata(offset, metadata, epoch)


CONNECTED: list[tuple[str, Callable[[Any], Any]]] = [
    ("commit for a pair", lambda c: c.commit({("t", 0): at(1)})),
    ("commit a number", lambda c: c.commit({T0: 5})),
    ("commit a tuple", lambda c: c.commit({T0: (1, "", -1)})),
    ("commit partitions only", lambda c: c.commit([T0])),
    ("commit text", lambda c: c.commit("text")),
    ("commit too much metadata", lambda c: c.commit({T0: at(1, "x" * 5000)})),
    ("commit for an unknown topic", lambda c: c.commit({NOWHERE_TO_READ: at(1)}, timeout_ms=300)),
    ("committed of text", lambda c: c.committed("t")),
    ("committed of a pair", lambda c: c.committed(("t", 0))),
    ("beginning of text", lambda c: c.beginning_offsets("t", timeout_ms=300)),
    ("beginning of a pair", lambda c: c.beginning_offsets([("t", 0)], timeout_ms=300)),
    ("beginning of an unknown partition", lambda c: c.beginning_offsets([NOWHERE_TO_READ], timeout_ms=300)),
    ("end of none", lambda c: c.end_offsets(None, timeout_ms=300)),
    ("end of an unknown partition", lambda c: c.end_offsets([NOWHERE_TO_READ], timeout_ms=300)),
    ("times of a list", lambda c: c.offsets_for_times([T0], timeout_ms=300)),
    ("times of a pair", lambda c: c.offsets_for_times({("t", 0): 1}, timeout_ms=300)),
    ("no time", lambda c: c.offsets_for_times({T0: None}, timeout_ms=300)),
    ("a time too large", lambda c: c.offsets_for_times({T0: 2**63}, timeout_ms=300)),
    ("poll for text", lambda c: c.poll("1")),
    ("poll for none", lambda c: c.poll(None)),
    ("seek to a float", lambda c: c.seek(T0, 1.0)),
    ("position of a pair", lambda c: c.position(("t", 0))),
    ("resume an unknown partition", lambda c: c.resume(NOWHERE_TO_READ)),
    ("assign a number", lambda c: c.assign(5)),
    ("assign a pair", lambda c: c.assign([("t", 0)])),
    ("assign an illegal topic", lambda c: c.assign([TopicPartition("a b", 0)])),
    ("subscribe to a number", lambda c: (c.unsubscribe(), c.subscribe(5))),
    ("subscribe to a pattern of no text", lambda c: (c.unsubscribe(), c.subscribe(pattern=5))),
]

CONNECTED_CONFIGURATIONS = [
    {"api_version": (0, 7)},
    {"api_version": 5},
    {"api_version": (0, 9), "max_poll_interval_ms": 5, "session_timeout_ms": 6, "heartbeat_interval_ms": 1},
    {"session_timeout_ms": 100, "group_id": "g"},
    {"group_id": "g", "partition_assignment_strategy": [int]},
    {"isolation_level": 5},
    {"metric_reporters": 5},
    {"auto_offset_reset": "sometimes"},
    {"request_timeout_ms": None},
]


@pytest.mark.parametrize(("name", "action"), CONNECTED, ids=[name for name, _ in CONNECTED])
def test_a_connected_consumer_refuses_as_kafka_pythons(
    listening: TestBroker, name: str, action: Callable[[Any], Any]
) -> None:
    errors = []
    for module in (kafka, compat.kafka):
        with module.KafkaConsumer(bootstrap_servers=listening.bootstrap_servers, group_id="g") as consumer:
            consumer.assign([T0])
            consumer.committed(T0)  # kafka-python knows its coordinator then
            errors.append(outcome(lambda: action(consumer)))
    assert errors[0] is not None
    assert type(errors[1]) is type(errors[0])


def test_offsets_other_than_64_bit_integers_are_refused_at_once(broker: Broker) -> None:
    with KafkaConsumer(bootstrap_servers=broker.bootstrap_servers, group_id="g") as consumer:
        consumer.assign([T0])
        for offset in ("1", None, 2**63):
            with pytest.raises(struct.error):
                consumer.commit({T0: at(offset)})


ADMIN: list[tuple[str, Callable[[Any], Any]]] = [
    (
        "validated and waited for",
        lambda a: a.create_topics(["x"], validate_only=True, wait_for_metadata=True),
    ),
    ("nothing to create", lambda a: a.create_topics({})),
    ("topics of numbers", lambda a: a.create_topics([1])),
    ("an illegal topic", lambda a: a.create_topics(["a b"])),
    ("no partitions", lambda a: a.create_topics({"x": {"num_partitions": 0}})),
    ("fewer partitions", lambda a: a.create_partitions({"t": 1})),
    ("partitions as text", lambda a: a.create_partitions({"t": "5"})),
    ("an unknown topic", lambda a: a.delete_topics(["nothing"])),
    ("offsets of an unknown topic", lambda a: a.list_partition_offsets({NOWHERE_TO_READ: 0})),
    ("offsets by text", lambda a: a.list_partition_offsets({T0: "now"})),
    ("records of an unknown topic", lambda a: a.delete_records({NOWHERE_TO_READ: 0})),
    ("records beyond the end", lambda a: a.delete_records({T0: 5000})),
    ("records as text", lambda a: a.delete_records({T0: "5"})),
    ("settings as a list", lambda a: a.alter_configs([ConfigResource("TOPIC", "t", ["retention.ms"])])),
    ("an unknown setting", lambda a: a.alter_configs([ConfigResource("TOPIC", "t", {"no.such": "1"})])),
    ("an unknown resource", lambda a: ConfigResource("NOTHING", "t")),
    ("a broker by name", lambda a: a.describe_configs([ConfigResource("BROKER", "me")])),
    (
        "append the older way",
        lambda a: a.alter_configs(
            [ConfigResource("TOPIC", "t", {"cleanup.policy": ("APPEND", "delete")})], incremental=False
        ),
    ),
    ("groups in no state", lambda a: a.list_groups(states_filter=["sleeping"])),
    ("reset to text", lambda a: a.reset_group_offsets("g", {T0: "now"})),
    ("reset of an unknown topic", lambda a: a.reset_group_offsets("g", {NOWHERE_TO_READ: 0})),
    ("offsets of an unknown group", lambda a: a.delete_group_offsets("nothing", [T0])),
    ("a broker that is none", lambda a: a.list_groups(broker_ids=[7])),
    ("an unknown transaction", lambda a: a.describe_transactions(["nothing"])),
    ("producers of an unknown topic", lambda a: a.describe_producers([NOWHERE_TO_READ])),
    ("acls that are none", lambda a: a.create_acls(["x"])),
    ("filters that are none", lambda a: a.delete_acls(["x"])),
    ("no replicas", lambda a: a.alter_partition_reassignments({T0: []})),
    ("features as a list", lambda a: a.update_features(["x"])),
    ("an election of no kind", lambda a: a.elect_leaders(7)),
    ("topics that do not come", lambda a: a.wait_for_topics(["nothing"], timeout_ms=50)),
]


@pytest.mark.parametrize(("name", "action"), ADMIN, ids=[name for name, _ in ADMIN])
def test_an_admin_client_refuses_as_kafka_pythons(
    listening: TestBroker, name: str, action: Callable[[Any], Any]
) -> None:
    errors = []
    for module in (kafka, compat.kafka):
        with module.KafkaAdminClient(bootstrap_servers=listening.bootstrap_servers) as admin:
            errors.append(outcome(lambda: action(admin)))
    assert errors[0] is not None
    assert type(errors[1]) is type(errors[0])
    assert str(errors[1]) == str(errors[0])


def test_offsets_to_commit_are_checked(broker: Broker) -> None:
    with KafkaConsumer(bootstrap_servers=broker.bootstrap_servers, group_id="g") as consumer:
        consumer.assign([T0])
        for commit in (consumer.commit, consumer.commit_async):
            with pytest.raises(TypeError, match="OffsetAndMetadata"):
                commit({T0: 5})
        with pytest.raises(TypeError, match="TopicPartition"):
            consumer.committed(("t", 0))


def test_committing_without_an_assignment_fails(broker: Broker) -> None:
    with KafkaConsumer("t", bootstrap_servers=broker.bootstrap_servers, group_id="g") as consumer:
        with pytest.raises(CommitFailedError, match="not part of an active group"):
            consumer.commit({T0: kafka.OffsetAndMetadata(1, "", -1)})
        future = consumer.commit_async({T0: kafka.OffsetAndMetadata(1, "", -1)})
        assert isinstance(future.exception, CommitFailedError)
