"""Groups and transactions: coordinators that move, load, or cannot be reached."""

from __future__ import annotations

import time

import gevent
import pytest
from broker.remote.fake_broker import CLOSE, HANG, after, once
from kafka.errors import (
    CoordinatorLoadInProgressError,
    CoordinatorNotAvailableError,
    IllegalGenerationError,
    InvalidTxnStateError,
    KafkaError,
    NotCoordinatorError,
    RebalanceInProgressError,
)
from kafka.protocol.consumer import (
    HeartbeatResponse,
    JoinGroupResponse,
    OffsetCommitResponse,
    SyncGroupResponse,
)
from kafka.protocol.metadata import FindCoordinatorResponse
from kafka.protocol.producer import EndTxnResponse

from dafka.broker.interface.broker import CommittedOffset, JoinRequest
from dafka.broker.remote import limits

COMMIT, FIND_COORDINATOR, JOIN, HEARTBEAT, SYNC, END_TRANSACTION = 8, 10, 11, 12, 14, 26
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


def test_a_coordinator_that_has_moved_is_looked_for_again(trio, remote_to):
    def moved(request):
        trio.coordinator = 2
        return beaten(NotCoordinatorError)(request)

    trio.brokers[0].answers[HEARTBEAT] = moved
    trio.brokers[2].answers[HEARTBEAT] = beaten()
    remote = remote_to(trio.addresses)
    assert remote.heartbeat("g", 1, "m") is None
    assert remote.heartbeat("g", 1, "m") is None
    assert [broker.counts[HEARTBEAT] for broker in trio.brokers] == [1, 0, 2]


def test_a_coordinator_that_is_down_is_looked_for_again(trio, remote_to):
    trio.brokers[0].answers[HEARTBEAT] = trio.brokers[1].answers[HEARTBEAT] = beaten()
    remote = remote_to(trio.addresses)
    assert remote.heartbeat("g", 1, "m") is None
    trio.coordinator = 1
    trio.brokers[0].stop()
    assert remote.heartbeat("g", 1, "m") is None


def test_a_coordinator_that_is_loading_is_waited_for(fake, remote_to):
    fake.brokers[0].answers[HEARTBEAT] = once(beaten(CoordinatorLoadInProgressError), beaten())
    assert remote_to(fake.addresses).heartbeat("g", 1, "m") is None
    assert fake.brokers[0].counts[FIND_COORDINATOR] == 1


def test_what_lasts_is_told(fake, remote_to):
    fake.brokers[0].answers[HEARTBEAT] = beaten(NotCoordinatorError)
    assert remote_to(fake.addresses).heartbeat("g", 1, "m") is NotCoordinatorError
    assert fake.brokers[0].counts[HEARTBEAT] == 1 + limits.RETRIES


def test_there_is_none(fake, remote_to):
    fake.brokers[0].answers[FIND_COORDINATOR] = lambda request: FindCoordinatorResponse(
        throttle_time_ms=0, error_code=15, error_message=None, node_id=-1, host="", port=-1
    )
    remote = remote_to(fake.addresses)
    assert remote.heartbeat("g", 1, "m") is CoordinatorNotAvailableError
    assert remote.join_group("g", JOIN_REQUEST).error is CoordinatorNotAvailableError
    with pytest.raises(KafkaError):
        remote.fetch_offsets("g")


def test_nobody_can_be_reached(fake, remote_to):
    fake.brokers[0].stop()
    remote = remote_to(fake.addresses)
    assert remote.heartbeat("g", 1, "m") is CoordinatorNotAvailableError
    assert remote.leave_group("g", []) == []
    offsets = {("t", 0): CommittedOffset(1)}
    assert remote.commit_offsets("g", offsets) == {("t", 0): CoordinatorNotAvailableError}


def test_a_coordinator_that_hangs_is_given_up_after_the_request_timeout(fake, remote_to):
    fake.brokers[0].answers[HEARTBEAT] = lambda request: HANG
    started = time.monotonic()
    assert (
        remote_to(fake.addresses, request_timeout=0.3).heartbeat("g", 1, "m") is CoordinatorNotAvailableError
    )
    assert 0.3 <= time.monotonic() - started < 5


def test_a_join_may_take_its_rebalance_timeout_longer_than_other_requests(fake, remote_to):
    fake.brokers[0].answers[JOIN] = after(0.6, joined)
    remote = remote_to(fake.addresses, request_timeout=0.3)
    assert remote.join_group("g", JOIN_REQUEST).generation == 3


def test_members_that_join_do_not_hold_up_other_requests(fake, remote_to):
    broker = fake.brokers[0]
    broker.answers[JOIN] = lambda request: HANG
    broker.answers[HEARTBEAT] = beaten()
    remote = remote_to(fake.addresses, request_timeout=5.0)

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
    outcome = remote_to(fake.addresses).heartbeat("g", 1, "m", max_wait=30.0)
    assert outcome is RebalanceInProgressError
    assert time.monotonic() - started < 10


def test_a_heartbeat_that_may_wait_does_so_while_all_is_well(fake, remote_to):
    fake.brokers[0].answers[HEARTBEAT] = beaten()
    started = time.monotonic()
    assert remote_to(fake.addresses).heartbeat("g", 1, "m", max_wait=0.2) is None
    assert time.monotonic() - started >= 0.2


def test_errors_of_partitions_make_the_coordinator_be_looked_for(trio, remote_to):
    topic_class = OffsetCommitResponse.OffsetCommitResponseTopic

    def committed(code):
        partition = topic_class.OffsetCommitResponsePartition(partition_index=0, error_code=code)
        topics = [topic_class(name="t", partitions=[partition])]
        return lambda request: OffsetCommitResponse(throttle_time_ms=0, topics=topics)

    def moved(request):
        trio.coordinator = 1
        return committed(NotCoordinatorError.errno)(request)

    trio.brokers[0].answers[COMMIT] = moved
    trio.brokers[1].answers[COMMIT] = committed(IllegalGenerationError.errno)
    offsets = {("t", 0): CommittedOffset(1)}
    outcome = remote_to(trio.addresses).commit_offsets("g", offsets, generation=1, member_id="m")
    assert outcome == {("t", 0): IllegalGenerationError}


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
        with gevent.Timeout(10):
            while not trio.brokers[0].counts[COMMIT]:
                gevent.sleep(0.001)
        gevent.sleep(limits.RETRY_BACKOFF / 2)
        remote.remote.cluster.coordinator(0, "g")  # somebody has found the new one
        second = commit_all(2, 3)
        return [*first.get(), *second]

    assert remote.hub.run(later) == [None, None, None]
    assert stored == [1, 2, 3]
    assert len(remote.remote._groups._committing) == 0


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


def test_the_end_of_a_transaction_is_asked_for_again_when_the_connection_was_lost(fake, remote_to):
    def ended(code):
        return lambda request: EndTxnResponse(throttle_time_ms=0, error_code=code)

    fake.brokers[0].answers[END_TRANSACTION] = once(lambda request: CLOSE, ended(0))
    remote = remote_to(fake.addresses)
    assert remote.end_transaction("tx", 1, 0, True) is None
    fake.brokers[0].answers[END_TRANSACTION] = ended(InvalidTxnStateError.errno)
    assert remote.end_transaction("tx", 1, 0, True) is InvalidTxnStateError
