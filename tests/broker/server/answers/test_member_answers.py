"""Members of the newer groups are answered as by Apache Kafka, also where clients rarely come.

``scripts/odd_requests --members`` found these, which ``tests/clients/raw`` compares at random.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from broker.clients import Client, batch
from broker.server.client import WireClient
from broker.server.samples import streams_heartbeat
from broker.server.share_samples import share_fetch
from kafka.protocol.consumer import JoinGroupRequest, SyncGroupRequest
from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment, ConsumerProtocolSubscription

from dafka.broker.codec.messages.consumer_group import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupHeartbeatRequest,
)
from dafka.broker.codec.messages.share_group import (
    DescribeShareGroupOffsetsRequest,
    ShareAcknowledgeRequest,
    ShareGroupHeartbeatRequest,
)
from dafka.broker.interface.admin import ConfigChange, ConfigOperation, Resource, ResourceType

UNKNOWN_MEMBER, INVALID_REQUEST, NO_TOPIC_ID, NO_PARTITION = 25, 42, 100, 3


@pytest.fixture
def topic(client: Client) -> UUID:
    client.create("t", 4)
    found = client.call("metadata", ["t"]).topics["t"].topic_id
    assert isinstance(found, UUID)
    return found


def set_group(client: Client, group: str, name: str, value: str) -> None:
    change = ConfigChange(name, ConfigOperation.SET, value)
    outcomes = client.call("alter_configs", {Resource(ResourceType.GROUP, group): [change]})
    assert [one.error for one in outcomes.values()] == [None]


# -- consumer groups -------------------------------------------------------------------------------


def beat(wire: WireClient, member: str, epoch: int = 0, **fields: Any) -> Any:
    full = {
        "group_id": "g",
        "member_id": member,
        "member_epoch": epoch,
        "instance_id": None,
        "rack_id": None,
        "rebalance_timeout_ms": 10_000 if not epoch else -1,
        "subscribed_topic_names": ["t"] if not epoch else None,
        "subscribed_topic_regex": None,
        "server_assignor": None,
        "topic_partitions": [] if not epoch else None,
    }
    return wire.ask(ConsumerGroupHeartbeatRequest(**{**full, **fields}), 1)


def described(wire: WireClient, group: str = "g") -> Any:
    request = ConsumerGroupDescribeRequest(group_ids=[group], include_authorized_operations=False)
    return wire.ask(request, 1).groups[0]


def join(wire: WireClient, member: str = "", instance: str | None = None, version: int = 1) -> Any:
    subscription = ConsumerProtocolSubscription(
        version=version, topics=["t"], user_data=b"", owned_partitions=[]
    )
    protocol = JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=bytes(subscription.encode()))
    request = JoinGroupRequest(
        group_id="g",
        member_id=member,
        group_instance_id=instance,
        session_timeout_ms=45_000,
        rebalance_timeout_ms=60_000,
        protocol_type="consumer",
        protocols=[protocol],
        reason="",
    )
    return wire.ask(request, 9)


def test_partitions_of_a_member_that_left_come_with_the_next_heartbeat(wire: WireClient, topic: UUID) -> None:
    epoch = beat(wire, "a").member_epoch
    beat(wire, "b")
    beat(wire, "b", -1)
    group = described(wire)
    assert group.group_state == "Assigning" and group.assignment_epoch < group.group_epoch
    answer = beat(wire, "a", epoch)
    assert described(wire).group_state == "Stable" and answer.member_epoch == group.group_epoch


def test_a_member_has_what_it_is_still_to_give_up(wire: WireClient, topic: UUID) -> None:
    epoch = beat(wire, "a").member_epoch
    beat(wire, "b")
    told = beat(wire, "a", epoch).assignment.topic_partitions[0]
    assert len(told.partitions) == 2
    member = next(one for one in described(wire).members if one.member_id == "a")
    assert member.assignment.topic_partitions[0].partitions == [0, 1, 2, 3]
    assert member.target_assignment.topic_partitions[0].partitions == told.partitions
    assert member.subscribed_topic_regex == ""  # and not nothing at all


def test_a_member_that_leaves_wants_no_assignor_that_there_is_not(wire: WireClient, topic: UUID) -> None:
    beat(wire, "a")
    assert beat(wire, "a", -1, server_assignor="other").error_code == 112
    assert beat(wire, "a", -1).error_code == 0


def test_a_group_without_a_name_is_not_described(wire: WireClient) -> None:
    assert described(wire, "").error_code == 24


def test_a_classic_member_of_a_newer_group_is_the_static_one_or_nobody(wire: WireClient, topic: UUID) -> None:
    beat(wire, "a")
    assert join(wire, "nobody", "one").error_code == UNKNOWN_MEMBER
    assert join(wire, "", "one").error_code == 0


def test_a_classic_member_has_its_assignment_in_its_own_version(wire: WireClient, topic: UUID) -> None:
    epoch = beat(wire, "a").member_epoch
    for version in (0, 1):
        joined = join(wire, "", f"static-{version}", version)
        request = SyncGroupRequest(
            group_id="g",
            generation_id=joined.generation_id,
            member_id=joined.member_id,
            group_instance_id=f"static-{version}",
            protocol_type="consumer",
            protocol_name="range",
            assignments=[],
        )
        answer = wire.ask(request, 5)
        assert answer.error_code == 0
        assert ConsumerProtocolAssignment.decode(answer.assignment).version == version
    assert epoch


# -- groups of Kafka Streams -----------------------------------------------------------------------


def test_topics_that_are_copartitioned_are_those_of_the_subtopology(wire: WireClient, topic: UUID) -> None:
    for place, error in ((0, 0), (7, INVALID_REQUEST), (-1, INVALID_REQUEST)):
        request = streams_heartbeat("t", member_id=f"m{place}", group_id=f"s{place}")
        subtopology = request.topology.subtopologies[0]
        group = type(subtopology).CopartitionGroup
        subtopology.copartition_groups = [
            group(source_topics=[place], source_topic_regex=[], repartition_source_topics=[])
        ]
        assert wire.ask(request, 0).error_code == error


def test_a_member_of_a_streams_group_is_told_its_tasks_when_they_change(
    wire: WireClient, client: Client, topic: UUID
) -> None:
    set_group(client, "streams", "streams.initial.rebalance.delay.ms", "0")
    joined = wire.ask(streams_heartbeat("t"), 0)
    assert sorted(joined.active_tasks[0].partitions) == [0, 1, 2, 3]
    tasks = type(joined.active_tasks[0])
    some = [tasks(subtopology_id="0", partitions=[0])]
    later = {"member_epoch": joined.member_epoch, "topology": None, "rebalance_timeout_ms": -1}
    for active in (joined.active_tasks, some):
        again = wire.ask(streams_heartbeat("t", active_tasks=active, process_id="another", **later), 0)
        assert (again.error_code, again.active_tasks) == (0, None)
        later["member_epoch"] = again.member_epoch


# -- share groups ----------------------------------------------------------------------------------

MEMBER = "Ajc6Rlt8SJ2ZpD1hv1Jqdw"


def share_beat(wire: WireClient, epoch: int = 0, **fields: Any) -> Any:
    full = {
        "group_id": "share",
        "member_id": MEMBER,
        "member_epoch": epoch,
        "rack_id": None,
        "subscribed_topic_names": ["t"],
    }
    return wire.ask(ShareGroupHeartbeatRequest(**{**full, **fields}), 1)


def fetched(
    wire: WireClient, topic: UUID, epoch: int, *numbers: int, acknowledge: bool = False, **fields: Any
) -> Any:
    request = share_fetch(
        topic, epoch, **{"group_id": "share", "member_id": MEMBER, "max_wait_ms": 0, **fields}
    )
    (first,) = request.topics[0].partitions
    one = type(first)
    acks = one.AcknowledgementBatch(first_offset=0, last_offset=0, acknowledge_types=[1])
    request.topics[0].partitions = [
        one(partition_index=number, acknowledgement_batches=[acks] if acknowledge and number == 0 else [])
        for number in numbers
    ]
    return wire.ask(request, 2)


def answered(answer: Any) -> dict[int, tuple[int, int]]:
    """Whether each partition has records, and the error of what was acknowledged."""
    return {
        one.partition_index: (len(one.acquired_records), one.acknowledge_error_code)
        for found in answer.responses
        for one in found.partitions
    }


@pytest.fixture
def records(wire: WireClient, client: Client, topic: UUID) -> UUID:
    set_group(client, "share", "share.auto.offset.reset", "earliest")
    client.call("produce", {("t", 0): [batch(b"a", b"b")], ("t", 1): [batch(b"c")]})
    assert share_beat(wire).error_code == 0
    return topic


def test_a_heartbeat_that_is_refused_names_nobody(wire: WireClient, topic: UUID) -> None:
    answer = share_beat(wire, 7)
    assert (answer.error_code, answer.member_id) == (69, None)


def test_the_first_fetch_of_a_session_answers_every_partition_whose_state_is_known_if_it_wants_records(
    wire: WireClient, records: UUID
) -> None:
    assert answered(fetched(wire, records, 0, 0, 1, 2)) == {0: (1, 0)}
    assert answered(fetched(wire, records, 0, 0, 1, 2)) == {0: (0, 0), 1: (1, 0), 2: (0, 0)}
    assert answered(fetched(wire, records, 0, 0, 1, 2, max_bytes=0)) == {}
    assert answered(fetched(wire, records, 0, 0, 1, 2, max_records=0)) == {}


def test_a_new_partition_of_a_session_is_answered_once_also_without_records(
    wire: WireClient, records: UUID
) -> None:
    fetched(wire, records, 0, 0, 1)
    assert answered(fetched(wire, records, 1)) == {1: (1, 0)}
    assert answered(fetched(wire, records, 2, 2)) == {2: (0, 0)}
    assert answered(fetched(wire, records, 3, 2)) == {}


def test_partitions_have_their_turns_by_the_epoch_of_the_session(wire: WireClient, records: UUID) -> None:
    fetched(wire, records, 0, 0, 1, max_bytes=0)
    first = answered(fetched(wire, records, 1, max_records=1))
    assert [number for number, (acquired, _) in first.items() if acquired] == [1]


def test_partitions_that_are_named_without_an_acknowledgement_are_answered_beside_others(
    wire: WireClient, records: UUID
) -> None:
    fetched(wire, records, 0, 0, 1, 2)
    fetched(wire, records, 1)
    answer = fetched(wire, records, 2, 0, 2, 9, acknowledge=True)
    assert answered(answer) == {0: (0, 0), 2: (0, 0), 9: (0, NO_PARTITION)}

    asked = ShareAcknowledgeRequest.AcknowledgeTopic
    partition = asked.AcknowledgePartition

    def acknowledge(epoch: int, place: UUID, *offsets: int) -> dict[int, int]:
        types = partition.AcknowledgementBatch
        batches = [types(first_offset=one, last_offset=one, acknowledge_types=[1]) for one in offsets]
        parts = [
            partition(partition_index=0, acknowledgement_batches=batches),
            partition(partition_index=2, acknowledgement_batches=[]),
        ]
        request = ShareAcknowledgeRequest(
            group_id="share",
            member_id=MEMBER,
            share_session_epoch=epoch,
            is_renew_ack=False,
            topics=[asked(topic_id=place, partitions=parts)],
        )
        found = wire.ask(request, 2)
        assert found.error_code == 0
        return {one.partition_index: one.error_code for each in found.responses for one in each.partitions}

    assert acknowledge(3, records, 1) == {0: 0, 2: 0}
    assert acknowledge(4, records) == {}  # of nothing at all there is no answer
    assert acknowledge(5, UUID(int=99)) == {0: NO_TOPIC_ID, 2: NO_TOPIC_ID}


def test_a_fetch_that_renews_locks_wants_no_records(wire: WireClient, records: UUID) -> None:
    fetched(wire, records, 0, 0)
    assert fetched(wire, records, 1, is_renew_ack=True).error_code == INVALID_REQUEST
    none = dict.fromkeys(("max_wait_ms", "min_bytes", "max_bytes", "max_records"), 0)
    assert fetched(wire, records, 1, is_renew_ack=True, **none).error_code == 0


def test_offsets_of_all_that_members_read_are_described_before_anybody_has_read(
    wire: WireClient, topic: UUID
) -> None:
    share_beat(wire)
    group = DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestGroup
    request = DescribeShareGroupOffsetsRequest(groups=[group(group_id="share", topics=None)])
    (found,) = wire.ask(request, 1).groups
    assert [(one.partition_index, one.start_offset) for one in found.topics[0].partitions] == [
        (number, -1) for number in range(4)
    ]
