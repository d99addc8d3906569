"""Administration by kafka-python, confluent-kafka and Kafka's own console tools."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest
from clients.adapters import Confluent
from clients.adapters.client import SECONDS
from clients.adapters.java import tool, tools_missing
from clients.conftest import MakeTopic
from clients.records import Record
from confluent_kafka import Consumer, KafkaException, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
)
from kafka import KafkaAdminClient
from kafka import TopicPartition as PythonPartition
from kafka.errors import KafkaError
from timing import until


@pytest.fixture
def admin(servers: str) -> AdminClient:
    return AdminClient({"bootstrap.servers": servers})


@pytest.fixture
def python_admin(servers: str) -> Iterator[KafkaAdminClient]:
    client = KafkaAdminClient(bootstrap_servers=servers)
    yield client
    client.close()


@pytest.fixture
def name() -> str:
    return f"admin-{uuid.uuid4().hex[:8]}"


def of(futures: object) -> object:
    """The result of a call about one thing."""
    (future,) = futures.values()  # type: ignore[attr-defined]
    return future.result(SECONDS)


def commit(servers: str, group: str, topic: str, offset: int) -> None:
    consumer = Consumer({"bootstrap.servers": servers, "group.id": group})

    def committed() -> bool:
        try:
            consumer.commit(offsets=[TopicPartition(topic, 0, offset)], asynchronous=False)
        except KafkaException as error:
            assert error.args[0].retriable(), error
            return False
        return True

    until(committed, "a coordinator")
    consumer.close()


def test_a_topic_from_its_creation_to_its_end(admin: AdminClient, name: str) -> None:
    of(admin.create_topics([NewTopic(name, 2, 1, config={"retention.ms": "60000"})]))
    until(lambda: name in admin.list_topics(timeout=SECONDS).topics, name)
    of(admin.create_partitions([NewPartitions(name, 5)]))
    until(lambda: len(admin.list_topics(timeout=SECONDS).topics[name].partitions) == 5, "five partitions")

    resource = ConfigResource(ConfigResource.Type.TOPIC, name)
    assert of(admin.describe_configs([resource]))["retention.ms"].value == "60000"  # type: ignore[index]
    change = ConfigEntry("retention.ms", "120000", incremental_operation=AlterConfigOpType.SET)
    of(
        admin.incremental_alter_configs(
            [ConfigResource(resource.restype, name, incremental_configs=[change])]
        )
    )

    def changed() -> bool:
        return of(admin.describe_configs([resource]))["retention.ms"].value == "120000"  # type: ignore[index]

    until(changed, "the new setting")
    of(admin.delete_topics([name]))
    until(lambda: name not in admin.list_topics(timeout=SECONDS).topics, "it is gone")


def test_wrong_calls_have_the_protocols_error(admin: AdminClient, name: str, topic: str) -> None:
    def error_of(futures: object) -> str:
        with pytest.raises(KafkaException) as caught:
            of(futures)
        return str(caught.value.args[0].name())

    resource = ConfigResource(ConfigResource.Type.TOPIC, name)
    assert error_of(admin.create_topics([NewTopic(topic, 1, 1)])) == "TOPIC_ALREADY_EXISTS"
    assert error_of(admin.create_topics([NewTopic("no spaces", 1, 1)])) == "TOPIC_EXCEPTION"
    assert error_of(admin.create_topics([NewTopic(name, 1, 1, config={"no.such": "1"})])) == "INVALID_CONFIG"
    assert error_of(admin.create_topics([NewTopic(name, 0, 1)])) == "INVALID_PARTITIONS"
    assert error_of(admin.create_partitions([NewPartitions(topic, 2)])) == "INVALID_PARTITIONS"
    assert error_of(admin.delete_topics([name])) == "UNKNOWN_TOPIC_OR_PART"
    assert error_of(admin.create_partitions([NewPartitions(name, 2)])) == "UNKNOWN_TOPIC_OR_PART"
    assert error_of(admin.describe_configs([resource])) == "UNKNOWN_TOPIC_OR_PART"
    assert error_of(admin.delete_consumer_groups([name])) == "GROUP_ID_NOT_FOUND"


def test_offsets_by_time_and_records_deleted_from_the_front(
    admin: AdminClient, servers: str, topic: str
) -> None:
    records = [Record(b"%d" % number, timestamp=1000 * (number + 1)) for number in range(10)]
    Confluent().produce(servers, topic, records)
    partition = TopicPartition(topic, 0)

    def offset(spec: OffsetSpec) -> int:
        return int(of(admin.list_offsets({partition: spec})).offset)  # type: ignore[attr-defined]

    assert offset(OffsetSpec.earliest()) == 0
    assert offset(OffsetSpec.latest()) == 10
    assert offset(OffsetSpec.for_timestamp(3500)) == 3
    assert offset(OffsetSpec.for_timestamp(99_000)) == -1
    assert offset(OffsetSpec.max_timestamp()) == 9

    deleted = of(admin.delete_records([TopicPartition(topic, 0, 4)]))
    assert deleted.low_watermark == 4  # type: ignore[attr-defined]
    assert offset(OffsetSpec.earliest()) == 4
    assert len(Confluent().consume(servers, topic, 1)) == 6
    with pytest.raises(KafkaException, match="OFFSET_OUT_OF_RANGE"):
        of(admin.delete_records([TopicPartition(topic, 0, 11)]))


def test_a_groups_offsets_listed_changed_and_deleted(
    python_admin: KafkaAdminClient, servers: str, topic: str, name: str
) -> None:
    commit(servers, name, topic, 7)
    partition = PythonPartition(topic, 0)

    def offset() -> int:
        found = python_admin.list_group_offsets(name)
        return int(found[name][partition].offset)

    assert offset() == 7
    assert any(name == group["group_id"] for group in python_admin.list_groups())
    (described,) = python_admin.describe_groups([name]).values()
    assert described["group_state"] == "Empty"
    python_admin.delete_groups([name])
    assert not any(name == group["group_id"] for group in python_admin.list_groups())


def test_kafka_python_describes_what_others_made(
    python_admin: KafkaAdminClient, servers: str, topic: str
) -> None:
    (described,) = python_admin.describe_topics([topic])
    assert described["name"] == topic and len(described["partitions"]) == 3
    assert python_admin.describe_cluster()["cluster_id"]
    with pytest.raises(KafkaError):
        python_admin.create_partitions({topic: 1})


def test_kafkas_own_tools(servers: str, new_topic: MakeTopic, name: str) -> None:
    reason = tools_missing()
    if reason is not None:
        pytest.skip(reason)
    tool("TopicCommand", "--bootstrap-server", servers, "--create", "--topic", name, "--partitions", "2")
    described = tool("TopicCommand", "--bootstrap-server", servers, "--describe", "--topic", name)
    assert "PartitionCount: 2" in described

    Confluent().produce(servers, name, [Record(b"a"), Record(b"b"), Record(b"c", partition=1)])
    ends = tool("GetOffsetShell", "--bootstrap-server", servers, "--topic", name)
    assert sorted(ends.split()) == [f"{name}:0:2", f"{name}:1:1"]

    group = ("--bootstrap-server", servers, "--group", name)
    tool("consumer.ConsoleConsumer", *group, "--topic", name, "--from-beginning", "--max-messages", "3")
    lag = tool("consumer.group.ConsumerGroupCommand", *group, "--describe")
    assert {line.split()[1] for line in lag.splitlines() if line.startswith(name)} == {name}
    tool(
        "consumer.group.ConsumerGroupCommand",
        *(*group, "--reset-offsets", "--topic", name, "--to-earliest", "--execute"),
    )
    tool("TopicCommand", "--bootstrap-server", servers, "--delete", "--topic", name)
