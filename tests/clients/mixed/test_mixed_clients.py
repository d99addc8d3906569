"""Unmodified clients on the listener: kafka-python and confluent-kafka (librdkafka)."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import confluent_kafka
import pytest
from broker.clients import Client
from confluent_kafka.admin import AdminClient, ConfigResource, NewPartitions, NewTopic
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.errors import MessageSizeTooLargeError
from kafka.structs import OffsetAndMetadata
from timing import until

from dafka import Broker
from dafka import Producer as NativeProducer

CODECS = [None, "gzip", "snappy", "lz4", "zstd"]
SECONDS = 100.0
VALUES = [b"%d" % number * 10 for number in range(100)]


@contextmanager
def kafka_python(broker: Broker, **options: Any) -> Iterator[Any]:
    with closing(KafkaProducer(bootstrap_servers=broker.bootstrap_servers, **options)) as producer:
        yield producer


@contextmanager
def subscribed(broker: Broker, topic: str, group: str, **options: Any) -> Iterator[Any]:
    """A consumer of confluent-kafka."""
    settings = {
        "bootstrap.servers": broker.bootstrap_servers,
        "group.id": group,
        "auto.offset.reset": "earliest",
        **options,
    }
    with closing(confluent_kafka.Consumer(settings)) as consumer:
        consumer.subscribe([topic])
        yield consumer


def read(consumer: Any, count: int) -> list[Any]:
    """Records of a confluent-kafka consumer."""
    records: list[Any] = []
    deadline = time.monotonic() + SECONDS
    while len(records) < count:
        assert time.monotonic() < deadline, f"{len(records)} of {count} records"
        for record in consumer.consume(count - len(records), 0.2):
            assert record.error() is None
            records.append(record)
    return records


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("acks", [0, 1, "all"])
def test_confluent_kafka_reads_records_of_kafka_python(broker: Broker, client: Client, codec, acks):
    client.create("topic")
    idempotent = acks == "all"
    options = {"acks": acks, "compression_type": codec, "enable_idempotence": idempotent}
    with kafka_python(broker, **options) as producer:
        futures = [
            producer.send("topic", value, key=b"key", headers=[("h", b"1")], timestamp_ms=1_700_000_000_000)
            for value in VALUES
        ]
        producer.flush(SECONDS)
        if acks:
            assert [future.get(SECONDS).offset for future in futures] == list(range(100))
    with subscribed(broker, "topic", "readers") as consumer:
        records = read(consumer, 100)
    assert [record.value() for record in records] == VALUES
    assert [record.offset() for record in records] == list(range(100))
    assert records[0].key() == b"key"
    assert records[0].headers() == [("h", b"1")]
    assert records[0].timestamp() == (confluent_kafka.TIMESTAMP_CREATE_TIME, 1_700_000_000_000)


@pytest.mark.parametrize("codec", ["none", *CODECS[1:]])
@pytest.mark.parametrize("acks", [0, 1, -1])
def test_kafka_python_reads_records_of_confluent_kafka(broker: Broker, client: Client, codec, acks):
    client.create("topic")
    offsets: list[int] = []
    producer = confluent_kafka.Producer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "compression.type": codec,
            "acks": acks,
            "enable.idempotence": acks == -1,
        }
    )
    for value in VALUES:
        producer.produce(
            "topic",
            value,
            b"key",
            headers=[("h", b"1")],
            on_delivery=lambda error, record: offsets.append(record.offset()),
        )
    assert producer.flush(SECONDS) == 0
    if acks:
        assert offsets == list(range(100))
    consumer = KafkaConsumer(
        "topic",
        bootstrap_servers=broker.bootstrap_servers,
        group_id="readers",
        auto_offset_reset="earliest",
        consumer_timeout_ms=int(SECONDS * 1000),
    )
    with closing(consumer):
        records = [next(consumer) for _ in range(100)]
    assert [record.value for record in records] == VALUES
    assert [record.offset for record in records] == list(range(100))
    assert records[0].headers == [("h", b"1")]


@pytest.mark.parametrize("native", [False, True], ids=["kafka", "native"])
def test_a_consumer_with_bounded_responses_reads_all_of_many_partitions(
    broker: Broker, client: Client, native: bool
):
    """librdkafka refuses a response that is longer than receive.message.max.bytes."""
    sent = [bytes([number]) * 900_000 for number in range(12)]
    if native:
        for number in range(4):
            with NativeProducer("topic", tower=broker.tower) as producer:
                for value in sent[number::4]:
                    producer.send(value)
                producer.flush(SECONDS)
        until(lambda: len(client.partitions("topic")) == 5)
    else:
        client.create("topic", 4)
        for number, value in enumerate(sent):
            assert client.produce("topic", value, partition=number % 4).error is None
    problems: list[Any] = []
    bounds = {
        "fetch.max.bytes": 1_000_000,
        "receive.message.max.bytes": 1_000_512,
        "error_cb": problems.append,
    }
    with subscribed(broker, "topic", "bounded", **bounds) as consumer:
        records = read(consumer, len(sent))
    assert sorted(record.value() for record in records) == sent
    assert problems == []


def test_members_of_different_clients_share_a_group(broker: Broker, client: Client):
    client.create("topic", 4)
    values: set[bytes] = set()
    assigned: list[int] = [0]
    done = threading.Event()

    def poll(consumer: Any) -> None:
        """kafka-python has to be in poll() when a rebalance ends, so each client has a thread."""
        while not done.is_set():
            record = consumer.poll(0.1)
            if record is not None and record.error() is None:
                values.add(record.value())
            assigned[0] = len(consumer.assignment())

    ours = KafkaConsumer(
        "topic",
        bootstrap_servers=broker.bootstrap_servers,
        group_id="mixed",
        auto_offset_reset="earliest",
    )
    range_only = {"partition.assignment.strategy": "range"}
    with closing(ours), subscribed(broker, "topic", "mixed", **range_only) as theirs:
        other = threading.Thread(target=poll, args=(theirs,))
        other.start()
        try:

            def shared() -> bool:
                ours.poll(5000 if not ours.assignment() else 100)
                return len(ours.assignment()) == 2 and assigned[0] == 2

            until(shared)
            with kafka_python(broker) as producer:
                for number in range(4):
                    producer.send("topic", b"%d" % number, partition=number)

            def read_all() -> bool:
                for records in ours.poll(100).values():
                    values.update(record.value for record in records)
                return values == {b"0", b"1", b"2", b"3"}

            until(read_all)
            described = client.call("describe_groups", ["mixed"])["mixed"]
            assert described.state == "Stable"
            assert {member.client_host for member in described.members} == {"/127.0.0.1"}
            assert "rdkafka" in {member.client_id for member in described.members}
        finally:
            done.set()
            other.join()


def test_another_client_continues_at_committed_offsets(broker: Broker, client: Client):
    client.create("topic")
    client.produce("topic", b"a", b"b", b"c")
    with subscribed(broker, "topic", "group", **{"enable.auto.commit": False}) as consumer:
        first = read(consumer, 2)
        consumer.commit(first[-1], asynchronous=False)
    ours = KafkaConsumer(
        "topic",
        bootstrap_servers=broker.bootstrap_servers,
        group_id="group",
        consumer_timeout_ms=int(SECONDS * 1000),
    )
    with closing(ours):
        assert next(ours).value == b"c"
        assert ours.committed(TopicPartition("topic", 0)) == 2


def test_an_oversize_record_is_refused_with_kafkas_error(broker: Broker, client: Client):
    client.create("topic")
    with kafka_python(broker, max_request_size=4 << 20, enable_idempotence=False) as producer:
        with pytest.raises(MessageSizeTooLargeError):
            producer.send("topic", bytes(2 << 20)).get(SECONDS)
        assert producer.send("topic", b"small").get(SECONDS).offset == 0


def test_large_records_are_accepted_by_a_topic_that_allows_them(broker: Broker):
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    topic = NewTopic("large", 1, config={"max.message.bytes": str(20 << 20)})
    admin.create_topics([topic])["large"].result(SECONDS)
    large = b"x" * (10 << 20)
    with kafka_python(broker, max_request_size=20 << 20) as producer:
        assert producer.send("large", large).get(SECONDS).offset == 0
    with subscribed(broker, "large", "group") as consumer:
        assert read(consumer, 1)[0].value() == large


def test_confluent_kafka_commits_and_aborts_transactions(broker: Broker, client: Client):
    client.create("topic")
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": broker.bootstrap_servers, "transactional.id": "payments"}
    )
    producer.init_transactions(SECONDS)
    for word, end in [
        (b"kept", producer.commit_transaction),
        (b"dropped", producer.abort_transaction),
        (b"kept too", producer.commit_transaction),
    ]:
        producer.begin_transaction()
        producer.produce("topic", word)
        producer.flush(SECONDS)
        end(SECONDS)
    with subscribed(broker, "topic", "committed") as consumer:
        assert [record.value() for record in read(consumer, 2)] == [b"kept", b"kept too"]
    with subscribed(broker, "topic", "all", **{"isolation.level": "read_uncommitted"}) as consumer:
        assert [record.value() for record in read(consumer, 3)] == [b"kept", b"dropped", b"kept too"]


def test_kafka_python_commits_offsets_in_a_transaction(broker: Broker, client: Client):
    client.create("in")
    client.create("out")
    client.produce("in", b"a", b"b")
    consumer = KafkaConsumer(
        "in",
        bootstrap_servers=broker.bootstrap_servers,
        group_id="copies",
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        consumer_timeout_ms=int(SECONDS * 1000),
    )
    with closing(consumer), kafka_python(broker, transactional_id="copier") as producer:
        producer.init_transactions()
        producer.begin_transaction()
        records = [next(consumer) for _ in range(2)]
        for record in records:
            producer.send("out", record.value)
        position = {TopicPartition("in", 0): OffsetAndMetadata(2, "", -1)}
        producer.send_offsets_to_transaction(position, consumer.group_metadata())
        producer.commit_transaction()
    committed = client.call("fetch_offsets", "copies", [("in", 0)])
    assert committed["in", 0].offset == 2


def test_confluent_kafka_administers_the_broker(broker: Broker):
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    assert admin.create_topics([NewTopic("topic", 2)])["topic"].result(SECONDS) is None
    assert admin.create_partitions([NewPartitions("topic", 5)])["topic"].result(SECONDS) is None
    found = admin.list_topics("topic", SECONDS).topics["topic"]
    assert sorted(found.partitions) == [0, 1, 2, 3, 4]
    resource = ConfigResource(ConfigResource.Type.TOPIC, "topic")
    configs = admin.describe_configs([resource])[resource].result(SECONDS)
    assert configs["cleanup.policy"].value == "delete"
    cluster = admin.describe_cluster().result(SECONDS)
    assert f"{cluster.nodes[0].host}:{cluster.nodes[0].port}" == broker.bootstrap_servers
    assert admin.list_consumer_groups().result(SECONDS).valid == []
    assert admin.delete_topics(["topic"])["topic"].result(SECONDS) is None
    assert "topic" not in admin.list_topics(timeout=SECONDS).topics


def test_kafka_python_administers_the_broker(broker: Broker):
    with closing(KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers)) as admin:
        admin.create_topics({"topic": {"num_partitions": 2, "replication_factor": 1}})
        admin.create_partitions({"topic": 5})
        (described,) = admin.describe_topics(["topic"])
        assert len(described["partitions"]) == 5
        assert admin.describe_cluster()["cluster_id"]
        admin.delete_topics(["topic"])
        assert admin.list_topics() == []


def test_a_topic_is_created_by_writing_to_it(broker: Broker, client: Client):
    producer = confluent_kafka.Producer({"bootstrap.servers": broker.bootstrap_servers})
    producer.produce("new", b"a")
    assert producer.flush(SECONDS) == 0
    assert client.values("new") == [b"a"]


def test_one_client_uses_many_partitions(broker: Broker, client: Client):
    client.create("wide", 1000)
    with kafka_python(broker) as producer:
        for number in range(0, 1000, 50):
            producer.send("wide", b"%d" % number, partition=number)
    with subscribed(broker, "wide", "group") as consumer:
        values = {int(record.value()) for record in read(consumer, 20)}
    assert values == set(range(0, 1000, 50))
