"""Members with the classic protocol in a group whose assignment the broker computes."""

from __future__ import annotations

from typing import Any

import pytest
from broker.groups.consumer.group_table import Table
from kafka.errors import (
    FencedInstanceIdError,
    IllegalGenerationError,
    InconsistentGroupProtocolError,
    MemberIdRequiredError,
    RebalanceInProgressError,
    UnknownMemberIdError,
)
from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment, ConsumerProtocolSubscription

from dafka.broker.groups.consumer import classic
from dafka.broker.interface.broker import Joined, JoinRequest, LeavingMember, Synced

SESSION, REBALANCE = 10.0, 20.0


def subscription(*topics: str) -> bytes:
    return bytes(ConsumerProtocolSubscription(0, list(topics), b"").encode())


class Mixed(Table):
    """A group with a member "x" of the newer protocol."""

    def __init__(self) -> None:
        super().__init__()
        self.x = self.join("x")

    def enter(self, member_id: str = "", metadata: bytes | None = None, **fields: Any) -> Joined:
        known = {"client_id": "c", "protocol_type": "consumer", **fields}
        protocols = [("range", subscription("t") if metadata is None else metadata)]
        request = JoinRequest(member_id, SESSION, REBALANCE, protocols=protocols, **known)
        return classic.join(self.now, self.group, request)

    def sync(self, joined: Joined, **fields: Any) -> Synced:
        asked = {"generation": joined.generation, "member_id": joined.member_id, **fields}
        return classic.sync(
            self.now,
            self.group,
            asked["generation"],
            asked["member_id"],
            asked.get("instance_id"),
            "consumer",
            asked.get("protocol", "range"),
        )

    def beat(self, joined: Joined, generation: int | None = None) -> Any:
        epoch = joined.generation if generation is None else generation
        return classic.heartbeat(self.now, self.group, epoch, joined.member_id, None)

    def settle(self, joined: Joined) -> Joined:
        """Let "x" give up what the classic member is to have, which then joins again."""
        x = self.send("x", self.x.epoch)
        self.x = self.send("x", x.epoch, owned=self.owned(*self.numbers(x)))
        again = self.enter(joined.member_id)
        assert self.sync(again).error is None and self.beat(again) is None
        return again


@pytest.fixture
def mixed():
    return Mixed()


def test_a_member_joins_at_once_syncs_and_hears_when_there_is_more(mixed):
    joined = mixed.enter()
    assert (joined.error, joined.generation, joined.protocol, joined.leader) == (None, 2, "range", "")
    assert ConsumerProtocolAssignment.decode(mixed.sync(joined).assignment).assigned_partitions == []
    assert mixed.beat(joined) is None  # partitions it lacks are still another one's
    x = mixed.send("x", mixed.x.epoch)
    mixed.send("x", x.epoch, owned=mixed.owned(*mixed.numbers(x)))
    assert mixed.beat(joined) is RebalanceInProgressError
    again = mixed.enter(joined.member_id)
    (topic,) = ConsumerProtocolAssignment.decode(mixed.sync(again).assignment).assigned_partitions
    assert (topic.topic, len(topic.partitions)) == ("t", 3)


def test_members_of_the_newer_protocol_alone_have_epochs_to_commit_with(mixed):
    joined = mixed.enter()
    assert mixed.group.gives_epoch("x")
    assert not mixed.group.gives_epoch(joined.member_id)
    assert not mixed.group.gives_epoch("nobody")


def test_clients_that_support_it_get_a_member_id_before_they_join(mixed):
    told = mixed.enter(require_known_member=True)
    assert told.error is MemberIdRequiredError
    assert mixed.enter(told.member_id, require_known_member=True).error is None


def test_a_removed_member_that_still_reads_stops_before_it_joins_again(mixed):
    """Others have its partitions; a client that is told UNKNOWN_MEMBER_ID gives up what it reads."""
    owned = ConsumerProtocolSubscription(
        version=1, topics=["t"], user_data=b"", owned_partitions=[("t", [1])]
    )
    assert mixed.enter("removed", metadata=bytes(owned.encode())).error is UnknownMemberIdError
    assert "removed" not in mixed.group.members
    assert mixed.enter("removed").error is None


def test_protocols_that_other_classic_members_do_not_have_are_refused(mixed):
    assert mixed.enter(protocol_type="connect").error is InconsistentGroupProtocolError
    assert mixed.enter(metadata=b"?").error is InconsistentGroupProtocolError
    assert mixed.enter(metadata=bytes(classic.MIGRATED_OCTETS + 1)).error is InconsistentGroupProtocolError
    assert set(mixed.group.members) == {"x"}


def test_a_refused_join_names_no_member(mixed):
    """As in Kafka, whose answer to what it throws is the error alone."""
    for refused in (
        mixed.enter("nobody", instance_id="i"),
        mixed.enter("nobody", metadata=b"?"),
        mixed.enter(protocol_type="connect"),
    ):
        assert refused.error is not None and refused.member_id == ""


def test_a_member_that_has_joined_without_an_instance_is_no_static_one(mixed):
    """As in Kafka: it does not become one, and takes no other's place."""
    joined = mixed.enter()
    assert mixed.enter(joined.member_id, instance_id="i").error is UnknownMemberIdError
    assert mixed.enter(joined.member_id).error is None
    static = mixed.enter(instance_id="i")
    assert mixed.enter(static.member_id, instance_id="i").error is None


def test_other_generations_and_members_are_refused(mixed):
    joined = mixed.settle(mixed.enter())
    assert mixed.beat(joined, 1) is IllegalGenerationError
    assert mixed.sync(joined, generation=1).error is IllegalGenerationError
    assert mixed.sync(joined, member_id="x").error is UnknownMemberIdError
    assert mixed.sync(joined, protocol="sticky").error is InconsistentGroupProtocolError
    check = mixed.group.check_commit
    assert check(0.0, joined.generation, joined.member_id, None, [("t", 0)]) is None
    assert check(0.0, 1, joined.member_id, None, [("t", 0)]) is IllegalGenerationError


def test_a_newer_epoch_makes_a_member_join_again_in_time_or_be_removed(mixed):
    joined = mixed.settle(mixed.enter())
    mixed.topics.extend("t", 8)
    assert mixed.beat(joined) is RebalanceInProgressError
    assert mixed.sync(joined).error is None  # as in Kafka, as long as there is no newer target
    mixed.send("x", mixed.group.members["x"].epoch)
    assert mixed.sync(joined).error is RebalanceInProgressError
    for _ in range(4):
        mixed.pass_time(SESSION / 2)
        mixed.send("x", mixed.group.members["x"].epoch)
        if joined.member_id in mixed.group.members:
            mixed.beat(joined)
    assert set(mixed.group.members) == {"x"}


def test_members_leave_and_a_silent_one_is_removed(mixed):
    joined = mixed.enter()
    leaving = [LeavingMember(joined.member_id), LeavingMember("none")]
    assert classic.leave(0.0, mixed.group, leaving) == [None, UnknownMemberIdError]
    mixed.enter()
    mixed.pass_time(SESSION)
    assert mixed.group.members == {}


def test_an_administrator_removes_members_of_both_protocols_at_once(mixed):
    joined = mixed.enter()
    static = mixed.join("y", instance_id="i")
    assert static.epoch == mixed.group.epoch
    leaving = [
        LeavingMember("x"),
        LeavingMember("x"),
        LeavingMember(joined.member_id),
        LeavingMember("", "i"),
        LeavingMember("z", "i"),
    ]
    epoch = mixed.group.epoch
    answers = classic.leave(0.0, mixed.group, leaving)
    assert answers == [None, None, None, None, FencedInstanceIdError]
    assert mixed.group.members == {} and mixed.group.epoch == epoch + 1


def test_a_static_member_changes_its_protocol_without_a_rebalance(mixed):
    static = mixed.enter(instance_id="i")
    mixed.settle_epoch = mixed.group.epoch
    taken = mixed.join("y", instance_id="i")
    assert static.member_id not in mixed.group.members and taken.epoch == mixed.group.epoch
    assert mixed.group.epoch == mixed.settle_epoch
    back = mixed.enter(instance_id="i")
    assert back.error is None and "y" not in mixed.group.members
    assert mixed.sync(back, instance_id="i", member_id="y").error is FencedInstanceIdError
