"""Coordinators of groups and transactions that move, load, or cannot be reached."""

from __future__ import annotations

import time

import pytest
from broker.remote.fake_broker import CLOSE, HANG, once
from kafka.errors import (
    CoordinatorLoadInProgressError,
    CoordinatorNotAvailableError,
    IllegalGenerationError,
    IncompatibleBrokerVersion,
    InvalidTxnStateError,
    KafkaError,
    NotCoordinatorError,
)
from kafka.protocol.consumer import (
    HeartbeatResponse,
    JoinGroupResponse,
    OffsetCommitResponse,
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


def test_an_error_that_lasts_is_returned(fake, remote_to):
    fake.brokers[0].answers[HEARTBEAT] = beaten(NotCoordinatorError)
    assert remote_to(fake.addresses).heartbeat("g", 1, "m") is NotCoordinatorError
    assert fake.brokers[0].counts[HEARTBEAT] == 1 + limits.RETRIES


def test_a_cluster_without_a_coordinator_is_an_error(fake, remote_to):
    fake.brokers[0].answers[FIND_COORDINATOR] = lambda request: FindCoordinatorResponse(
        throttle_time_ms=0, error_code=15, error_message=None, node_id=-1, host="", port=-1
    )
    remote = remote_to(fake.addresses)
    assert remote.heartbeat("g", 1, "m") is CoordinatorNotAvailableError
    assert remote.join_group("g", JOIN_REQUEST).error is CoordinatorNotAvailableError
    with pytest.raises(KafkaError):
        remote.fetch_offsets("g")


@pytest.mark.parametrize(("kind", "key"), [("consumer", 69), ("share", 77), ("streams", 89)])
def test_a_cluster_too_old_for_a_kind_of_groups_is_an_error(fake, remote_to, kind, key):
    fake.brokers[0].versions = {
        one: versions for one, versions in fake.brokers[0].versions.items() if one != key
    }
    with pytest.raises(IncompatibleBrokerVersion):
        getattr(remote_to(fake.addresses), f"describe_{kind}_groups")(["g"])


def test_a_cluster_that_cannot_be_reached_is_an_error(fake, remote_to):
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
    assert 0.3 <= time.monotonic() - started < 30


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


def test_the_end_of_a_transaction_is_asked_for_again_when_the_connection_was_lost(fake, remote_to):
    def ended(code):
        return lambda request: EndTxnResponse(throttle_time_ms=0, error_code=code)

    fake.brokers[0].answers[END_TRANSACTION] = once(lambda request: CLOSE, ended(0))
    remote = remote_to(fake.addresses)
    assert remote.end_transaction("tx", 1, 0, True) is None
    fake.brokers[0].answers[END_TRANSACTION] = ended(InvalidTxnStateError.errno)
    assert remote.end_transaction("tx", 1, 0, True) is InvalidTxnStateError
