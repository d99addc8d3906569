"""Topics: creation, extension, deletion and description."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest
from broker.clients import Client
from broker.server.client import answered
from kafka.errors import (
    InvalidPartitionsError,
    InvalidReplicationAssignmentError,
    InvalidReplicationFactorError,
    InvalidRequestError,
    PolicyViolationError,
    TopicAlreadyExistsError,
    UnknownError,
    UnknownTopicIdError,
    UnknownTopicOrPartitionError,
)
from kafka.protocol.admin import (
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DescribeTopicPartitionsRequest,
)

from dafka.broker.server.answers.naming import NO_UUID


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
    return list(
        answered(client, CreateTopicsRequest(topics=list(topics), validate_only=validate_only)).topics
    )


def test_a_created_topic_is_answered_with_its_configuration(client: Client):
    (created,) = create(client, new_topic(partitions=3, factor=-1))
    assert (created.error_code, created.num_partitions, created.replication_factor) == (0, 3, 1)
    assert created.topic_id == client.call("metadata", ["topic"]).topics["topic"].topic_id
    assert "cleanup.policy" in {config.name for config in created.configs}


def test_a_topic_that_is_only_looked_at_is_answered_with_what_it_would_have(client: Client):
    asked = [new_topic("three", partitions=3), new_topic("default", partitions=-1, factor=-1)]
    three, default = create(client, *asked, validate_only=True)
    assert (three.num_partitions, three.replication_factor) == (3, 1)
    assert len({NO_UUID, three.topic_id, default.topic_id}) == 3
    assert default.num_partitions == 1
    assert {config.name: config.value for config in three.configs}["cleanup.policy"] == "delete"
    assert client.call("metadata", None).topics == {}


EXCESSIVE, TOO_LARGE = "Excessively large number of partitions", "excessively large batch"


@pytest.mark.parametrize(
    ("sizes", "says"),
    [
        ([10_001], EXCESSIVE),
        ([5000, 5001], EXCESSIVE),
        ([10_000], TOO_LARGE),
        ([5000, 4999], TOO_LARGE),
        ([5000, 4998], ""),
        ([9999], ""),
    ],
)
def test_a_request_creates_no_more_than_kafkas_controller_writes(client: Client, sizes: list[int], says: str):
    asked = [new_topic(f"t{number}", size) for number, size in enumerate(sizes)]
    found = create(client, *asked, validate_only=True)
    assert {one.error_code for one in found} == {PolicyViolationError.errno if says else 0}
    assert all(says in (one.error_message or "") for one in found)


def test_as_many_partitions_are_added_in_a_request(client: Client):
    client.create("topic")
    topic = CreatePartitionsRequest.CreatePartitionsTopic
    for count, error in ((10_002, UnknownError.errno), (10_001, 0)):
        asked = [topic(name="topic", count=count, assignments=None)]
        answer = answered(client, CreatePartitionsRequest(topics=asked, validate_only=True))
        assert [one.error_code for one in answer.results] == [error]


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
def test_an_invalid_topic_is_refused_and_the_others_are_created(client, topic, error, validate_only):
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


def test_assignments_determine_the_number_of_partitions(client: Client):
    create(client, new_topic(partitions=-1, factor=-1, assignments=[(0, [0]), (1, [0])]))
    assert len(client.partitions("topic")) == 2


def test_topics_are_deleted_by_id(client: Client):
    client.create("topic")
    topic_id = client.call("metadata", ["topic"]).topics["topic"].topic_id
    state = DeleteTopicsRequest.DeleteTopicState
    request = DeleteTopicsRequest(topics=[state(topic_id=topic_id), state(topic_id=uuid4())])
    deleted, unknown = answered(client, request).responses
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
    (result,) = answered(client, CreatePartitionsRequest(topics=topics, validate_only=validate_only)).results
    assert result.error_code == (error.errno if error else 0)
    assert len(client.partitions("topic")) == (2 if error or validate_only else 3)


def test_partitions_are_described_page_by_page(client: Client):
    client.create("b", 3)
    client.create("a", 3)
    found: list[tuple[str, int]] = []
    cursor = None
    for _ in range(10):
        request = DescribeTopicPartitionsRequest(topics=[], response_partition_limit=2, cursor=cursor)
        response = answered(client, request)
        found += [(one.name, part.partition_index) for one in response.topics for part in one.partitions]
        cursor = response.next_cursor
        if cursor is None:
            break
    assert found == [(name, number) for name in "ab" for number in range(3)]


@pytest.mark.parametrize(
    ("names", "cursor", "answered_names"),
    [
        (["b", "a"], ("c", 0), ["b", "a"]),
        (["b", "a"], ("a", -1), ["b", "a"]),
        (["b", ""], ("a", 0), ["b", ""]),
        ([], ("a", -1), []),
    ],
)
def test_a_page_that_begins_nowhere_is_refused(client: Client, names, cursor, answered_names):
    client.create("a", 1)
    client.create("b", 1)
    topic, number = cursor
    request = DescribeTopicPartitionsRequest(
        topics=[DescribeTopicPartitionsRequest.TopicRequest(name=name) for name in names],
        response_partition_limit=9,
        cursor=DescribeTopicPartitionsRequest.Cursor(topic_name=topic, partition_index=number),
    )
    response = answered(client, request)
    assert [one.name for one in response.topics] == answered_names
    assert {one.error_code for one in response.topics} <= {InvalidRequestError.errno}
    assert response.next_cursor is None
