"""Groups over TCP: calls as requests, and answers as outcomes."""

from __future__ import annotations

import time

import gevent
import pytest
from broker.remote.fake_broker import HANG, after
from kafka.errors import (
    CoordinatorNotAvailableError,
    GroupAuthorizationFailedError,
    GroupIdNotFoundError,
    NonEmptyGroupError,
    NotCoordinatorError,
    RebalanceInProgressError,
    UnknownMemberIdError,
    UnknownTopicOrPartitionError,
)
from kafka.protocol.admin import DeleteGroupsResponse, DescribeGroupsResponse, ListGroupsResponse
from kafka.protocol.consumer import (
    HeartbeatResponse,
    JoinGroupResponse,
    LeaveGroupResponse,
    OffsetCommitResponse,
    OffsetFetchResponse,
    SyncGroupResponse,
)

from dafka.broker.interface.broker import CommittedOffset, JoinRequest, LeavingMember, ListedGroup
from dafka.broker.remote import limits
from dafka.broker.server.answers.naming import version_of

COMMIT, OFFSET_FETCH, JOIN, HEARTBEAT, LEAVE, SYNC, DESCRIBE, LIST, DELETE = 8, 9, 11, 12, 13, 14, 15, 16, 42
JOIN_REQUEST = JoinRequest("m", 5.0, 0.5, "consumer", [("range", b"")], require_known_member=True)


def beaten(error=None):
    code = 0 if error is None else error.errno
    return lambda request: HeartbeatResponse(throttle_time_ms=0, error_code=code)


def joined(request):
    return JoinGroupResponse(
        throttle_time_ms=0,
        error_code=0,
        generation_id=3,
        protocol_type="consumer",
        protocol_name="range",
        leader="m",
        skip_assignment=False,
        member_id="m",
        members=[],
    )


def test_a_join_may_take_its_rebalance_timeout_longer_than_other_requests(fake, remote_to):
    fake.brokers[0].answers[JOIN] = after(1.0, joined)
    remote = remote_to(fake.addresses, request_timeout=0.5)
    assert remote.join_group("g", JOIN_REQUEST._replace(rebalance_timeout=60.0)).generation == 3


def test_members_that_join_do_not_hold_up_other_requests(fake, remote_to):
    broker = fake.brokers[0]
    broker.answers[JOIN] = lambda request: HANG
    broker.answers[HEARTBEAT] = beaten()
    remote = remote_to(fake.addresses, request_timeout=100.0)

    def both():
        joining = remote.hub.spawn(remote.remote.join_group, "g", JOIN_REQUEST)
        outcome = remote.remote.heartbeat("g", 1, "m")
        waits = not joining.dead
        joining.kill()
        return outcome, waits

    assert remote.hub.run(both) == (None, True)


def test_a_heartbeat_that_may_wait_says_at_once_when_the_group_rebalances(fake, remote_to):
    answers = [beaten(), beaten(RebalanceInProgressError)]
    fake.brokers[0].answers[HEARTBEAT] = lambda request: answers.pop(0)(request)
    started = time.monotonic()
    outcome = remote_to(fake.addresses).heartbeat("g", 1, "m", max_wait=100.0)
    assert outcome is RebalanceInProgressError
    assert time.monotonic() - started < 50


def test_a_heartbeat_that_may_wait_does_so_while_all_is_well(fake, remote_to):
    fake.brokers[0].answers[HEARTBEAT] = beaten()
    started = time.monotonic()
    assert remote_to(fake.addresses).heartbeat("g", 1, "m", max_wait=0.2) is None
    assert time.monotonic() - started >= 0.2


def test_a_commit_that_is_repeated_does_not_overwrite_a_later_one_of_its_member(trio, remote_to):
    topic_class = OffsetCommitResponse.OffsetCommitResponseTopic
    stored: list[int] = []

    def answer(error: int) -> OffsetCommitResponse:
        partition = topic_class.OffsetCommitResponsePartition(partition_index=0, error_code=error)
        return OffsetCommitResponse(
            throttle_time_ms=0, topics=[topic_class(name="t", partitions=[partition])]
        )

    def moved(request):
        trio.coordinator = 1
        return answer(NotCoordinatorError.errno)

    def committed(request):
        stored.append(request.topics[0].partitions[0].committed_offset)
        return answer(0)

    trio.brokers[0].answers[COMMIT] = moved
    trio.brokers[1].answers[COMMIT] = committed
    remote = remote_to(trio.addresses)

    def commit_all(*offsets: int) -> list[object]:
        """Each is sent before the one before it is answered, as ``commit_async`` does."""
        commit = remote.remote.commit_offsets
        commits = [
            gevent.spawn(commit, "g", {("t", 0): CommittedOffset(offset)}, member_id="m")
            for offset in offsets
        ]
        gevent.joinall(commits, raise_error=True)
        return [commit.value["t", 0] for commit in commits]

    def later() -> list[object]:
        first = gevent.spawn(commit_all, 1)
        with gevent.Timeout(100):
            while not trio.brokers[0].counts[COMMIT]:
                gevent.sleep(0.001)
        gevent.sleep(limits.RETRY_BACKOFF / 2)
        remote.remote.cluster.coordinator(0, "g")  # another client has found the new one
        second = commit_all(2, 3)
        return [*first.get(), *second]

    assert remote.hub.run(later) == [None, None, None]
    assert stored == [1, 2, 3]
    assert len(remote.remote._groups._committing) == 0


def test_commits_of_members_that_know_no_epochs_are_of_versions_without_them(fake, remote_to):
    topic_class = OffsetCommitResponse.OffsetCommitResponseTopic
    partition = topic_class.OffsetCommitResponsePartition(partition_index=0, error_code=0)
    versions: list[int] = []

    def committed(request):
        versions.append(version_of(request))
        return OffsetCommitResponse(
            throttle_time_ms=0, topics=[topic_class(name="t", partitions=[partition])]
        )

    fake.brokers[0].answers[COMMIT] = committed
    for knows_epochs in (True, False):
        remote_to(fake.addresses).commit_offsets(
            "g", {("t", 0): CommittedOffset(1)}, knows_epochs=knows_epochs
        )
    assert versions == [9, 8]


def test_a_sync_hands_the_assignments_in_and_brings_the_own_one(fake, remote_to):
    def synced(request):
        own = {one.member_id: bytes(one.assignment) for one in request.assignments}[request.member_id]
        return SyncGroupResponse(
            throttle_time_ms=0,
            error_code=0,
            protocol_type=request.protocol_type,
            protocol_name=request.protocol_name,
            assignment=own,
        )

    fake.brokers[0].answers[SYNC] = synced
    outcome = remote_to(fake.addresses).sync_group(
        "g", 3, "m", protocol_type="consumer", protocol="range", assignments={"m": b"mine", "n": b"other"}
    )
    assert (outcome.error, outcome.assignment, outcome.protocol) == (None, b"mine", "range")


@pytest.mark.parametrize("known_member", [True, False])
def test_a_member_that_needs_no_id_first_joins_with_a_version_that_admits_it_at_once(
    fake, remote_to, known_member
):
    fake.brokers[0].answers[JOIN] = joined
    request = JOIN_REQUEST._replace(require_known_member=known_member)
    remote_to(fake.addresses).join_group("g", request)
    assert (fake.brokers[0].requests[-1].API_VERSION > 3) is known_member


def test_a_join_that_is_refused_has_the_coordinators_error(fake, remote_to):
    fake.brokers[0].answers[JOIN] = lambda request: JoinGroupResponse(
        throttle_time_ms=0,
        error_code=GroupAuthorizationFailedError.errno,
        generation_id=-1,
        protocol_type=None,
        protocol_name=None,
        leader="",
        skip_assignment=False,
        member_id="",
        members=[],
    )
    outcome = remote_to(fake.addresses).join_group("g", JOIN_REQUEST)
    assert outcome.error is GroupAuthorizationFailedError


def left(*codes):
    member = LeaveGroupResponse.MemberResponse

    def answer(request):
        members = [
            member(member_id=one.member_id, group_instance_id=one.group_instance_id, error_code=code)
            for one, code in zip(request.members, codes, strict=True)
        ]
        return LeaveGroupResponse(throttle_time_ms=0, error_code=0, members=members[::-1])

    return answer


def test_each_member_that_leaves_has_its_own_outcome_whatever_their_order(fake, remote_to):
    fake.brokers[0].answers[LEAVE] = left(0, UnknownMemberIdError.errno)
    leaving = [LeavingMember("a"), LeavingMember("b", "static")]
    assert remote_to(fake.addresses).leave_group("g", leaving) == [None, UnknownMemberIdError]


def committed(*partitions):
    topic = OffsetFetchResponse.OffsetFetchResponseTopic

    def answer(request):
        found = [
            topic.OffsetFetchResponsePartition(
                partition_index=number,
                committed_offset=offset,
                committed_leader_epoch=4,
                metadata="m",
                error_code=code,
            )
            for number, offset, code in partitions
        ]
        topics = [topic(name="t", partitions=found)]
        return OffsetFetchResponse(throttle_time_ms=0, topics=topics, error_code=0)

    return answer


def test_offsets_that_were_never_committed_and_partitions_that_are_gone_are_left_out(fake, remote_to):
    gone = UnknownTopicOrPartitionError.errno
    fake.brokers[0].answers[OFFSET_FETCH] = committed((0, 7, 0), (1, -1, 0), (2, -1, gone))
    found = remote_to(fake.addresses).fetch_offsets("g", [("t", number) for number in range(3)])
    assert found == {("t", 0): CommittedOffset(7, "m", 4)}


def test_another_error_of_a_partition_is_raised_with_its_name(fake, remote_to):
    fake.brokers[0].answers[OFFSET_FETCH] = committed((0, -1, GroupAuthorizationFailedError.errno))
    with pytest.raises(GroupAuthorizationFailedError, match="'g' in 't' 0"):
        remote_to(fake.addresses).fetch_offsets("g", [("t", 0)])


def test_groups_of_all_brokers_are_listed_and_chosen_by_their_state(trio, remote_to):
    def listed(name, state):
        one = ListGroupsResponse.ListedGroup(
            group_id=name, protocol_type="consumer", group_state=state, group_type=""
        )
        return lambda request: ListGroupsResponse(throttle_time_ms=0, error_code=0, groups=[one])

    for broker, group in zip(trio.brokers, [("a", "Stable"), ("b", "Empty"), ("c", "Stable")], strict=True):
        broker.answers[LIST] = listed(*group)
    remote = remote_to(trio.addresses)
    assert sorted(one.group for one in remote.list_groups()) == ["a", "b", "c"]
    assert remote.list_groups(["stable"]) == [
        ListedGroup("a", "consumer", "Stable"),
        ListedGroup("c", "consumer", "Stable"),
    ]


def test_a_broker_that_lists_no_groups_is_an_error_with_its_id(fake, remote_to):
    fake.brokers[0].answers[LIST] = lambda request: ListGroupsResponse(
        throttle_time_ms=0, error_code=CoordinatorNotAvailableError.errno, groups=[]
    )
    with pytest.raises(CoordinatorNotAvailableError, match="broker 0"):
        remote_to(fake.addresses).list_groups()


def test_each_group_is_deleted_by_its_coordinator_and_has_its_own_outcome(trio, remote_to):
    result = DeleteGroupsResponse.DeletableGroupResult
    codes = {"a": 0, "b": NonEmptyGroupError.errno}

    def deleted(request):
        results = [result(group_id=one, error_code=codes[one]) for one in request.groups_names]
        return DeleteGroupsResponse(throttle_time_ms=0, results=results)

    def moved(request):
        trio.coordinator = 1
        results = [result(group_id=one, error_code=NotCoordinatorError.errno) for one in request.groups_names]
        return DeleteGroupsResponse(throttle_time_ms=0, results=results)

    trio.brokers[0].answers[DELETE] = moved
    trio.brokers[1].answers[DELETE] = deleted
    assert remote_to(trio.addresses).delete_groups(["a", "b"]) == {"a": None, "b": NonEmptyGroupError}


def test_a_group_that_a_coordinator_does_not_describe_is_not_available(fake, remote_to):
    fake.brokers[0].answers[DESCRIBE] = lambda request: DescribeGroupsResponse(throttle_time_ms=0, groups=[])
    described = remote_to(fake.addresses).describe_groups(["g"])
    assert described["g"].error is CoordinatorNotAvailableError


def test_a_described_group_has_its_error(fake, remote_to):
    group = DescribeGroupsResponse.DescribedGroup(
        error_code=GroupIdNotFoundError.errno,
        group_id="g",
        group_state="Dead",
        protocol_type="",
        protocol_data="",
        members=[],
    )
    fake.brokers[0].answers[DESCRIBE] = lambda request: DescribeGroupsResponse(
        throttle_time_ms=0, groups=[group]
    )
    described = remote_to(fake.addresses).describe_groups(["g"])["g"]
    assert (described.error, described.state, described.members) == (GroupIdNotFoundError, "Dead", [])
