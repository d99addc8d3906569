"""One namespace of group ids: their types, restarts, and what each type is told about the others."""

from __future__ import annotations

import time

import pytest
from broker.clients import Client
from broker.groups.modern.known_topics import FakeTopics
from broker.groups.modern.test_group import AnyModern
from kafka.errors import (
    CoordinatorNotAvailableError,
    GroupIdNotFoundError,
    InconsistentGroupProtocolError,
    NonEmptyGroupError,
    UnknownMemberIdError,
)
from timing import until

from dafka import Broker
from dafka.broker.groups.group import Group
from dafka.broker.interface.broker import CommittedOffset, JoinRequest, LeavingMember, ListedGroup
from dafka.broker.interface.consumer_groups import ConsumerHeartbeat
from dafka.broker.interface.groups import GroupType
from dafka.broker.limits import EMPTY_SECONDS
from dafka.broker.share.kept import FORMAT

JOIN = JoinRequest("", 10.0, 10.0, "consumer", [("p", b"")])


def registry(client):
    found = client.core._groups._groups
    client.connection.hub.run(
        found.revive,
        GroupType.SHARE,
        lambda name, epoch, behind: AnyModern(found.clock(), FakeTopics(), epoch),
        FORMAT,
        lambda name, group, whole, members: iter(()),
    )
    return found


def occupied(client, name):
    """A share group with a member."""
    groups = registry(client)

    def make() -> AnyModern:
        group = AnyModern(groups.clock(), FakeTopics())
        groups.put(name, group)
        group.enter("m", at=groups.clock())
        groups.changed(name, group)
        return group

    return client.connection.hub.run(make)


def listed(client, *args):
    return {one.group: one.type.value for one in client.call("list_groups", *args)}


def test_an_id_has_one_type_and_the_classic_protocol_is_refused_on_the_others(client):
    occupied(client, "g")
    assert client.call("join_group", "g", JOIN).error is InconsistentGroupProtocolError
    assert client.call("sync_group", "g", 1, "m").error is UnknownMemberIdError
    assert client.call("heartbeat", "g", 1, "m") is UnknownMemberIdError
    assert client.call("leave_group", "g", [LeavingMember("m")]) == [UnknownMemberIdError]
    assert client.call("describe_groups", ["g"])["g"].state == "Dead"
    with pytest.raises(GroupIdNotFoundError, match="is not a classic group"):
        client.core._groups._groups.of("g", Group)
    with pytest.raises(GroupIdNotFoundError, match="not found"):
        client.core._groups._groups.of("none", Group)


def test_a_consumer_group_without_members_gives_its_id_to_a_classic_one(client):
    for epoch in 0, -1:
        beat = ConsumerHeartbeat("m", epoch, rebalance_timeout=5.0, topics=["t"], owned={})
        assert client.call("consumer_group_heartbeat", "g", beat).error is None
    assert client.call("join_group", "g", JOIN).error is None
    assert listed(client) == {"g": "classic"}


def test_groups_are_listed_by_type_and_state(client):
    occupied(client, "shared")
    client.call("join_group", "classic", JOIN)
    client.call("commit_offsets", "simple", {})
    assert listed(client) == {"shared": "share", "classic": "classic"}
    assert listed(client, (), ["SHARE"]) == {"shared": "share"}
    assert listed(client, (), ["consumer"]) == {}
    assert listed(client, ["assigning"]) == {"shared": "share"}
    assert listed(client, ["assigning"], ["classic"]) == {}


def test_a_group_with_members_is_not_deleted_and_one_without_is(client):
    group = occupied(client, "g")
    assert client.call("delete_groups", ["g"]) == {"g": NonEmptyGroupError}
    client.connection.hub.run(group.remove, 0.0, group.members["m"])
    assert client.call("delete_groups", ["g"]) == {"g": None}
    assert listed(client) == {} and client.call("delete_groups", ["g"]) == {"g": GroupIdNotFoundError}


def test_type_and_epoch_survive_a_restart_and_members_do_not(tmp_path):
    with Broker(tmp_path) as broker:
        client = Client(broker)
        occupied(client, "g").raise_epoch()
        groups = client.core._groups._groups
        client.connection.hub.run(lambda: groups.changed("g", groups.get("g")))
    with Broker(tmp_path) as broker:
        client = Client(broker)
        groups = registry(client)
        assert client.call("list_groups") == [ListedGroup("g", "share", "Empty", GroupType.SHARE)]
        found = client.connection.hub.run(groups.get, "g")
        assert (found.epoch, found.members) == (2, {})
        assert client.call("delete_groups", ["g"]) == {"g": None}
    with Broker(tmp_path) as broker:
        client = Client(broker)
        assert client.call("list_groups") == []


def test_an_idle_group_leaves_the_memory_and_comes_back_with_its_type(client):
    group = occupied(client, "g")
    groups = registry(client)
    client.connection.hub.run(group.remove, groups.clock(), group.members["m"])
    groups.clock = lambda: time.monotonic() + EMPTY_SECONDS + 60
    client.connection.hub.run(lambda: (groups.changed("g", group), groups.check()))
    until(lambda: "g" not in groups)
    assert listed(client) == {"g": "share"}
    assert client.connection.hub.run(groups.get, "g").epoch == group.epoch


def test_beyond_the_limit_there_is_no_room_for_another_group(client, monkeypatch):
    occupied(client, "g")
    monkeypatch.setattr("dafka.broker.groups.registry.GROUPS_KEPT", 1)
    with pytest.raises(CoordinatorNotAvailableError):
        client.core._groups._groups.check_room()


def test_offsets_of_a_group_of_any_type_are_its_own(client):
    client.call("metadata", ["t"], True)
    client.call("commit_offsets", "g", {("t", 0): CommittedOffset(4)})
    occupied(client, "g")
    assert client.call("fetch_offsets", "g")["t", 0].offset == 4
