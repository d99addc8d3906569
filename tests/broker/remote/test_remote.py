"""The whole interface over TCP, against a broker that listens."""

from __future__ import annotations

import threading
import time

import pytest
from broker.clients import Client, errors_of
from kafka.errors import (
    BrokerNotAvailableError,
    CorruptRecordError,
    FencedLeaderEpochError,
    IllegalGenerationError,
    InvalidConfigurationError,
    InvalidTopicError,
    MemberIdRequiredError,
    OffsetOutOfRangeError,
    TopicAlreadyExistsError,
    TransactionalIdNotFoundError,
    UnknownLeaderEpochError,
    UnknownMemberIdError,
    UnknownTopicOrPartitionError,
)
from kafka.protocol.admin import DescribeClusterRequest
from kafka.protocol.metadata import ApiVersionsRequest, MetadataRequest

from dafka.broker import connect
from dafka.broker.interface.admin import ConfigChange, ConfigOperation, Resource, ResourceType
from dafka.broker.interface.broker import (
    EARLIEST,
    LATEST,
    CommittedOffset,
    EpochEnd,
    FetchFrom,
    JoinRequest,
    LeavingMember,
    TopicSpec,
)
from dafka.protocol.batch_reader import decode_batch
from dafka.protocol.batch_writer import encode_batch

MEGABYTE = 1024 * 1024
JOIN = JoinRequest(
    "", 10.0, 10.0, "consumer", [("range", b"meta")], client_id="me", require_known_member=True
)


def batch(*values: bytes) -> bytes:
    return encode_batch([(1000, None, value, ()) for value in values])


def values(remote, topic, number=0, offset=0):
    wanted = {(topic, number): FetchFrom(offset, MEGABYTE)}
    found = remote.fetch(wanted, max_wait=5.0, min_bytes=1, max_bytes=MEGABYTE)[topic, number]
    assert found.error is None
    return [value for one in found.batches for value in decode_batch(one).values]


@pytest.fixture
def topic(remote):
    assert errors_of(remote.create_topics({"topic": TopicSpec(2)})) == {"topic": None}
    return "topic"


def test_metadata_is_the_brokers_own(remote, listening, topic):
    there = connect(listening.bootstrap_servers, 0).call("metadata", None)
    here = remote.metadata(None)
    assert here._replace(topics={}) == there._replace(topics={})
    assert here.topics[topic].topic_id == there.topics[topic].topic_id
    assert [one.number for one in here.topics[topic].partitions] == [0, 1]
    assert remote.metadata(["nowhere"]).topics["nowhere"].error is UnknownTopicOrPartitionError
    assert remote.metadata(["not legal"]).topics["not legal"].error is InvalidTopicError


def test_a_topic_may_be_created_by_asking_for_it(remote):
    assert remote.metadata(["new"], create=False).topics["new"].error is UnknownTopicOrPartitionError
    assert remote.metadata(["new"], create=True).topics["new"].error is None


def test_topics_are_created_extended_and_deleted(remote, topic):
    refused = remote.create_topics({topic: TopicSpec()})[topic]
    assert refused.error is TopicAlreadyExistsError
    assert topic in refused.detail
    assert errors_of(remote.create_topics({"only": TopicSpec()}, validate_only=True)) == {"only": None}
    assert errors_of(remote.create_partitions({topic: 3})) == {topic: None}
    assert len(remote.metadata([topic]).topics[topic].partitions) == 3
    outcome = errors_of(remote.delete_topics([topic, "only"]))
    assert outcome == {topic: None, "only": UnknownTopicOrPartitionError}


def test_records_come_back_as_they_were_sent(remote, topic):
    outcome = remote.produce({(topic, 0): [batch(b"a", b"b"), batch(b"c")], (topic, 1): [batch(b"d")]})
    assert (outcome[topic, 0].error, outcome[topic, 0].base_offset) == (None, 0)
    assert list(outcome[topic, 0].base_offsets) == [0, 2]
    assert values(remote, topic) == [b"a", b"b", b"c"]
    assert values(remote, topic, 1) == [b"d"]
    assert values(remote, topic, 0, 2) == [b"c"]


def test_errors_of_partitions_are_the_interfaces(remote, topic):
    damaged = batch(b"a")[:-1] + b"?"
    outcome = remote.produce({(topic, 0): [damaged], (topic, 9): [batch(b"a")]})
    assert outcome[topic, 0].error is CorruptRecordError
    assert outcome[topic, 9].error is UnknownTopicOrPartitionError
    wanted = {(topic, 0): FetchFrom(5, MEGABYTE)}
    found = remote.fetch(wanted, max_wait=5.0, min_bytes=1, max_bytes=MEGABYTE)
    assert found[topic, 0].error is OffsetOutOfRangeError


def test_a_fetch_waits_for_records(remote, topic):
    found = []
    wanted = {(topic, number): FetchFrom(0, MEGABYTE) for number in range(2)}
    reading = threading.Thread(
        target=lambda: found.append(remote.fetch(wanted, max_wait=20.0, min_bytes=1, max_bytes=MEGABYTE))
    )
    started = time.monotonic()
    reading.start()
    time.sleep(0.1)
    remote.produce({(topic, 1): [batch(b"at last")]})
    reading.join(20)
    assert set(found[0]) == {(topic, 1)}
    assert time.monotonic() - started < 15


def test_offsets_are_listed(remote, topic):
    remote.produce({(topic, 0): [batch(b"a", b"b")]})
    assert remote.list_offsets({(topic, 0): LATEST})[topic, 0].offset == 2
    assert remote.list_offsets({(topic, 0): EARLIEST})[topic, 0].offset == 0
    assert remote.list_offsets({(topic, 0): 1000})[topic, 0][1:] == (0, 1000, 0)
    assert remote.list_offsets({(topic, 0): 1001})[topic, 0][1:] == (-1, -1, -1)
    assert remote.list_offsets({("no", 0): LATEST})["no", 0].error is UnknownTopicOrPartitionError


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


def test_a_group_without_members_takes_offsets(remote, topic):
    assert remote.commit_offsets("free", {(topic, 0): CommittedOffset(3)}) == {(topic, 0): None}
    assert remote.fetch_offsets("free", require_stable=True)[topic, 0].offset == 3


def test_configuration_is_described_and_changed(remote, topic):
    resource = Resource(ResourceType.TOPIC, topic)
    change = ConfigChange("retention.ms", ConfigOperation.SET, "100000")
    assert remote.alter_configs({resource: [change]})[resource].error is None
    (entry,) = remote.describe_configs({resource: ["retention.ms"]})[resource].entries
    assert (entry.name, entry.value) == ("retention.ms", "100000")
    assert remote.alter_configs({resource: []}, replace=True)[resource].error is None
    (entry,) = remote.describe_configs({resource: ["retention.ms"]})[resource].entries
    assert entry.value != "100000"
    wrong = ConfigChange("retention.ms", ConfigOperation.SET, "soon")
    outcome = remote.alter_configs({resource: [wrong]})[resource]
    assert outcome.error is InvalidConfigurationError
    assert "soon" in outcome.detail
    broker = Resource(ResourceType.BROKER, str(remote.metadata(()).controller_id))
    assert remote.describe_configs({broker: None})[broker].error is None


def test_records_are_deleted_and_folders_described(remote, topic):
    remote.produce({(topic, 0): [batch(b"a", b"b", b"c")]})
    assert remote.delete_records({(topic, 0): 2})[topic, 0] == (None, 2)
    assert remote.delete_records({(topic, 0): 9})[topic, 0].error is OffsetOutOfRangeError
    (directory,) = remote.log_directories([topic])
    assert set(directory.sizes) == {(topic, 0), (topic, 1)}


def test_a_transaction_is_committed_with_offsets(remote, topic):
    anonymous = remote.init_producer_id(None, 60.0)
    assert anonymous.error is None and anonymous.producer_id >= 0
    me = remote.init_producer_id("tx", 60.0)
    who = "tx", me.producer_id, me.epoch
    assert remote.add_partitions_to_transaction(*who, [(topic, 0)]) == {(topic, 0): None}
    described = remote.describe_transactions(["tx", "none"])
    assert (described["tx"].state, described["tx"].partitions) == ("Ongoing", [(topic, 0)])
    assert described["none"].error is TransactionalIdNotFoundError
    assert [one.transactional_id for one in remote.list_transactions()] == ["tx"]
    assert remote.add_offsets_to_transaction(*who, "g") is None
    offsets = {(topic, 1): CommittedOffset(4)}
    assert remote.commit_transaction_offsets(*who, "g", offsets) == {(topic, 1): None}
    assert remote.end_transaction(*who, True) is None
    assert remote.fetch_offsets("g")[topic, 1].offset == 4


def test_any_request_can_be_sent_as_it_is(remote):
    response = remote.send(DescribeClusterRequest())
    assert response.cluster_id == remote.metadata(()).cluster_id
    versions = {one.api_key for one in remote.send(ApiVersionsRequest(version=3)).api_keys}
    assert {DescribeClusterRequest.API_KEY, MetadataRequest.API_KEY} < versions
    node = response.brokers[0].broker_id
    assert remote.send(MetadataRequest(topics=[]), node).controller_id == node
    with pytest.raises(BrokerNotAvailableError, match="77"):
        remote.send(MetadataRequest(topics=[]), 77)


def test_a_broker_that_restarts_is_found_again(remote, listening, topic):
    listening.stop()
    listening.start()
    deadline = time.monotonic() + 20
    while remote.produce({("again", 0): [batch(b"a")]})["again", 0].error is not None:
        assert time.monotonic() < deadline
        try:
            remote.metadata(["again"], create=True)
        except Exception:
            time.sleep(0.1)
    assert values(remote, "again") == [b"a"]


def test_closing_ends_connections_and_the_next_call_opens_new_ones(remote, topic):
    remote.produce({(topic, 0): [batch(b"a")]})
    remote.close()
    assert values(remote, topic) == [b"a"]


def test_leader_epochs_and_what_was_lost(listening, remote):
    core = Client(listening).core
    assert errors_of(remote.create_topics({"t": TopicSpec(1)})) == {"t": None}
    place = ("t", 0)
    for epoch in (0, 1, 1):
        core._epochs.current = epoch  # the second one as if what came behind the first had been lost
        assert remote.produce({place: [batch(b"a")]})[place].error is None
    assert remote.metadata(["t"]).topics["t"].partitions[0].leader_epoch == 1
    assert remote.list_offsets({place: EARLIEST})[place].leader_epoch == 0
    assert (
        remote.list_offsets({place: LATEST}, leader_epochs={place: 0})[place].error is FencedLeaderEpochError
    )
    assert remote.epoch_ends({place: 0}) == {place: EpochEnd(None, 0, 1)}
    assert remote.epoch_ends({place: 0}, leader_epochs={place: 2})[place].error is UnknownLeaderEpochError
    limits = {"max_wait": 10, "min_bytes": 1, "max_bytes": 1000}
    lost = remote.fetch({place: FetchFrom(3, 1000, last_epoch=0)}, **limits)[place]
    assert (lost.error, lost.diverging, lost.batches) == (None, (0, 1), [])
    assert len(remote.fetch({place: FetchFrom(1, 1000, 1, 1)}, **limits)[place].batches) == 2
