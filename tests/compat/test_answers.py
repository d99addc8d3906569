"""What methods return: the same as kafka-python's own clients return over TCP from the same broker.

kafka-python's classes speak to the broker's listener, ours to the same broker in the process, or, where it is
in another process, over TCP too.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import forking
import kafka
import pytest
from timing import line_of, until

import compat.kafka
from compat.kafka import OffsetAndMetadata, OffsetSpec, TopicPartition
from compat.kafka.admin import (
    ACLFilter,
    ACLOperation,
    ACLPermissionType,
    ConfigResource,
    MemberToRemove,
    OffsetTimestamp,
    ResourcePattern,
    ResourceType,
    UserScramCredentialDeletion,
)
from dafka.testing import TestBroker

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


class Clients(NamedTuple):
    """The same class of kafka-python and of ours, made for the same broker."""

    theirs: Any
    ours: Any


@contextmanager
def prepared() -> Iterator[str]:
    """The address of a broker with a topic of ten records, a group with a member and one without."""
    with TestBroker(listen="127.0.0.1:0") as broker:
        broker.create_topic("t", 2, {"max.message.bytes": "123456789"})
        broker.preload("t", [{"value": b"%d" % number, "timestamp": 1000 + number} for number in range(10)])
        servers = broker.bootstrap_servers
        member = compat.kafka.KafkaConsumer("t", bootstrap_servers=servers, group_id="busy", client_id="me")
        until(lambda: member.poll(10) == {} and broker.group_state("busy") == "Stable")
        with compat.kafka.KafkaConsumer(bootstrap_servers=servers, group_id="idle") as once:
            once.assign([T0])
            once.commit({T0: OffsetAndMetadata(3, "mine", -1)})
        yield servers
        member.close()


SERVE = """
import sys
sys.path[:0] = {path!r}
from tests.compat.test_answers import prepared
with prepared() as servers:
    print(servers, flush=True)
    sys.stdin.read()
"""


@pytest.fixture(scope="module", params=["in this process", "in another one"])
def servers(request: pytest.FixtureRequest) -> Iterator[str]:
    """Such a broker for these tests. If it is in another process, our clients speak TCP as well."""
    if request.param == "in this process":
        with prepared() as address:
            yield address
        return
    code = SERVE.format(path=sys.path)
    with forking.Popen(
        [sys.executable, "-W", "ignore", "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        yield line_of(process, process.stdout, "its address").strip()
        process.communicate(timeout=200)


def both(name: str, servers: str, **config: Any) -> Iterator[Clients]:
    theirs = getattr(kafka, name)(bootstrap_servers=servers, **config)
    ours = getattr(compat.kafka, name)(bootstrap_servers=servers, **config)
    yield Clients(theirs, ours)
    ours.close()
    theirs.close()


@pytest.fixture(scope="module")
def admins(servers: str) -> Iterator[Clients]:
    yield from both("KafkaAdminClient", servers)


@pytest.fixture(scope="module")
def consumers(servers: str) -> Iterator[Clients]:
    config = {"auto_offset_reset": "earliest", "enable_auto_commit": False, "client_id": "same"}
    for clients in both("KafkaConsumer", servers, group_id="idle", **config):
        for one in clients:
            one.assign([T0, T1])
        yield clients


@pytest.fixture(scope="module")
def producers(servers: str) -> Iterator[Clients]:
    yield from both("KafkaProducer", servers, client_id="same")


def outcome(call: Callable[[Any], Any], client: Any) -> Any:
    """What a call returns, as plain values where it is an object of the protocol; or what it raises."""
    try:
        returned = call(client)
    except Exception as error:
        return type(error)
    return returned.to_dict() if hasattr(returned, "to_dict") else returned


def without_ids(created: Any) -> Any:
    """Each topic that is only looked at has an id that is made up."""
    for topic in created["topics"]:
        assert topic.pop("topic_id")
    return created


def without_times(quorum: Any) -> Any:
    """Without what says when it was asked for."""
    for topic in quorum["topics"]:
        for partition in topic["partitions"]:
            for voter in partition["current_voters"]:
                del voter["last_fetch_timestamp"], voter["last_caught_up_timestamp"]
    return quorum


EVERY_ACL = ACLFilter(
    None, None, ACLOperation.ANY, ACLPermissionType.ANY, ResourcePattern(ResourceType.TOPIC, "t")
)

# Called one after the other by both; calls that change something are made on both alike.
ADMIN_CALLS: dict[str, Callable[[Any], Any]] = {
    "list_topics": lambda a: a.list_topics(),
    "describe_topics": lambda a: a.describe_topics(),
    "describe_topics of one": lambda a: a.describe_topics(["t"]),
    "describe_topics of none": lambda a: a.describe_topics(["nothing"]),
    "describe_topic_partitions": lambda a: a.describe_topic_partitions(["t"]),
    "describe_topic_partitions by pages": lambda a: a.describe_topic_partitions(["t"], 1),
    "create_topics, validated": lambda a: without_ids(a.create_topics(["new"], validate_only=True)),
    "create_topics again": lambda a: a.create_topics(["t"], raise_errors=False),
    "create_topics again, raised": lambda a: a.create_topics(["t"]),
    "create_topics, bad setting": lambda a: a.create_topics(
        {"x": {"configs": {"max.message.bytes": "long"}}}
    ),
    "create_partitions, too few": lambda a: a.create_partitions({"t": 1}),
    "create_partitions, validated": lambda a: a.create_partitions({"t": 5}, validate_only=True),
    "delete_topics, unknown": lambda a: a.delete_topics(["nothing"], raise_errors=False),
    "list_partition_offsets": lambda a: a.list_partition_offsets(
        {T0: OffsetSpec.LATEST, T1: OffsetSpec.EARLIEST}
    ),
    "list_partition_offsets by time": lambda a: a.list_partition_offsets({T0: OffsetTimestamp(1004)}),
    "list_partition_offsets, largest time": lambda a: a.list_partition_offsets(
        {T0: OffsetSpec.MAX_TIMESTAMP}
    ),
    "list_partition_offsets, unknown": lambda a: a.list_partition_offsets(
        {TopicPartition("t", 9): OffsetSpec.LATEST}
    ),
    "list_partition_offsets, no spec": lambda a: a.list_partition_offsets({T0: "now"}),
    "delete_records": lambda a: a.delete_records({T0: 1}),
    "delete_records, too many": lambda a: a.delete_records({T0: 1000}),
    "describe_configs": lambda a: a.describe_configs([ConfigResource("TOPIC", "t")]),
    "describe_configs, all": lambda a: a.describe_configs(
        [ConfigResource("TOPIC", "t")], include_synonyms=True, config_filter="all"
    ),
    "describe_configs of a broker": lambda a: a.describe_configs(
        [ConfigResource("BROKER", "0")], config_filter="all"
    ),
    "alter_configs": lambda a: a.alter_configs(
        [ConfigResource("TOPIC", "t", {"max.message.bytes": "77777"})]
    ),
    "alter_configs, older way": lambda a: a.alter_configs(
        [ConfigResource("TOPIC", "t", {"max.message.bytes": "88888"})], incremental=False
    ),
    "alter_configs, unknown": lambda a: a.alter_configs([ConfigResource("TOPIC", "t", {"no.such": "1"})]),
    "alter_configs, bad value": lambda a: a.alter_configs(
        [ConfigResource("TOPIC", "t", {"max.message.bytes": "x"})]
    ),
    "reset_configs": lambda a: a.reset_configs([ConfigResource("TOPIC", "t", {"max.message.bytes": None})]),
    "list_config_resources": lambda a: a.list_config_resources(),
    "list_groups": lambda a: sorted(a.list_groups(), key=lambda one: one["group_id"]),
    "list_groups in a state": lambda a: a.list_groups(states_filter=["stable"]),
    "describe_groups": lambda a: a.describe_groups(["busy", "idle", "nothing"]),
    "list_group_offsets": lambda a: a.list_group_offsets({"idle": [T0, T1], "nothing": None}),
    "alter_group_offsets": lambda a: a.alter_group_offsets("idle", {T1: OffsetAndMetadata(1, "m", -1)}),
    "alter_group_offsets of members": lambda a: a.alter_group_offsets(
        "busy", {T1: OffsetAndMetadata(1, "m", -1)}
    ),
    "reset_group_offsets": lambda a: a.reset_group_offsets("idle", {T1: OffsetSpec.LATEST, T0: 3}),
    "delete_group_offsets": lambda a: a.delete_group_offsets("idle", [T1]),
    "delete_group_offsets of members": lambda a: a.delete_group_offsets("busy", [T0]),
    "remove_group_members, unknown": lambda a: a.remove_group_members("busy", [MemberToRemove("nobody")]),
    "delete_groups": lambda a: a.delete_groups(["busy", "nothing"]),
    "describe_cluster": lambda a: a.describe_cluster(),
    "describe_log_dirs": lambda a: [
        (one["broker"], [sorted(folder) for folder in one["log_dirs"]]) for one in a.describe_log_dirs()
    ],
    "api_versions": lambda a: a.api_versions(),
    "describe_features": lambda a: a.describe_features(),
    "get_broker_version_data": lambda a: a.get_broker_version_data(0).api_versions,
    "get_broker_version_data, unknown": lambda a: a.get_broker_version_data(77),
    "describe_producers": lambda a: a.describe_producers([T0]),
    "list_transactions": lambda a: a.list_transactions(),
    "describe_transactions, unknown": lambda a: a.describe_transactions(["nothing"]),
    "find_hanging_transactions": lambda a: a.find_hanging_transactions(),
    "elect_leaders": lambda a: a.elect_leaders(0, {"t": [0]}),
    "list_partition_reassignments": lambda a: a.list_partition_reassignments(),
    "alter_partition_reassignments": lambda a: a.alter_partition_reassignments({T0: [0]}),
    "alter_replica_log_dirs": lambda a: a.alter_replica_log_dirs({("t", 0, 0): "/elsewhere"}),
    "describe_metadata_quorum": lambda a: without_times(a.describe_metadata_quorum()),
    "describe_acls": lambda a: a.describe_acls(EVERY_ACL),
    "delete_acls": lambda a: a.delete_acls([EVERY_ACL]),
    "describe_user_scram_credentials": lambda a: a.describe_user_scram_credentials(),
    "alter_user_scram_credentials": lambda a: a.alter_user_scram_credentials(
        [UserScramCredentialDeletion("me", 1)]
    ),
    "update_features": lambda a: a.update_features({"metadata.version": 1}),
}


@pytest.mark.parametrize("name", ADMIN_CALLS)
def test_an_admin_client_returns_the_same_as_kafka_pythons(admins: Clients, name: str) -> None:
    call = ADMIN_CALLS[name]
    assert outcome(call, admins.ours) == outcome(call, admins.theirs)


def test_every_admin_method_is_called_here() -> None:
    called = {name.split(" ")[0].rstrip(",") for name in ADMIN_CALLS}
    methods = {name for name in dir(kafka.KafkaAdminClient) if not name.startswith("_")}
    elsewhere = {"DEFAULT_CONFIG", "close", "wait_for_topics", "abort_transaction", "create_acls"}
    assert methods - called == elsewhere


CONSUMER_CALLS: dict[str, Callable[[Any], Any]] = {
    "topics": lambda c: c.topics(),
    "partitions_for_topic": lambda c: c.partitions_for_topic("t"),
    "partitions_for_topic, unknown": lambda c: c.partitions_for_topic("nothing"),
    "assignment": lambda c: c.assignment(),
    "subscription": lambda c: c.subscription(),
    "position": lambda c: c.position(T0),
    "committed": lambda c: c.committed(T0),
    "committed with metadata": lambda c: c.committed(T0, metadata=True),
    "committed, nothing": lambda c: c.committed(TopicPartition("t", 1)),
    "beginning_offsets": lambda c: c.beginning_offsets([T1]),
    "end_offsets": lambda c: c.end_offsets([T0, T1]),
    "offsets_for_times": lambda c: c.offsets_for_times({T0: 1005, T1: 99_000}),
    "paused": lambda c: (c.pause(T0), c.paused(), c.resume(T0), c.paused()),
    "seek": lambda c: (c.seek(T1, 2), c.position(T1)),
    "seek_to_beginning": lambda c: (c.seek_to_beginning(T1), c.position(T1)),
    "commit": lambda c: c.commit({T0: OffsetAndMetadata(3, "mine", -1)}),
    "group_metadata": lambda c: c.group_metadata(),
}


@pytest.mark.parametrize("name", CONSUMER_CALLS)
def test_a_consumer_returns_the_same_as_kafka_pythons(consumers: Clients, name: str) -> None:
    call = CONSUMER_CALLS[name]
    ours, theirs = outcome(call, consumers.ours), outcome(call, consumers.theirs)
    assert ours == theirs
    assert type(ours) is type(theirs)


def test_records_are_equal(servers: str) -> None:
    polled = []
    for clients in both("KafkaConsumer", servers, auto_offset_reset="earliest"):
        for consumer in clients:
            consumer.assign([T1])
            polled.append(until(lambda consumer=consumer: consumer.poll(500)))
    theirs, ours = polled
    assert list(ours) == list(theirs) == [T1]
    assert [tuple(record) for record in ours[T1]] == [tuple(record) for record in theirs[T1]]
    assert {type(record) for record in ours[T1]} == {type(record) for record in theirs[T1]}


def test_record_metadata_is_equal_except_for_offset_and_time(producers: Clients) -> None:
    theirs, ours = (
        producer.send("sent", b"value", key=b"key", headers=[("h", b"1")], timestamp_ms=5).get(100)
        for producer in producers
    )
    assert type(ours) is type(theirs)
    assert (theirs.offset, ours.offset) == (0, 1)
    assert ours._replace(offset=0) == theirs


def test_a_producer_returns_the_same_as_kafka_pythons(producers: Clients) -> None:
    for call in (
        lambda p: p.partitions_for("t"),
        lambda p: p.flush(),
        lambda p: str(p),
    ):
        assert outcome(call, producers.ours) == outcome(call, producers.theirs)


def test_metrics_have_every_group_and_name(producers: Clients, consumers: Clients) -> None:
    def names(client: Any) -> set[tuple[str, str]]:
        return {(one.group, one.name) for one in client.metrics(raw=True)}

    for clients in (producers, consumers):
        # Those of kafka-python's other connections: ours has one, by the broker's number.
        extra = {group for group, name in names(clients.theirs) - names(clients.ours)}
        assert {group for group in extra if "-node-metrics.node-" not in group} == set()
