"""answer(): what becomes of a request, as an object of kafka-python, in process."""

from __future__ import annotations

import sys
from typing import Any
from uuid import uuid4

import pytest
from broker.clients import Client
from kafka.errors import (
    ElectionNotNeededError,
    FencedLeaderEpochError,
    GroupIdNotFoundError,
    InvalidPartitionsError,
    InvalidProducerEpochError,
    InvalidReplicationAssignmentError,
    InvalidReplicationFactorError,
    InvalidRequestError,
    ProducerFencedError,
    TopicAlreadyExistsError,
    UnknownLeaderEpochError,
    UnknownTopicIdError,
    UnknownTopicOrPartitionError,
    UnstableOffsetCommitError,
    UnsupportedEndpointTypeError,
    UnsupportedVersionError,
)
from kafka.protocol.admin import (
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DescribeClusterRequest,
    DescribeGroupsRequest,
    DescribeTopicPartitionsRequest,
    ElectLeadersRequest,
    ListConfigResourcesRequest,
    ListGroupsRequest,
    ListTransactionsRequest,
)
from kafka.protocol.consumer import (
    FetchRequest,
    ListOffsetsRequest,
    OffsetCommitRequest,
    OffsetDeleteRequest,
    OffsetFetchRequest,
    OffsetForLeaderEpochRequest,
)
from kafka.protocol.metadata import FindCoordinatorRequest, MetadataRequest
from kafka.protocol.producer import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    EndTxnRequest,
    InitProducerIdRequest,
)

from dafka.broker.interface.broker import CommittedOffset
from dafka.broker.server import answer

Topic = MetadataRequest.MetadataRequestTopic


def ask(client: Client, request: Any, version: int | None = None) -> Any:
    if version is not None:
        request.API_VERSION = version
    return client.connection.hub.run(answer, client.core, request)


def new_topic(name: str = "topic", partitions: int = 1, factor: int = 1, assignments: Any = ()) -> Any:
    assigned = CreateTopicsRequest.CreatableTopic.CreatableReplicaAssignment
    return CreateTopicsRequest.CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=factor,
        assignments=[assigned(partition_index=number, broker_ids=ids) for number, ids in assignments],
        configs=[],
    )


def create(client: Client, *topics: Any, validate_only: bool = False) -> list[Any]:
    return list(ask(client, CreateTopicsRequest(topics=list(topics), validate_only=validate_only)).topics)


def test_a_request_without_version_is_of_the_newest(client: Client):
    client.create("topic")
    topic_id = client.call("metadata", ["topic"]).topics["topic"].topic_id
    (topic,) = ask(client, MetadataRequest(topics=[Topic(name=None, topic_id=topic_id)])).topics
    assert (topic.name, topic.error_code) == ("topic", 0)


def test_what_is_not_answered_here_is_said(client: Client):
    with pytest.raises(UnsupportedVersionError, match="FetchRequest"):
        ask(client, FetchRequest())


# -- metadata --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("version", "allowed", "created"), [(4, True, True), (4, False, False), (1, False, True)]
)
def test_topics_are_created_where_the_request_allows_it(client: Client, version, allowed, created):
    """Versions before 4 had no word for it, and always did."""
    request = MetadataRequest(topics=[Topic(name="new")], allow_auto_topic_creation=allowed)
    (topic,) = ask(client, request, version).topics
    assert topic.error_code == (0 if created else UnknownTopicOrPartitionError.errno)
    assert ("new" in client.call("metadata", None).topics) is created


def test_an_unknown_id_has_an_error_of_its_own(client: Client):
    missing = uuid4()
    (topic,) = ask(client, MetadataRequest(topics=[Topic(name=None, topic_id=missing)]), 12).topics
    assert (topic.name, topic.topic_id, topic.error_code) == (None, missing, UnknownTopicIdError.errno)


def test_no_topics_are_not_all_topics(client: Client):
    client.create("topic")
    assert ask(client, MetadataRequest(topics=[]), 1).topics == []
    assert len(ask(client, MetadataRequest(topics=None), 1).topics) == 1
    assert len(ask(client, MetadataRequest(topics=[]), 0).topics) == 1  # version 0 has no null


def test_operations_are_told_to_who_asks_for_them(client: Client):
    client.create("topic")
    topics = [Topic(name="topic")]
    asked = MetadataRequest(topics=topics, include_topic_authorized_operations=True)
    assert ask(client, asked).topics[0].authorized_operations
    assert ask(client, MetadataRequest(topics=topics)).topics[0].authorized_operations is None


def test_partitions_are_described_page_by_page(client: Client):
    client.create("b", 3)
    client.create("a", 3)
    found: list[tuple[str, int]] = []
    cursor = None
    for _ in range(10):
        request = DescribeTopicPartitionsRequest(topics=[], response_partition_limit=2, cursor=cursor)
        response = ask(client, request)
        found += [(one.name, part.partition_index) for one in response.topics for part in one.partitions]
        cursor = response.next_cursor
        if cursor is None:
            break
    assert found == [(name, number) for name in "ab" for number in range(3)]


@pytest.mark.parametrize("version", [0, 3, 4, 6])
def test_this_broker_is_the_coordinator_of_everything(client: Client, version: int):
    response = ask(client, FindCoordinatorRequest(key="g", key_type=1, coordinator_keys=["g"]), version)
    found = response.coordinators[0] if version >= 4 else response
    assert (found.error_code, found.host, found.port) == (0, client.core.host, client.core.port)


def test_a_coordinator_of_share_groups_is_no_request_here(client: Client):
    (found,) = ask(client, FindCoordinatorRequest(key_type=2, coordinator_keys=["g"])).coordinators
    assert (found.error_code, found.node_id) == (InvalidRequestError.errno, -1)


def test_controllers_have_no_endpoint(client: Client):
    response = ask(client, DescribeClusterRequest(endpoint_type=2))
    assert response.error_code == UnsupportedEndpointTypeError.errno


# -- topics ----------------------------------------------------------------------------------------


def test_a_created_topic_is_told_with_its_configuration(client: Client):
    (created,) = create(client, new_topic(partitions=3, factor=-1))
    assert (created.error_code, created.num_partitions, created.replication_factor) == (0, 3, 1)
    assert created.topic_id == client.call("metadata", ["topic"]).topics["topic"].topic_id
    assert "cleanup.policy" in {config.name for config in created.configs}


@pytest.mark.parametrize(
    ("topic", "error"),
    [
        (new_topic(factor=2), InvalidReplicationFactorError),
        (new_topic(factor=0), InvalidReplicationFactorError),
        (new_topic(partitions=0), InvalidPartitionsError),
        (new_topic("there"), TopicAlreadyExistsError),
        (
            new_topic(partitions=-1, factor=-1, assignments=[(0, [0]), (2, [0])]),
            InvalidReplicationAssignmentError,
        ),
        (new_topic(partitions=-1, factor=-1, assignments=[(0, [5])]), InvalidReplicationAssignmentError),
        (new_topic(partitions=-1, factor=-1, assignments=[(0, [0, 1])]), InvalidReplicationAssignmentError),
        (new_topic(partitions=2, factor=-1, assignments=[(0, [0])]), InvalidRequestError),
    ],
)
@pytest.mark.parametrize("validate_only", [True, False])
def test_a_topic_that_cannot_be_is_refused_and_the_others_are_created(client, topic, error, validate_only):
    client.create("there")
    refused, other = create(client, topic, new_topic("other"), validate_only=validate_only)
    if refused.name == "other":
        refused, other = other, refused
    assert (refused.error_code, other.error_code) == (error.errno, 0)
    assert refused.error_message
    assert ("other" in client.call("metadata", None).topics) is not validate_only


def test_a_topic_named_twice_is_not_created(client: Client):
    (refused,) = create(client, new_topic(), new_topic())
    assert refused.error_code == InvalidRequestError.errno
    assert client.call("metadata", None).topics == {}


def test_assignments_say_how_many_partitions(client: Client):
    create(client, new_topic(partitions=-1, factor=-1, assignments=[(0, [0]), (1, [0])]))
    assert len(client.partitions("topic")) == 2


def test_topics_are_deleted_by_id(client: Client):
    client.create("topic")
    topic_id = client.call("metadata", ["topic"]).topics["topic"].topic_id
    state = DeleteTopicsRequest.DeleteTopicState
    request = DeleteTopicsRequest(topics=[state(topic_id=topic_id), state(topic_id=uuid4())])
    deleted, unknown = ask(client, request).responses
    assert (deleted.name, deleted.topic_id, deleted.error_code) == ("topic", topic_id, 0)
    assert (unknown.name, unknown.error_code) == (None, UnknownTopicIdError.errno)
    assert client.call("metadata", None).topics == {}


@pytest.mark.parametrize("validate_only", [True, False])
@pytest.mark.parametrize(
    ("name", "count", "assignments", "error"),
    [
        ("topic", 3, None, None),
        ("topic", 3, [[0]], None),
        ("topic", 2, None, InvalidPartitionsError),
        ("topic", 3, [[0], [0]], InvalidReplicationAssignmentError),
        ("topic", 3, [[1]], InvalidReplicationAssignmentError),
        ("missing", 3, None, UnknownTopicOrPartitionError),
    ],
)
def test_partitions_are_added(client: Client, name, count, assignments, error, validate_only):
    client.create("topic", 2)
    kind = CreatePartitionsRequest.CreatePartitionsTopic
    assigned = assignments and [kind.CreatePartitionsAssignment(broker_ids=ids) for ids in assignments]
    topics = [kind(name=name, count=count, assignments=assigned)]
    (result,) = ask(client, CreatePartitionsRequest(topics=topics, validate_only=validate_only)).results
    assert result.error_code == (error.errno if error else 0)
    assert len(client.partitions("topic")) == (2 if error or validate_only else 3)


def test_there_is_nothing_to_elect(client: Client):
    client.create("topic")
    topics = [ElectLeadersRequest.TopicPartitions(topic="topic", partitions=[0, 1])]
    (result,) = ask(client, ElectLeadersRequest(topic_partitions=topics)).replica_election_results
    assert [one.error_code for one in result.partition_result] == [
        ElectionNotNeededError.errno,
        UnknownTopicOrPartitionError.errno,
    ]


def test_resources_with_a_configuration_are_listed(client: Client):
    client.create("topic")
    found = ask(client, ListConfigResourcesRequest(resource_types=[])).config_resources
    assert [(one.resource_name, one.resource_type) for one in found] == [("topic", 2), ("0", 4)]


# -- offsets ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("timestamp", "offset"), [(-1, 3), (-2, 0), (-3, 2), (-4, 0), (-5, -1), (-6, -1), (2000, 1), (4000, -1)]
)
def test_offsets_by_timestamp(client: Client, timestamp: int, offset: int):
    client.create("topic")
    for time in (1000, 2000, 3000):
        client.produce("topic", b"x", timestamp=time)
    topic = ListOffsetsRequest.ListOffsetsTopic
    wanted = [topic.ListOffsetsPartition(partition_index=0, timestamp=timestamp)]
    (answered,) = ask(client, ListOffsetsRequest(topics=[topic(name="topic", partitions=wanted)])).topics
    assert (answered.partitions[0].error_code, answered.partitions[0].offset) == (0, offset)


@pytest.mark.parametrize(("timestamp", "since"), [(-3, 7), (-4, 8), (-5, 9), (-6, 11)])
def test_a_special_timestamp_has_a_version_that_it_came_with(client: Client, timestamp: int, since: int):
    client.create("topic")
    topic = ListOffsetsRequest.ListOffsetsTopic
    wanted = [topic.ListOffsetsPartition(partition_index=0, timestamp=timestamp)]
    codes = {}
    for version in range(1, 12):
        request = ListOffsetsRequest(topics=[topic(name="topic", partitions=wanted)])
        codes[version] = ask(client, request, version).topics[0].partitions[0].error_code
    assert codes == {v: 0 if v >= since else UnsupportedVersionError.errno for v in codes}


@pytest.mark.parametrize(
    ("current", "error"),
    [(-1, None), (0, FencedLeaderEpochError), (1, None), (2, UnknownLeaderEpochError)],
)
def test_an_epoch_ends_where_the_next_one_has_begun(client: Client, current: int, error):
    client.create("topic")
    client.produce("topic", b"a", b"b")
    client.core._epochs.current = 1
    client.produce("topic", b"c")
    topic = OffsetForLeaderEpochRequest.OffsetForLeaderTopic
    ends = []
    for epoch in (0, 1, 2):
        wanted = topic.OffsetForLeaderPartition(partition=0, current_leader_epoch=current, leader_epoch=epoch)
        request = OffsetForLeaderEpochRequest(topics=[topic(topic="topic", partitions=[wanted])])
        (end,) = ask(client, request).topics[0].partitions
        assert end.error_code == (error.errno if error else 0)
        ends.append((end.leader_epoch, end.end_offset))
    assert ends == ([(-1, -1)] * 3 if error else [(0, 2), (1, 3), (-1, -1)])


def test_metadata_and_listed_offsets_have_leader_epochs(client: Client):
    client.create("topic")
    client.produce("topic", b"a")
    client.core._epochs.current = 1
    client.produce("topic", b"b")
    metadata = ask(client, MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name="topic")]))
    assert metadata.topics[0].partitions[0].leader_epoch == 1
    topic = ListOffsetsRequest.ListOffsetsTopic
    listed = []
    for timestamp in (-2, -1):
        wanted = [topic.ListOffsetsPartition(partition_index=0, timestamp=timestamp)]
        request = ListOffsetsRequest(topics=[topic(name="topic", partitions=wanted)])
        (found,) = ask(client, request).topics[0].partitions
        listed.append((found.offset, found.leader_epoch))
    assert listed == [(0, 0), (2, 1)]


def test_offsets_are_committed_and_fetched_by_the_topics_ids(client: Client):
    client.create("topic")
    topic_id, missing = client.call("metadata", ["topic"]).topics["topic"].topic_id, uuid4()
    topic = OffsetCommitRequest.OffsetCommitRequestTopic
    part = topic.OffsetCommitRequestPartition(partition_index=0, committed_offset=5, committed_metadata=None)
    topics = [topic(topic_id=one, partitions=[part]) for one in (topic_id, missing)]
    request = OffsetCommitRequest(group_id="group", generation_id_or_member_epoch=-1, topics=topics)
    codes = {one.topic_id: one.partitions[0].error_code for one in ask(client, request).topics}
    assert codes == {topic_id: 0, missing: UnknownTopicIdError.errno}

    group = OffsetFetchRequest.OffsetFetchRequestGroup
    wanted = [
        group.OffsetFetchRequestTopics(topic_id=one, partition_indexes=[0]) for one in (topic_id, missing)
    ]
    (found,) = ask(client, OffsetFetchRequest(groups=[group(group_id="group", topics=wanted)])).groups
    positions = {one.topic_id: one.partitions[0] for one in found.topics}
    assert positions[topic_id].committed_offset == 5
    assert positions[missing].error_code == UnknownTopicIdError.errno
    (all_of_them,) = ask(client, OffsetFetchRequest(groups=[group(group_id="group", topics=None)])).groups
    assert [one.topic_id for one in all_of_them.topics] == [topic_id]


def test_offsets_of_several_groups_at_once(client: Client):
    client.create("topic")
    for name, offset in (("one", 1), ("two", 2)):
        client.call("commit_offsets", name, {("topic", 0): CommittedOffset(offset)})
    group = OffsetFetchRequest.OffsetFetchRequestGroup
    request = OffsetFetchRequest(
        groups=[group(group_id=name, topics=None) for name in ("one", "two", "none")]
    )
    found = {
        one.group_id: [part.committed_offset for topic in one.topics for part in topic.partitions]
        for one in ask(client, request, 9).groups
    }
    assert found == {"one": [1], "two": [2], "none": []}


def test_an_offset_that_an_open_transaction_commits_is_unstable(client: Client):
    client.create("topic", 2)
    client.call("commit_offsets", "group", {("topic", number): CommittedOffset(1) for number in (0, 1)})
    producer = client.call("init_producer_id", "payments", 60.0)
    who = ("payments", producer.producer_id, producer.epoch)
    assert client.call("add_offsets_to_transaction", *who, "group") is None
    offsets = {("topic", 1): CommittedOffset(9)}
    assert client.call("commit_transaction_offsets", *who, "group", offsets) == {("topic", 1): None}
    topic = OffsetFetchRequest.OffsetFetchRequestTopic
    for topics in ([topic(name="topic", partition_indexes=[0, 1])], None):
        request = OffsetFetchRequest(group_id="group", topics=topics, require_stable=True)
        (found,) = ask(client, request, 7).topics
        assert {one.partition_index: (one.error_code, one.committed_offset) for one in found.partitions} == {
            0: (0, 1),
            1: (UnstableOffsetCommitError.errno, -1),
        }
    assert client.call("end_transaction", *who, True) is None
    (found,) = ask(client, request, 7).topics
    assert {one.partition_index: one.committed_offset for one in found.partitions} == {0: 1, 1: 9}


def test_an_offset_is_stable_while_a_transaction_commits_the_first_one_of_another_partition(client: Client):
    client.create("topic", 2)
    client.call("commit_offsets", "group", {("topic", 0): CommittedOffset(1)})
    producer = client.call("init_producer_id", "payments", 60.0)
    who = ("payments", producer.producer_id, producer.epoch)
    assert client.call("add_offsets_to_transaction", *who, "group") is None
    offsets = {("topic", 1): CommittedOffset(9)}
    assert client.call("commit_transaction_offsets", *who, "group", offsets) == {("topic", 1): None}
    request = OffsetFetchRequest(group_id="group", topics=None, require_stable=True)
    (found,) = ask(client, request, 7).topics
    assert [(one.partition_index, one.error_code, one.committed_offset) for one in found.partitions] == [
        (0, 0, 1)
    ]


def test_offsets_of_a_group_that_is_not_there_cannot_be_deleted(client: Client):
    topic = OffsetDeleteRequest.OffsetDeleteRequestTopic
    topics = [topic(name="topic", partitions=[topic.OffsetDeleteRequestPartition(partition_index=0)])]
    response = ask(client, OffsetDeleteRequest(group_id="nobody", topics=topics))
    assert (response.error_code, response.topics) == (GroupIdNotFoundError.errno, [])


# -- groups and transactions -----------------------------------------------------------------------


@pytest.mark.parametrize(("version", "error"), [(5, 0), (6, GroupIdNotFoundError.errno)])
def test_a_group_that_is_not_there_is_dead(client: Client, version: int, error: int):
    (group,) = ask(client, DescribeGroupsRequest(groups=["nobody"]), version).groups
    assert (group.group_state, group.error_code) == ("Dead", error)


@pytest.mark.parametrize(("types", "count"), [([], 1), (["Classic"], 1), (["consumer"], 0)])
def test_groups_are_classic_ones(client: Client, types: list[str], count: int):
    client.create("topic")
    client.call("commit_offsets", "group", {("topic", 0): CommittedOffset(1)})
    assert len(ask(client, ListGroupsRequest(states_filter=[], types_filter=types)).groups) == count


@pytest.mark.parametrize(
    ("name", "version", "error"),
    [
        ("init", 3, InvalidProducerEpochError),
        ("init", 4, ProducerFencedError),
        ("add partitions", 1, InvalidProducerEpochError),
        ("add partitions", 2, ProducerFencedError),
        ("add offsets", 1, InvalidProducerEpochError),
        ("add offsets", 2, ProducerFencedError),
        ("end", 1, InvalidProducerEpochError),
        ("end", 2, ProducerFencedError),
    ],
)
def test_a_fenced_producer_is_told_in_words_that_its_version_knows(
    client: Client, name: str, version: int, error: Any
):
    client.create("topic")
    identity = client.call("init_producer_id", "payments", 60.0)
    client.call("init_producer_id", "payments", 60.0)
    who = {"producer_id": identity.producer_id, "producer_epoch": identity.epoch}
    if name == "init":
        request = InitProducerIdRequest(transactional_id="payments", transaction_timeout_ms=1000, **who)
        code = ask(client, request, version).error_code
    elif name == "add partitions":
        topic = AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name="topic", partitions=[0])
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id="payments",
            **{f"v3_and_below_{field}": value for field, value in who.items()},
            v3_and_below_topics=[topic],
        )
        (answered,) = ask(client, request, version).results_by_topic_v3_and_below
        code = answered.results_by_partition[0].partition_error_code
    elif name == "add offsets":
        request = AddOffsetsToTxnRequest(transactional_id="payments", group_id="group", **who)
        code = ask(client, request, version).error_code
    else:
        request = EndTxnRequest(transactional_id="payments", committed=True, **who)
        code = ask(client, request, version).error_code
    assert code == error.errno


def test_a_state_of_transactions_that_does_not_exist_is_told(client: Client):
    response = ask(client, ListTransactionsRequest(state_filters=["Ongoing", "Nonsense"]), 0)
    assert response.unknown_state_filters == ["Nonsense"]
    assert response.transaction_states == []


@pytest.mark.parametrize(
    ("filters", "found"),
    [
        ({}, ["payments-1", "payments-2"]),
        ({"transactional_id_pattern": "pay.*1"}, ["payments-1"]),
        ({"transactional_id_pattern": "pay"}, []),
        ({"transactional_id_pattern": "([a-z]+)+-[12]"}, ["payments-1", "payments-2"]),
        ({"duration_filter": 0}, ["payments-2"]),
        ({"duration_filter": 60_000}, []),
        ({"state_filters": ["Ongoing"]}, ["payments-2"]),
    ],
)
def test_transactions_are_listed_by_what_is_asked_for(
    client: Client, filters: dict[str, Any], found: list[str]
):
    client.create("topic")
    client.call("init_producer_id", "payments-1", 60.0)
    producer = client.call("init_producer_id", "payments-2", 60.0)
    who = ("payments-2", producer.producer_id, producer.epoch)
    assert client.call("add_partitions_to_transaction", *who, [("topic", 0)]) == {("topic", 0): None}
    response = ask(client, ListTransactionsRequest(**filters))
    assert sorted(one.transactional_id for one in response.transaction_states) == found


@pytest.mark.parametrize("pattern", ["(", "(?=a)", "a" * 1001, "((a{100}){100}){100}"])
def test_an_invalid_or_huge_pattern_is_refused(client: Client, pattern: str):
    response = ask(client, ListTransactionsRequest(transactional_id_pattern=pattern))
    assert (response.error_code, response.transaction_states) == (128, [])


def test_a_pattern_is_refused_where_the_library_for_it_is_missing(
    client: Client, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    monkeypatch.setitem(sys.modules, "re2", None)
    response = ask(client, ListTransactionsRequest(transactional_id_pattern="a"))
    assert response.error_code == UnsupportedVersionError.errno
    assert "pip install 'dafka[re2]'" in caplog.text


def test_a_pattern_that_matches_in_many_ways_does_not_stop_the_broker(client: Client):
    client.call("init_producer_id", "a" * 5000, 60.0)
    response = ask(client, ListTransactionsRequest(transactional_id_pattern="(a+)+b"))
    assert (response.error_code, response.transaction_states) == (0, [])
