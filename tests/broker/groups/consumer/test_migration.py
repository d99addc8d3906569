"""Groups that change their protocol while they have members."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from broker.clients import Client
from broker.groups.clocked import Table as ClassicTable
from broker.groups.consumer.group_table import Table
from broker.groups.test_coordinator import together
from kafka.errors import (
    CoordinatorLoadInProgressError,
    GroupIdNotFoundError,
    InconsistentGroupProtocolError,
    RebalanceInProgressError,
)
from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from timing import until

from dafka import Broker
from dafka.broker import limits
from dafka.broker.groups.consumer import classic, migration
from dafka.broker.groups.consumer.migration import Policy, dismiss, downgraded, upgraded
from dafka.broker.groups.generation import State, at_once
from dafka.broker.interface.consumer_groups import ConsumerHeartbeat
from dafka.broker.interface.groups import GroupType, JoinRequest, LeavingMember
from dafka.broker.remote.remote import Remote
from dafka.hub.hub import get_hub

SUBSCRIPTION = bytes(ConsumerProtocolSubscription(0, ["t"], b"").encode())
PROTOCOLS = [("range", SUBSCRIPTION)]


def assignment(*numbers: int) -> bytes:
    return bytes(ConsumerProtocolAssignment(0, [("t", list(numbers))], b"").encode())


@pytest.fixture
def table():
    return Table()


@pytest.fixture
def old() -> Any:
    """A stable classic group of two consumers, with three partitions each."""
    found = ClassicTable()
    first = found.join(protocols=PROTOCOLS)
    second = found.join(protocols=PROTOCOLS)
    found.pass_time(1)
    joined = sorted((first[0], second[0]), key=lambda one: one.member_id != one.leader)
    shares = {joined[0].member_id: assignment(0, 1, 2), joined[1].member_id: assignment(3, 4, 5)}
    found.sync(joined[1])
    found.sync(joined[0], shares)
    assert found.group.state is State.STABLE
    return found


def test_members_keep_what_they_have_and_the_epoch_follows_the_generation(table, old):
    group = upgraded(0.0, "g", old.group, table.topics)
    assert group.epoch == old.group.generation and set(group.members) == set(old.group.members)
    assert sorted(sorted(one.assigned.values())[0] for one in group.described()) == [{0, 1, 2}, {3, 4, 5}]
    assert all(one.is_classic and one.topics == ["t"] for one in group.described())


def test_parked_calls_are_answered_with_a_rebalance(table, old):
    waiting = old.join(protocols=PROTOCOLS)
    upgraded(0.0, "g", old.group, table.topics)
    assert not waiting
    dismiss(old.group)
    assert waiting[0].error is RebalanceInProgressError


def test_a_new_member_gets_partitions_when_classic_ones_have_joined_again(table, old):
    table.group = group = upgraded(0.0, "g", old.group, table.topics)
    fresh = table.join("x")
    assert table.numbers(fresh) == []
    for member in list(group.members.values()):
        if member.classic is None:
            continue
        beat = classic.heartbeat(0.0, group, member.epoch, member.member_id, None)
        assert beat is RebalanceInProgressError
        again = classic.join(0.0, group, member.classic._replace(member_id=member.member_id))
        assert (again.error, again.generation, again.leader) == (None, group.epoch, "")
        synced = classic.sync(0.0, group, again.generation, member.member_id, None, "consumer", "range")
        (topic,) = ConsumerProtocolAssignment.decode(synced.assignment).assigned_partitions
        assert len(topic.partitions) == 2
    assert len(table.numbers(table.send("x", fresh.epoch))) == 2


def test_the_last_member_with_the_newer_protocol_leaves_a_classic_group(table, old):
    table.group = group = upgraded(0.0, "g", old.group, table.topics)
    table.join("x")
    assert not group.only_classic
    table.send("x", -1)
    assert group.only_classic
    back = downgraded(0.0, group, at_once)
    assert (back.state, back.protocol_type) == (State.PREPARING, "consumer")
    assert back.generation == group.epoch - 1 and set(back.members) == set(group.members)


def test_a_static_member_that_goes_back_to_the_classic_protocol_begins_no_rebalance(tmp_path):
    def described(broker: Broker) -> Any:
        return Client(broker).call("describe_groups", ["g"])["g"]

    request = JoinRequest("", 10.0, 10.0, "consumer", PROTOCOLS, "i")
    newer = ConsumerHeartbeat("x", 0, instance_id="i", rebalance_timeout=5.0, owned={}, topics=["t"])
    with Broker(tmp_path, listen="127.0.0.1:0") as broker:
        host, _, port = broker.bootstrap_servers.rpartition(":")
        hub = get_hub()
        remote = hub.run(Remote, hub, [(host, int(port))])

        def ask(method: str, *args: Any) -> Any:
            return hub.run(getattr(remote, method), "g", *args)

        Client(broker).create("t", 2)
        assert ask("consumer_group_heartbeat", newer).error is None
        joined = ask("join_group", request)
        assert (joined.error, described(broker).state) == (None, "Stable")
        synced = ask("sync_group", joined.generation, joined.member_id, "i")
        assert ConsumerProtocolAssignment.decode(synced.assignment).assigned_partitions == [("t", [0, 1])]
        hub.run(remote.close)
    with Broker(tmp_path) as broker:
        assert [one.assignment for one in described(broker).members] == [synced.assignment]


def test_members_have_what_they_had_after_a_way_there_and_back(table, old):
    """Until they have heard of it they read on, so that nobody else may get it."""
    table.group = group = upgraded(0.0, "g", old.group, table.topics)
    table.join("x")
    table.send("x", -1)
    back = downgraded(0.0, group, at_once)
    again = upgraded(0.0, "g", back, table.topics)
    assert sorted(sorted(one.assigned.values())[0] for one in again.described()) == [{0, 1, 2}, {3, 4, 5}]


def test_a_member_has_what_it_joined_with_until_its_sync_is_answered(table):
    """The answer that takes partitions from it may have been lost."""
    classic_table = ClassicTable()
    owned = ConsumerProtocolSubscription(
        version=1, topics=["t"], user_data=b"", owned_partitions=[("t", [0, 1, 2])]
    )
    answers = classic_table.join(protocols=[("cooperative-sticky", bytes(owned.encode()))])
    classic_table.pass_time(1)
    classic_table.sync(answers[0], {answers[0].member_id: assignment(0)})
    group = upgraded(0.0, "g", classic_table.group, table.topics)
    (member,) = group.described()
    assert list(member.assigned.values()) == [{0, 1, 2}]


@pytest.mark.parametrize(
    ("protocol_type", "most", "why"),
    [
        ("connect", 9, "the group does not use the consumer embedded protocol"),
        ("consumer", 1, "the group size exceeds the consumer group maximum size"),
    ],
)
def test_a_group_of_other_members_or_too_many_stays_as_it_is(old, protocol_type, most, why):
    old.group.protocol_type = protocol_type
    with pytest.raises(GroupIdNotFoundError, match=f"group g to consumer group because {why}"):
        Policy().check_upgrade("g", old.group, most)
    assert old.group.state is State.STABLE


class Pauses:
    """A pause after each member, in which something else is done."""

    def __init__(self, *happenings: Any) -> None:
        self.left = list(happenings)

    def over(self, items: Any, every: int) -> Any:
        for item in items:
            yield item
            if self.left:
                self.left.pop(0)()


def test_changes_during_the_upgrade_of_a_large_group_are_taken_over_too(table, old, monkeypatch):
    leaving = LeavingMember(next(iter(old.group.members)))
    monkeypatch.setattr(migration, "Pace", partial(Pauses, lambda: old.group.leave(0.0, [leaving])))
    group = upgraded(0.0, "g", old.group, table.topics)
    assert list(group.members) == list(old.group.members) and leaving.member_id not in group.members


def test_a_group_that_never_rests_is_not_upgraded_now(table, old, monkeypatch):
    def change() -> None:
        old.group.generation += 1

    monkeypatch.setattr(migration, "Pace", partial(Pauses, *[change] * 100))
    with pytest.raises(CoordinatorLoadInProgressError):
        upgraded(0.0, "g", old.group, table.topics)


def test_a_group_that_changes_while_it_is_downgraded_is_not(table, old, monkeypatch):
    group = upgraded(0.0, "g", old.group, table.topics)
    monkeypatch.setattr(migration, "Pace", partial(Pauses, group.raise_epoch))
    assert downgraded(0.0, group, at_once) is None
    monkeypatch.undo()
    assert downgraded(0.0, group, at_once).members.keys() == old.group.members.keys()


def test_a_large_group_becomes_a_classic_one_in_several_turns(client, monkeypatch):
    monkeypatch.setattr(limits, "MIGRATED_AT_ONCE", 0)
    client.create("t", 6)
    request = JoinRequest("", 10.0, 10.0, "consumer", PROTOCOLS)
    beat = ConsumerHeartbeat("x", 0, rebalance_timeout=5.0, owned={}, topics=["t"])
    assert client.call("consumer_group_heartbeat", "g", beat).error is None
    assert client.call("join_group", "g", request).error is None
    assert client.call("consumer_group_heartbeat", "g", ConsumerHeartbeat("x", -1)).error is None
    until(lambda: client.call("list_groups")[0].type is GroupType.CLASSIC)


def test_garbage_for_a_subscription_keeps_a_group_classic(table):
    garbage = ClassicTable()
    garbage.stable(2)
    with pytest.raises(GroupIdNotFoundError):
        upgraded(0.0, "g", garbage.group, table.topics)
    assert garbage.group.state is State.STABLE


# -- the policy of a broker -----------------------------------------------------------------------------


class Mixed:
    """A broker with a policy, in whose group "g" members of both kinds are to be."""

    def __init__(self, broker: Broker) -> None:
        self.client = Client(broker)
        self.client.create("t", 6)

    def classic(self) -> Any:
        request = JoinRequest("", 10.0, 10.0, "consumer", PROTOCOLS)
        return self.client.call("join_group", "g", request)

    def newer(self, name: str = "x", epoch: int = 0) -> Any:
        request = ConsumerHeartbeat(name, epoch, rebalance_timeout=5.0, owned={}, topics=["t"])
        return self.client.call("consumer_group_heartbeat", "g", request)

    def type(self) -> GroupType:
        (listed,) = self.client.call("list_groups")
        return listed.type


@pytest.mark.parametrize(
    ("policy", "upgrades", "mixes", "downgrades"),
    [
        ("bidirectional", True, True, True),
        ("UPGRADE", True, True, False),
        ("downgrade", False, True, True),
        ("disabled", False, False, False),
    ],
)
def test_the_brokers_policy_says_which_way_a_group_may_go(policy, upgrades, mixes, downgrades):
    def started() -> Broker:
        return Broker(group_settings={"group.consumer.migration.policy": policy})

    with started() as broker:
        mixed = Mixed(broker)
        assert mixed.classic().error is None
        answer = mixed.newer()
        assert (answer.error is None) is upgrades
        if not upgrades:
            assert answer.error is GroupIdNotFoundError
            assert answer.detail == (
                "Cannot upgrade classic group g to consumer group because online upgrade is disabled."
            )
        assert mixed.type() is (GroupType.CONSUMER if upgrades else GroupType.CLASSIC)
    with started() as broker:
        mixed = Mixed(broker)
        assert mixed.newer().error is None
        joined = mixed.classic()
        assert joined.error is (None if mixes else InconsistentGroupProtocolError)
        assert mixed.newer(epoch=-1).error is None
        if mixes:
            assert mixed.type() is (GroupType.CLASSIC if downgrades else GroupType.CONSUMER)


def test_a_group_of_more_than_a_classic_one_may_have_stays_of_the_newer_protocol():
    with Broker(group_settings={"group.max.size": "1"}) as broker:
        mixed = Mixed(broker)
        assert mixed.newer().error is None
        assert [mixed.classic().error for _ in range(2)] == [None, None]
        assert mixed.newer(epoch=-1).error is None
        assert mixed.type() is GroupType.CONSUMER


def test_a_group_of_more_than_one_of_the_newer_protocol_may_have_stays_classic():
    with Broker(group_settings={"group.consumer.max.size": "1"}) as broker:
        mixed = Mixed(broker)
        request = JoinRequest("", 10.0, 10.0, "consumer", PROTOCOLS)
        joined = together(mixed.client, [("join_group", ("g", request), {})] * 2)
        assert [one.error for one in joined] == [None, None]
        answer = mixed.newer()
        assert answer.error is GroupIdNotFoundError and "maximum size" in answer.detail
        assert mixed.type() is GroupType.CLASSIC


def test_a_group_that_there_is_not_is_named():
    with Broker() as broker:
        mixed = Mixed(broker)
        assert mixed.newer(epoch=1)[:2] == (GroupIdNotFoundError, "Consumer group g not found.")
        assert mixed.newer(epoch=-1)[:2] == (GroupIdNotFoundError, "Group g not found.")


def test_a_group_without_members_takes_the_protocol_of_whoever_comes_whatever_the_policy():
    with Broker(group_settings={"group.consumer.migration.policy": "disabled"}) as broker:
        mixed = Mixed(broker)
        assert mixed.newer().error is None
        assert mixed.newer(epoch=-1).error is None
        joined = mixed.classic()
        assert (joined.error, mixed.type()) == (None, GroupType.CLASSIC)
        left = mixed.client.call("leave_group", "g", [LeavingMember(joined.member_id, None, None)])
        assert left == [None]
        assert (mixed.newer().error, mixed.type()) == (None, GroupType.CONSUMER)
