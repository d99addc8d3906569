"""Streams groups in a broker: internal topics, settings, offsets, restarts."""

from __future__ import annotations

from typing import Any

import pytest
from broker.clients import Client
from kafka.errors import (
    GroupIdNotFoundError,
    InconsistentGroupProtocolError,
    InvalidRequestError,
    NonEmptyGroupError,
    StaleMemberEpochError,
    UnknownMemberIdError,
)
from timing import until

from dafka import Broker
from dafka.broker.groups.streams import group as group_module
from dafka.broker.interface.admin import ConfigChange, ConfigOperation, Resource, ResourceType
from dafka.broker.interface.broker import CommittedOffset, JoinRequest
from dafka.broker.interface.groups import GroupType
from dafka.broker.interface.streams_groups import (
    Endpoint,
    InternalTopic,
    StatusCode,
    StreamsHeartbeat,
    Subtopology,
    Topology,
)

COUNT = Topology(
    1, [Subtopology("0", ["t"], [], [InternalTopic("c", configs={"cleanup.policy": "compact"})])]
)


def send(client: Client, name: str, epoch: int, **fields: Any) -> Any:
    return client.call("streams_group_heartbeat", "g", StreamsHeartbeat(name, epoch, **fields))


def join(client: Client, name: str, topology: Topology = COUNT, **fields: Any) -> Any:
    nothing = {"active": {}, "standby": {}, "warmup": {}}
    full = {"rebalance_timeout": 5.0, "topology": topology, "process_id": name, **nothing}
    return send(client, name, 0, **{**full, **fields})


def described(client: Client) -> Any:
    return client.call("describe_streams_groups", ["g"])["g"]


def configure(client: Client, **settings: int) -> None:
    changes = [
        ConfigChange(f"streams.{name.replace('_', '.')}", ConfigOperation.SET, str(value))
        for name, value in settings.items()
    ]
    resource = Resource(ResourceType.GROUP, "g")
    assert client.call("alter_configs", {resource: changes})[resource].error is None


@pytest.fixture
def topic(client: Client) -> Client:
    client.create("t", 3)
    configure(client, initial_rebalance_delay_ms=0, assignment_interval_ms=0)
    return client


def test_a_member_gets_its_tasks_and_the_topics_they_need(topic):
    answer = join(topic, "x", endpoint=Endpoint("h", 1))
    assert answer.error is None and answer.tasks.active == {"0": {0, 1, 2}} and not answer.statuses
    assert answer.endpoints == [(("h", 1), [("t", [0, 1, 2])], [])]
    resource = Resource(ResourceType.TOPIC, "c")
    entries = topic.call("describe_configs", {resource: None})[resource].entries
    assert [one.value for one in entries if one.name == "cleanup.policy"] == ["compact"]
    assert len(topic.call("metadata", ["c"]).topics["c"].partitions) == 3
    found = described(topic)
    assert (found.error, found.state) == (None, "Stable")
    assert found.topology.subtopologies[0].changelogs[0].partitions == 3
    assert [one.member_id for one in found.members] == ["x"]


def test_the_first_assignment_waits(topic):
    configure(topic, initial_rebalance_delay_ms=60_000)
    answer = join(topic, "x")
    assert answer.tasks.active == {} and [one.code for one in answer.statuses] == [
        StatusCode.ASSIGNMENT_DELAYED
    ]
    assert described(topic).state == "Assigning"


def test_a_topic_that_cannot_be_made_is_missing_with_the_reason(topic):
    bad = COUNT.subtopologies[0]._replace(changelogs=[InternalTopic("c", configs={"cleanup.policy": "?"})])
    (status,) = join(topic, "x", Topology(1, [bad])).statuses
    assert status.code == StatusCode.MISSING_INTERNAL_TOPICS and "Creation failed: c" in status.detail


def test_a_topic_of_more_replicas_than_brokers_stays_missing(topic):
    copied = COUNT.subtopologies[0]._replace(changelogs=[InternalTopic("c", replicas=3), InternalTopic("d")])
    (status,) = join(topic, "x", Topology(1, [copied])).statuses
    assert status.code == StatusCode.MISSING_INTERNAL_TOPICS and "Creation failed: c" in status.detail
    assert {"c", "d"}.intersection(topic.call("metadata", None).topics) == {"d"}


def test_topics_that_a_member_may_not_have_made_stay_missing(topic):
    (status,) = join(topic, "x", may_create=lambda names: []).statuses
    assert "Unauthorized to CREATE on topics c." in status.detail
    assert "c" not in topic.call("metadata", None).topics


def test_a_large_group_is_assigned_beside_the_hub(topic, monkeypatch):
    monkeypatch.setattr(group_module, "TASKS_ASSIGNED_AT_ONCE", 1)
    epoch = join(topic, "x").member_epoch
    until(lambda: described(topic).assignment_epoch == described(topic).epoch)
    assert send(topic, "x", epoch, active={}, standby={}, warmup={}).tasks.active == {"0": {0, 1, 2}}


def test_offsets_are_the_members_with_its_epoch(topic):
    epoch = join(topic, "x").member_epoch

    def commit(epoch: int, member: str = "x") -> Any:
        offsets = {("t", 0): CommittedOffset(1)}
        return topic.call("commit_offsets", "g", offsets, generation=epoch, member_id=member)["t", 0]

    assert commit(epoch) is None and commit(epoch - 1) is StaleMemberEpochError
    assert commit(epoch, "y") is UnknownMemberIdError
    assert topic.call("fetch_offsets", "g", None, member_id="x", member_epoch=epoch)["t", 0].offset == 1


def test_a_group_is_listed_and_deleted_when_it_is_empty(topic):
    join(topic, "x")
    (listed,) = topic.call("list_groups", types=["streams"])
    assert (listed.group, listed.protocol_type, listed.type) == ("g", "streams", GroupType.STREAMS)
    assert topic.call("delete_groups", ["g"])["g"] is NonEmptyGroupError
    assert send(topic, "x", -1).member_epoch == -1
    assert topic.call("delete_groups", ["g"])["g"] is None
    assert described(topic).error is GroupIdNotFoundError


def test_a_group_has_one_protocol_while_it_has_members(topic):
    request = JoinRequest("", 10.0, 10.0, "consumer", [("range", b"")])
    join(topic, "x")
    assert topic.call("join_group", "g", request).error is InconsistentGroupProtocolError
    send(topic, "x", -1)
    assert topic.call("join_group", "g", request).error is None
    assert join(topic, "x").error is GroupIdNotFoundError


def test_a_group_of_another_kind_is_said_to_be_one(topic):
    join(topic, "x")
    found = topic.call("describe_groups", ["g"])["g"]
    assert (found.state, found.detail) == ("Dead", "Group g is not a classic group.")


def test_a_group_that_there_is_not_is_named(topic):
    assert send(topic, "x", 1)[:2] == (GroupIdNotFoundError, "Streams group g not found.")
    assert send(topic, "x", -1)[:2] == (GroupIdNotFoundError, "Group g not found.")


def test_one_that_leaves_needs_no_endpoints(topic):
    joined = [join(topic, name, endpoint=Endpoint("h", 1)) for name in "xx"]
    assert [(one.endpoint_epoch, len(one.endpoints)) for one in joined] == [(0, 1), (1, 1)]
    left = send(topic, "x", -1)
    assert (left.endpoint_epoch, left.endpoints) == (0, None)


def test_a_heartbeat_that_is_refused_changes_nothing(topic):
    assert join(topic, "x", instance_id="i").error is InvalidRequestError
    assert send(topic, "x", 1).error is GroupIdNotFoundError
    assert topic.call("list_groups") == []


def test_after_a_restart_the_group_has_its_type_and_epochs_go_on(tmp_path):
    with Broker(tmp_path) as broker:
        client = Client(broker)
        client.create("t", 1)
        before = join(client, "x").member_epoch
    with Broker(tmp_path) as broker:
        client = Client(broker)
        assert described(client).state == "Empty"
        assert send(client, "x", before)[:2] == (
            UnknownMemberIdError,
            "Member x is not a member of group g.",
        )
        assert join(client, "x").member_epoch >= before
