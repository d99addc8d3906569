"""Consumer groups of the newer protocol over TCP: messages, rights, and librdkafka's consumers."""

from __future__ import annotations

import time
from typing import Any

import confluent_kafka
import pytest
from broker.clients import Client
from broker.server.client import WireClient
from confluent_kafka.admin import AdminClient
from kafka.errors import (
    GroupIdNotFoundError,
    InvalidRequestError,
    StaleMemberEpochError,
    UnknownMemberIdError,
    UnsupportedVersionError,
)
from kafka.protocol.consumer import OffsetCommitRequest, OffsetFetchRequest
from timing import until

from dafka import Broker
from dafka.broker.codec.messages.consumer_group import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupHeartbeatRequest,
)


def heartbeat(**fields: Any) -> Any:
    full = {
        "group_id": "g",
        "member_id": "m",
        "member_epoch": 0,
        "instance_id": None,
        "rack_id": None,
        "rebalance_timeout_ms": 10_000,
        "subscribed_topic_names": ["t"],
        "subscribed_topic_regex": None,
        "server_assignor": None,
        "topic_partitions": [],
    }
    return ConsumerGroupHeartbeatRequest(**{**full, **fields})


@pytest.fixture
def topic(client: Client) -> Any:
    client.create("t", 4)
    return client.call("metadata", ["t"]).topics["t"].topic_id


@pytest.mark.parametrize("version", [0, 1])
def test_a_member_joins_and_is_described(wire: WireClient, topic: Any, version: int):
    answer = wire.ask(heartbeat(), version)
    assert (answer.error_code, answer.member_id, answer.member_epoch) == (0, "m", 2)
    assert answer.heartbeat_interval_ms == 5000
    (share,) = answer.assignment.topic_partitions
    assert (share.topic_id, share.partitions) == (topic, [0, 1, 2, 3])
    request = ConsumerGroupDescribeRequest(group_ids=["g", "none"], include_authorized_operations=True)
    known, unknown = wire.ask(request, version).groups
    assert (known.group_state, known.group_epoch, known.assignor_name) == ("Stable", 2, "uniform")
    (member,) = known.members
    assert member.assignment.topic_partitions[0].topic_name == "t"
    assert known.authorized_operations and member.subscribed_topic_names == ["t"]
    assert unknown.error_code == GroupIdNotFoundError.errno


def test_before_version_1_the_broker_chooses_the_member_id(wire: WireClient, topic: Any):
    answer = wire.ask(heartbeat(member_id=""), 0)
    assert answer.error_code == 0 and answer.member_id
    assert wire.ask(heartbeat(member_id=""), 1).error_code == InvalidRequestError.errno


def test_commits_of_versions_without_epochs_are_refused_to_members_that_have_one(
    wire: WireClient, topic: Any
):
    """Whatever the epoch is; nobody else is told so, and members of the classic protocol go on."""
    wire.ask(heartbeat(), 1)
    of_topic = OffsetCommitRequest.OffsetCommitRequestTopic

    def committed(version: int, epoch: int, member: str) -> int:
        partition = of_topic.OffsetCommitRequestPartition(
            partition_index=0, committed_offset=1, committed_leader_epoch=-1, committed_metadata=""
        )
        request = OffsetCommitRequest(
            group_id="g",
            generation_id_or_member_epoch=epoch,
            member_id=member,
            topics=[of_topic(name="t", partitions=[partition])],
        )
        return wire.ask(request, version).topics[0].partitions[0].error_code

    for version in (2, 8):
        for epoch in (2, 1, 3, -1):
            assert committed(version, epoch, "m") == UnsupportedVersionError.errno
        assert committed(version, 2, "other") == committed(version, -1, "") == UnknownMemberIdError.errno
    assert committed(9, 2, "m") == 0
    assert committed(9, 3, "m") == StaleMemberEpochError.errno
    wire.ask(heartbeat(member_epoch=-1), 1)
    assert committed(8, -1, "") == 0


def test_offsets_are_not_told_to_a_member_of_another_epoch(wire: WireClient, topic: Any):
    wire.ask(heartbeat(), 1)
    of_group = OffsetFetchRequest.OffsetFetchRequestGroup

    def fetched(epoch: int, member: str | None) -> int:
        groups = [of_group(group_id="g", member_id=member, member_epoch=epoch, topics=None)]
        return wire.ask(OffsetFetchRequest(groups=groups, require_stable=True), 9).groups[0].error_code

    assert fetched(2, "m") == 0
    assert fetched(0, "m") == StaleMemberEpochError.errno
    assert fetched(-1, None) == 0


def test_librdkafkas_consumers_share_a_topic_and_the_admin_client_sees_it(broker: Broker, client: Client):
    client.create("topic", 4)
    for number in range(4):
        client.produce("topic", *[b"value"] * 5, partition=number)
    client.connection.hub.run(_often, client)
    config = {
        "bootstrap.servers": broker.bootstrap_servers,
        "group.id": "new",
        "group.protocol": "consumer",
        "auto.offset.reset": "earliest",
    }
    first, second = (confluent_kafka.Consumer({**config, "client.id": name}) for name in "ab")
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    try:
        first.subscribe(["topic"])
        read = 0
        deadline = time.monotonic() + 100
        while read < 20 and time.monotonic() < deadline:
            message = first.poll(0.5)
            assert message is None or message.error() is None, message.error()
            read += message is not None
        assert read == 20
        second.subscribe(["^top.*"])
        until(lambda: (first.poll(0.05), second.poll(0.05)) and len(second.assignment()) == 2)
        assert len(first.assignment()) == 2
        group = admin.describe_consumer_groups(["new"])["new"].result()
        assert {len(one.assignment.topic_partitions) for one in group.members} == {2}
        (listed,) = admin.list_consumer_groups().result().valid
        assert (listed.group_id, listed.type.name) == ("new", "CONSUMER")
    finally:
        first.close()
        second.close()
    until(lambda: client.call("describe_consumer_groups", ["new"])["new"].state == "Empty")


def _often(client: Client) -> None:
    """Heartbeats so often that nobody waits long."""
    from dafka.broker.interface.admin import ConfigChange, ConfigOperation, Resource, ResourceType

    change = ConfigChange("consumer.heartbeat.interval.ms", ConfigOperation.SET, "100")
    client.core.alter_configs({Resource(ResourceType.GROUP, "new"): [change]})
