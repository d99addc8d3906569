"""Groups through the broker's interface: waiting calls, timeouts, offsets, stop and restart."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from typing import Any

import gevent
import kafka.errors as errors
import pytest
from broker.clients import Client
from kafka.protocol.consumer.metadata import ConsumerProtocolSubscription
from timing import takes_less, until

from dafka import Broker
from dafka.broker import BrokerStoppedError
from dafka.broker.groups.offsets import COMMIT_OFFSETS
from dafka.broker.interface.broker import CommittedOffset, JoinRequest, LeavingMember, ListedGroup
from dafka.hub.hub import get_hub
from dafka.hub.turns import next_turn


def request(member_id: str = "", **more: Any) -> JoinRequest:
    fields = {"session_timeout": 10.0, "rebalance_timeout": 20.0, "protocols": [("p", b"m")], **more}
    return JoinRequest(member_id, protocol_type="consumer", **fields)


def together(client: Client, calls: list[Any]) -> list[Any]:
    """Call methods of the broker at the same moment; returns their results."""

    def run() -> list[Any]:
        greens = [gevent.spawn(getattr(client.core, name), *args, **more) for name, args, more in calls]
        gevent.joinall(greens, raise_error=True)
        return [green.value for green in greens]

    return client.connection.hub.run(run)


def stable(client: Client, count: int, group: str = "g", **more: Any) -> list[Any]:
    """A stable group of ``count`` members, the leader first; the assignment of each is its own id."""
    joined = together(client, [("join_group", (group, request(**more)), {}) for _ in range(count)])
    joined.sort(key=lambda one: one.member_id != one.leader)
    shares = {one.member_id: one.member_id.encode() for one in joined}
    calls = [
        ("sync_group", (group, one.generation, one.member_id), {"assignments": shares}) for one in joined
    ]
    for one, synced in zip(joined, together(client, calls), strict=True):
        assert (synced.error, synced.assignment) == (None, one.member_id.encode())
    return joined


@pytest.fixture
def threads():
    with ThreadPoolExecutor(4) as pool:
        yield pool


def test_ten_members_that_start_together_are_one_generation_at_once(client):
    names = (f"g{number}" for number in count())
    assert takes_less(2, lambda: stable(client, 10, next(names)))
    joined = stable(client, 10)
    described = client.call("describe_groups", ["g"])["g"]
    assert described.state == "Stable"
    assert {member.member_id for member in described.members} == {one.member_id for one in joined}
    assert all(member.assignment == member.member_id.encode() for member in described.members)


def test_a_lone_member_does_not_wait_for_others(client):
    names = (f"g{number}" for number in count())

    def join() -> None:
        joined = client.call("join_group", next(names), request())
        assert joined.leader == joined.member_id

    assert takes_less(1, join)


def test_at_the_limit_of_groups_new_ones_are_refused_and_known_ones_continue(client, monkeypatch):
    (leader,) = stable(client, 1)
    monkeypatch.setattr("dafka.broker.groups.registry.GROUPS_KEPT", 1)
    assert client.call("join_group", "h", request()).error is errors.CoordinatorNotAvailableError
    assert client.call("heartbeat", "g", leader.generation, leader.member_id) is None
    assert client.call("join_group", "g", request(leader.member_id)).error is None


def test_a_parked_heartbeat_ends_when_a_rebalance_begins(client, threads):
    (leader,) = stable(client, 1)
    waiting = threads.submit(
        client.call, "heartbeat", "g", leader.generation, leader.member_id, max_wait=20.0
    )
    client.call("heartbeat", "other", 1, "x")
    assert not waiting.done()
    newcomer = threads.submit(client.call, "join_group", "g", request())
    assert waiting.result(100) is errors.RebalanceInProgressError
    again = threads.submit(client.call, "join_group", "g", request(leader.member_id))
    assert {newcomer.result(100).generation, again.result(100).generation} == {2}


def test_a_parked_heartbeat_returns_no_error_after_its_maximal_wait(client):
    (leader,) = stable(client, 1)
    beat = ("heartbeat", "g", leader.generation, leader.member_id)
    assert client.call(*beat, max_wait=0.01) is None
    assert client.call(*beat) is None


def test_a_member_without_heartbeats_for_its_session_timeout_is_removed(client):
    def beat(group: str) -> tuple[Any, ...]:
        (leader,) = stable(client, 1, group, session_timeout=0.5)
        return "heartbeat", group, leader.generation, leader.member_id

    def stays(beat: tuple[Any, ...]) -> bool:
        return all(client.call(*beat, max_wait=0.2) is None for _ in range(5))

    beats = (beat(f"g{number}") for number in range(8))
    last = next(one for one in beats if stays(one))  # a machine that stands still keeps some from beating
    group = last[1]
    assert until(lambda: client.call("describe_groups", [group])[group].state == "Empty")
    assert client.call(*last) is errors.UnknownMemberIdError


def test_a_rebalance_continues_after_its_timeout(client):
    stable(client, 1, session_timeout=60.0, rebalance_timeout=1.0)
    start = time.monotonic()
    joined = client.call("join_group", "g", request(session_timeout=60.0, rebalance_timeout=1.0))
    assert 0.9 < time.monotonic() - start < 100
    assert [member.member_id for member in joined.members] == [joined.member_id]


@pytest.mark.parametrize(
    ("group", "join", "error"),
    [
        ("", request(), errors.InvalidGroupIdError),
        (None, request(), errors.InvalidGroupIdError),
        ("g", request("who"), errors.UnknownMemberIdError),
        ("g", request(session_timeout=0.001), errors.InvalidSessionTimeoutError),
        ("g", request(session_timeout=1801.0), errors.InvalidSessionTimeoutError),
        ("g", request(protocols=[]), errors.InconsistentGroupProtocolError),
    ],
)
def test_invalid_joins_are_refused(client, group, join, error):
    assert client.call("join_group", group, join).error is error


def test_calls_to_an_unknown_group_get_unknown_member_id(client):
    assert client.call("sync_group", "g", 1, "m").error is errors.UnknownMemberIdError
    assert client.call("heartbeat", "g", 1, "m", max_wait=5.0) is errors.UnknownMemberIdError
    assert client.call("leave_group", "g", [LeavingMember("m")]) == [errors.UnknownMemberIdError]


# -- offsets --------------------------------------------------------------------------------------


def test_only_members_commit_offsets_of_a_group_with_members(client):
    client.create("t")
    offsets = {("t", 0): CommittedOffset(5)}
    assert client.call("commit_offsets", "g", offsets) == {("t", 0): None}
    (leader,) = stable(client, 1)
    member = {"generation": leader.generation, "member_id": leader.member_id}

    def commit(**identity: Any) -> Any:
        return client.call("commit_offsets", "g", offsets, **identity)["t", 0]

    assert commit(**member) is None
    assert commit() is errors.UnknownMemberIdError
    assert commit(**{**member, "generation": 7}) is errors.IllegalGenerationError
    assert commit(**{**member, "member_id": "who"}) is errors.UnknownMemberIdError
    client.call("leave_group", "g", [LeavingMember(leader.member_id)])
    assert commit(**member) is errors.UnknownMemberIdError
    assert commit() is None


def test_a_commit_with_a_generation_of_an_unknown_group_is_refused(client):
    client.create("t")
    answers = client.call("commit_offsets", "g", {("t", 0): CommittedOffset(5)}, generation=1, member_id="m")
    assert answers == {("t", 0): errors.GroupIdNotFoundError}


def test_offsets_are_deleted_unless_a_member_reads_the_topic(client):
    client.create("t")
    client.create("u")
    offsets = {("t", 0): CommittedOffset(5), ("u", 0): CommittedOffset(6)}
    client.call("commit_offsets", "g", offsets)
    metadata = ConsumerProtocolSubscription(0, ["t"], b"").encode()
    stable(client, 1, protocols=[("p", metadata)])
    assert client.call("delete_offsets", "g", [("t", 0), ("t", 9), ("u", 0), ("v", 0)]) == {
        ("t", 0): errors.GroupSubscribedToTopicError,
        ("t", 9): errors.UnknownTopicOrPartitionError,
        ("u", 0): None,
        ("v", 0): errors.UnknownTopicOrPartitionError,
    }
    assert list(client.call("fetch_offsets", "g")) == [("t", 0)]
    assert client.call("delete_offsets", "none", [("t", 0)]) == {("t", 0): errors.GroupIdNotFoundError}


# -- describing and deleting ----------------------------------------------------------------------


def test_groups_are_listed_with_members_and_with_offsets_only(client):
    client.create("t")
    client.call("commit_offsets", "1:offsets", {("t", 0): CommittedOffset(5)})
    stable(client, 1)
    everything = [ListedGroup("1:offsets", "", "Empty"), ListedGroup("g", "consumer", "Stable")]
    assert sorted(client.call("list_groups")) == everything
    assert client.call("list_groups", ["stable"]) == everything[1:]
    described = client.call("describe_groups", ["1:offsets", "none"])
    assert {name: group.state for name, group in described.items()} == {"1:offsets": "Empty", "none": "Dead"}


def test_a_group_without_members_is_deleted_with_its_offsets(client):
    client.create("t")
    client.call("commit_offsets", "g", {("t", 0): CommittedOffset(5)})
    (leader,) = stable(client, 1)
    assert client.call("delete_groups", ["g", "none", ""]) == {
        "g": errors.NonEmptyGroupError,
        "none": errors.GroupIdNotFoundError,
        "": errors.GroupIdNotFoundError,
    }
    client.call("leave_group", "g", [LeavingMember(leader.member_id)])
    assert client.call("delete_groups", ["g", "g"]) == {"g": None}
    assert client.call("fetch_offsets", "g") == {}
    assert client.call("list_groups") == []


def test_deleting_very_many_groups_lets_others_run(client):
    def turns() -> int:
        deleting = gevent.spawn(client.core.delete_groups, [f"g-{number}" for number in range(100_000)])
        others = 0
        while not deleting.ready():
            next_turn()
            others += 1
        assert set(deleting.get().values()) == {errors.GroupIdNotFoundError}
        return others

    assert get_hub().run(turns) > 3


def test_a_group_with_very_many_offsets_takes_no_member_and_no_offset_while_it_is_deleted(client):
    count = 3 * COMMIT_OFFSETS
    client.create("wide", count)
    client.call("commit_offsets", "g", {("wide", number): CommittedOffset(1) for number in range(count)})

    def delete_and_join() -> tuple[Any, ...]:
        table = client.core.log.table("offsets")
        deleting = gevent.spawn(client.core.delete_groups, ["g"])
        while len(table) == count:
            next_turn()
        joined = client.core.join_group("g", request())
        committed = client.core.commit_offsets("g", {("wide", 0): CommittedOffset(7)})
        return len(table), joined.error, committed, deleting.get(timeout=100)

    left, error, committed, deleted = client.connection.hub.run(delete_and_join)
    assert left > 0, "the deletion was over before anybody could come between its rounds"
    assert error is errors.CoordinatorLoadInProgressError
    assert committed == {("wide", 0): errors.CoordinatorLoadInProgressError}
    assert deleted == {"g": None}
    assert client.call("fetch_offsets", "g") == {}
    assert client.call("commit_offsets", "g", {("wide", 0): CommittedOffset(7)}) == {("wide", 0): None}


# -- stop and restart -----------------------------------------------------------------------------


def test_stopping_ends_waiting_calls(client, broker, threads):
    leader, follower = stable(client, 2)
    waiting = [
        threads.submit(client.call, "heartbeat", "g", leader.generation, leader.member_id, max_wait=60.0),
        threads.submit(client.call, "join_group", "g", request()),
    ]
    # The join has begun a rebalance and waits for the two members; the heartbeat was answered.
    assert waiting[0].result(100) is errors.RebalanceInProgressError
    broker.stop()
    with pytest.raises(BrokerStoppedError):
        waiting[1].result(100)
    with pytest.raises(BrokerStoppedError):
        client.call("join_group", "g", request(follower.member_id))


def test_offsets_stay_and_members_join_again_after_a_restart(tmp_path):
    with Broker(tmp_path) as broker:
        client = Client(broker)
        client.create("t")
        (leader,) = stable(client, 1)
        member = {"generation": leader.generation, "member_id": leader.member_id}
        client.call("commit_offsets", "g", {("t", 0): CommittedOffset(5)}, **member)
    with Broker(tmp_path) as broker:
        client = Client(broker)
        assert client.call("heartbeat", "g", 1, leader.member_id) is errors.UnknownMemberIdError
        assert client.call("join_group", "g", request(leader.member_id)).error is errors.UnknownMemberIdError
        assert client.call("fetch_offsets", "g") == {("t", 0): CommittedOffset(5)}
        assert client.call("describe_groups", ["g"])["g"].state == "Empty"
        assert client.call("join_group", "g", request()).error is None


def test_each_of_many_groups_has_its_own_timeouts(client):
    names = [f"g{number}" for number in range(200)]

    wanted = request(session_timeout=0.3)
    joined = together(client, [("join_group", (name, wanted), {}) for name in names])
    assert all(one.error is None for one in joined)
    assert until(lambda: {group.state for group in client.call("list_groups")} == {"Empty"})
