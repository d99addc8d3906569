"""The whole interface over TCP, against a broker that listens."""

from __future__ import annotations

import time

import pytest
from broker.clients import batch
from kafka.errors import (
    BrokerNotAvailableError,
    IllegalGenerationError,
    MemberIdRequiredError,
    UnknownMemberIdError,
)
from kafka.protocol.admin import DescribeClusterRequest
from kafka.protocol.metadata import ApiVersionsRequest, MetadataRequest

from dafka.broker.interface.broker import (
    CommittedOffset,
    JoinRequest,
    LeavingMember,
)

MEGABYTE = 1024 * 1024
JOIN = JoinRequest(
    "", 10.0, 10.0, "consumer", [("range", b"meta")], client_id="me", require_known_member=True
)


def test_a_group_from_joining_to_leaving(remote, topic):
    first = remote.join_group("g", JOIN)
    assert first.error is MemberIdRequiredError
    joined = remote.join_group("g", JOIN._replace(member_id=first.member_id))
    assert (joined.error, joined.leader, joined.protocol) == (None, joined.member_id, "range")
    assert [one.metadata for one in joined.members] == [b"meta"]
    me = joined.generation, joined.member_id
    synced = remote.sync_group(
        "g", *me, protocol_type="consumer", protocol="range", assignments={joined.member_id: b"all"}
    )
    assert (synced.error, synced.assignment) == (None, b"all")
    assert remote.heartbeat("g", *me) is None
    assert remote.heartbeat("g", 99, joined.member_id) is IllegalGenerationError

    committed = {(topic, 0): CommittedOffset(7, "note"), (topic, 1): CommittedOffset(1)}
    outcome = remote.commit_offsets("g", committed, generation=me[0], member_id=me[1])
    assert outcome == dict.fromkeys(committed)
    assert remote.fetch_offsets("g")[topic, 0][:2] == (7, "note")
    assert set(remote.fetch_offsets("g", [(topic, 1), ("other", 0)])) == {(topic, 1)}

    described = remote.describe_groups(["g", "none"])
    assert (described["g"].state, described["none"].state) == ("Stable", "Dead")
    (member,) = described["g"].members
    assert (member.client_id, member.metadata, member.assignment) == ("me", b"meta", b"all")
    assert [one.group for one in remote.list_groups(["stable"])] == ["g"]
    assert remote.list_groups(["empty"]) == []

    leaving = [LeavingMember(joined.member_id), LeavingMember("nobody")]
    assert remote.leave_group("g", leaving) == [None, UnknownMemberIdError]
    assert remote.delete_offsets("g", [(topic, 0)]) == {(topic, 0): None}
    assert remote.delete_groups(["g"]) == {"g": None}


def test_any_request_can_be_sent_as_it_is(remote):
    response = remote.send(DescribeClusterRequest())
    assert response.cluster_id == remote.metadata(()).cluster_id
    versions = {
        one.api_key
        for one in remote.send(
            ApiVersionsRequest(version=3, client_software_name="a", client_software_version="1")
        ).api_keys
    }
    assert {DescribeClusterRequest.API_KEY, MetadataRequest.API_KEY} < versions
    node = response.brokers[0].broker_id
    assert remote.send(MetadataRequest(topics=[]), node).controller_id == node
    with pytest.raises(BrokerNotAvailableError, match="77"):
        remote.send(MetadataRequest(topics=[]), 77)


def test_a_broker_that_restarts_is_found_again(remote, listening, topic):
    listening.stop()
    listening.start()
    deadline = time.monotonic() + 100
    while remote.produce({("again", 0): [batch(b"a")]})["again", 0].error is not None:
        assert time.monotonic() < deadline
        try:
            remote.metadata(["again"], create=True)
        except Exception:
            time.sleep(0.1)
    assert remote.values("again") == [b"a"]


def test_closing_ends_connections_and_the_next_call_opens_new_ones(remote, topic):
    remote.produce({(topic, 0): [batch(b"a")]})
    remote.close()
    assert remote.values(topic) == [b"a"]


def test_calls_that_need_the_brokers_own_process_are_refused_with_the_reason(remote):
    with pytest.raises(NotImplementedError, match="octet positions are looked up in the broker's process"):
        _ = remote.remote.positions
    with pytest.raises(NotImplementedError, match="over TCP a fetch waits"):
        remote.remote.watch()


def test_an_embedded_broker_is_sent_no_requests(listening):
    with pytest.raises(NotImplementedError, match="methods instead of requests"):
        listening._running.core.send(None)
