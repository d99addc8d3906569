"""``KafkaAdminClient`` over a broker in this process."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import UUID, uuid4

import kafka
import pytest

from compat.kafka import KafkaAdminClient
from compat.kafka.admin import NewPartitions, NewTopic
from compat.kafka.errors import (
    IncompatibleBrokerVersion,
    InvalidReplicationFactorError,
    TopicAlreadyExistsError,
    UnknownTopicOrPartitionError,
)
from dafka import Broker


@pytest.fixture
def admin(broker: Broker) -> Iterator[KafkaAdminClient]:
    with KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers) as client:
        yield client


def test_it_is_a_kafka_python_admin_client(admin: KafkaAdminClient) -> None:
    assert isinstance(admin, kafka.KafkaAdminClient)


@pytest.mark.parametrize(
    ("topics", "partitions"),
    [
        (["made"], 1),
        ([NewTopic("made", num_partitions=3, replication_factor=1)], 3),
        ({"made": {"num_partitions": 2, "replication_factor": 1}}, 2),
        ({"made": {}}, 1),
    ],
)
def test_a_topic_is_created_from_names_dictionaries_and_new_topics(
    admin: KafkaAdminClient, topics: object, partitions: int
) -> None:
    answer = admin.create_topics(topics, wait_for_metadata=True)
    assert answer["topics"][0]["error_code"] == 0
    assert admin.list_topics() == ["made"]
    (described,) = admin.describe_topics(["made"])
    assert [one["partition_index"] for one in described["partitions"]] == list(range(partitions))
    assert all(one["leader_id"] >= 0 for one in described["partitions"])


def test_a_topic_that_exists_is_not_created_again(admin: KafkaAdminClient) -> None:
    admin.create_topics(["made"])
    with pytest.raises(TopicAlreadyExistsError, match="made"):
        admin.create_topics(["made"])
    answer = admin.create_topics(["made"], raise_errors=False)
    assert answer["topics"][0]["error_code"] == TopicAlreadyExistsError.errno


def test_validate_only_creates_nothing(admin: KafkaAdminClient) -> None:
    admin.create_topics(["made"], validate_only=True)
    assert admin.list_topics() == []


def test_more_replicas_than_brokers_are_refused(admin: KafkaAdminClient) -> None:
    with pytest.raises(InvalidReplicationFactorError):
        admin.create_topics([NewTopic("made", 1, 3)])
    assert admin.list_topics() == []


def test_no_topics_at_all_are_a_value_error(admin: KafkaAdminClient) -> None:
    with pytest.raises(ValueError, match="No valid topics"):
        admin.create_topics([])


def test_a_topic_is_deleted_by_name_or_by_id(admin: KafkaAdminClient) -> None:
    admin.create_topics(["one", "other"])
    (described,) = admin.describe_topics(["other"])
    topic_id = described["topic_id"]
    admin.delete_topics(["one"])
    admin.delete_topics([topic_id if isinstance(topic_id, UUID) else UUID(topic_id)])
    assert admin.list_topics() == []


def test_deleting_an_unknown_topic_raises(admin: KafkaAdminClient) -> None:
    with pytest.raises(UnknownTopicOrPartitionError):
        admin.delete_topics(["nothing"])


def test_describing_an_unknown_topic_says_so_in_its_error_code(admin: KafkaAdminClient) -> None:
    (by_name,) = admin.describe_topics(["nothing"])
    assert by_name["error_code"] == UnknownTopicOrPartitionError.errno
    (by_id,) = admin.describe_topics([uuid4()])
    assert by_id["error_code"] == 100


@pytest.mark.parametrize("total", [5, NewPartitions(5), {"count": 5, "assignments": [[0]] * 4}])
def test_partitions_are_added(admin: KafkaAdminClient, total: object) -> None:
    admin.create_topics(["made"])
    admin.create_partitions({"made": total})
    (described,) = admin.describe_topics(["made"])
    assert len(described["partitions"]) == 5


def test_the_cluster_is_described(admin: KafkaAdminClient, broker: Broker) -> None:
    cluster = admin.describe_cluster()
    (node,) = cluster["brokers"]
    assert f"{node['host']}:{node['port']}" == broker.bootstrap_servers


def test_what_the_broker_does_not_know_is_an_incompatible_version(admin: KafkaAdminClient) -> None:
    with pytest.raises(IncompatibleBrokerVersion):
        admin.list_groups()


def test_closing_twice_does_no_harm_and_a_closed_client_says_so(broker: Broker) -> None:
    admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers)
    admin.close()
    admin.close()
    with pytest.raises(kafka.errors.IllegalStateError, match="closed"):
        admin.list_topics()
