"""``KafkaAdminClient`` over a broker in this process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from uuid import UUID, uuid4

import kafka
import pytest
from timing import until

from compat.kafka import KafkaAdminClient, KafkaConsumer, OffsetAndMetadata, OffsetSpec, TopicPartition
from compat.kafka.admin import (
    ACLFilter,
    ACLOperation,
    ACLPermissionType,
    AlterConfigOp,
    ConfigResource,
    MemberToRemove,
    NewPartitions,
    NewTopic,
    ResourcePattern,
    ResourceType,
)
from compat.kafka.errors import (
    InvalidReplicationAssignmentError,
    InvalidReplicationFactorError,
    NoError,
    RequestTimedOutError,
    SecurityDisabledError,
    TopicAlreadyExistsError,
    UnknownBrokerIdError,
    UnknownTopicOrPartitionError,
)
from dafka.testing import TestBroker

T0 = TopicPartition("t", 0)


@pytest.fixture
def admin(dafka_broker: TestBroker) -> Iterator[KafkaAdminClient]:
    with KafkaAdminClient(bootstrap_servers=dafka_broker.bootstrap_servers) as client:
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


def test_the_cluster_is_described(admin: KafkaAdminClient, dafka_broker: TestBroker) -> None:
    cluster = admin.describe_cluster()
    (node,) = cluster["brokers"]
    assert f"{node['host']}:{node['port']}" == dafka_broker.bootstrap_servers


def test_the_broker_is_a_kafka_of_one_node_without_users_and_acls(admin: KafkaAdminClient) -> None:
    admin.create_topics(["made"])
    made = TopicPartition("made", 0)
    assert admin.describe_user_scram_credentials() == {}
    quorum = admin.describe_metadata_quorum()["topics"][0]["partitions"][0]
    assert [voter["replica_id"] for voter in quorum["current_voters"]] == [quorum["leader_id"]]
    assert admin.alter_partition_reassignments({made: [quorum["leader_id"]]}) == {made: None}
    assert admin.alter_partition_reassignments({made: [77]}) == {made: InvalidReplicationAssignmentError}
    assert admin.describe_features()["metadata.version"]["finalized"] == (30, 30)
    with pytest.raises(SecurityDisabledError):
        everything = ResourcePattern(ResourceType.TOPIC, "t")
        admin.describe_acls(ACLFilter(None, None, ACLOperation.ANY, ACLPermissionType.ANY, everything))


def test_a_broker_that_does_not_answer_is_a_timeout(dafka_broker: TestBroker) -> None:
    servers = dafka_broker.bootstrap_servers
    with KafkaAdminClient(bootstrap_servers=servers, request_timeout_ms=1000) as admin:
        with dafka_broker.hang(), pytest.raises(RequestTimedOutError):
            admin.list_topics()
        assert admin.list_topics() == []


def test_a_broker_of_an_unknown_number_is_refused(admin: KafkaAdminClient) -> None:
    with pytest.raises(UnknownBrokerIdError):
        admin.list_groups(broker_ids=[7])


# -- what it does can be seen ------------------------------------------------------------------------


def test_deleted_records_are_gone(admin: KafkaAdminClient, dafka_broker: TestBroker) -> None:
    dafka_broker.preload("t", [b"%d" % number for number in range(10)])
    assert admin.delete_records({T0: 4})[T0]["low_watermark"] == 4
    assert dafka_broker.values("t") == [b"%d" % number for number in range(4, 10)]
    assert admin.list_partition_offsets({T0: OffsetSpec.EARLIEST})[T0].offset == 4
    admin.delete_records({T0: -1})
    assert dafka_broker.values("t") == []


def test_a_setting_is_altered_and_reset(admin: KafkaAdminClient) -> None:
    admin.create_topics(["t"])

    def shown() -> dict[str, str]:
        described = admin.describe_configs([ConfigResource("TOPIC", "t")])["topic"]["t"]
        return {name: setting["value"] for name, setting in described.items()}

    assert shown() == {}
    resource = ConfigResource("TOPIC", "t", {"retention.ms": "1000", "cleanup.policy": "compact"})
    assert admin.alter_configs([resource]) == {"topic": {"t": "OK"}}
    assert shown() == {"retention.ms": "1000", "cleanup.policy": "compact"}
    admin.alter_configs([ConfigResource("TOPIC", "t", {"retention.ms": (AlterConfigOp.DELETE, None)})])
    assert shown() == {"cleanup.policy": "compact"}
    admin.reset_configs([ConfigResource("TOPIC", "t", {})])
    assert shown() == {}


def test_a_setting_is_only_validated_if_so_asked(admin: KafkaAdminClient) -> None:
    admin.create_topics(["t"])
    resource = ConfigResource("TOPIC", "t", {"retention.ms": "1000"})
    assert admin.alter_configs([resource], validate_only=True) == {"topic": {"t": "OK"}}
    assert admin.describe_configs([ConfigResource("TOPIC", "t")]) == {"topic": {"t": {}}}


def test_offsets_of_a_group_are_altered_reset_and_deleted(
    admin: KafkaAdminClient, dafka_broker: TestBroker, kafka_consumer_factory: Callable[..., KafkaConsumer]
) -> None:
    dafka_broker.preload("t", [b"%d" % number for number in range(10)])
    admin.alter_group_offsets("g", {T0: OffsetAndMetadata(7, "moved", -1)})
    config = {"group_id": "g", "enable_auto_commit": False, "consumer_timeout_ms": 100_000}
    with kafka_consumer_factory("t", **config) as consumer:
        assert next(consumer).value == b"7"
    assert admin.list_group_offsets("g")["g"][T0].metadata == "moved"
    assert admin.reset_group_offsets("g", {T0: OffsetSpec.EARLIEST})[T0]["offset"] == 0
    assert dafka_broker.committed("g") == {T0: 0}
    admin.delete_group_offsets("g", [T0])
    assert dafka_broker.committed("g") == {}


def test_members_are_seen_and_removed(
    admin: KafkaAdminClient, dafka_broker: TestBroker, kafka_consumer_factory: Callable[..., KafkaConsumer]
) -> None:
    dafka_broker.create_topic("t")
    consumer = kafka_consumer_factory("t", group_id="g", group_instance_id="i", client_id="me")
    until(lambda: consumer.poll(10) == {} and dafka_broker.group_state("g") == "Stable")
    (member,) = admin.describe_groups(["g"])["g"]["members"]
    assert (member["client_id"], member["group_instance_id"]) == ("me", "i")
    assert member["member_assignment"]["assigned_partitions"] == [{"topic": "t", "partitions": [0]}]
    removed = admin.remove_group_members("g", [MemberToRemove(group_instance_id="i")])
    assert list(removed.values()) == [NoError]
    assert dafka_broker.members("g") == []
    assert admin.delete_groups(["g"]) == {"g": "OK"}
    assert dafka_broker.groups() == []


def test_log_directories_are_described_with_sizes(admin: KafkaAdminClient, dafka_broker: TestBroker) -> None:
    dafka_broker.preload("t", [bytes(1000)])
    ((folder,),) = [one["log_dirs"] for one in admin.describe_log_dirs(["t"])]
    assert folder["log_dir"] == str(dafka_broker.path)
    (topic,) = folder["topics"]
    assert topic["name"] == "t" and topic["partitions"][0]["partition_size"] > 1000
    assert folder["total_bytes"] >= folder["usable_bytes"] > 0


def test_closing_twice_does_no_harm_and_a_closed_client_says_so(dafka_broker: TestBroker) -> None:
    admin = KafkaAdminClient(bootstrap_servers=dafka_broker.bootstrap_servers)
    admin.close()
    admin.close()
    with pytest.raises(kafka.errors.IllegalStateError, match="closed"):
        admin.list_topics()
