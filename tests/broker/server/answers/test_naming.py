"""What the answers share: versions, names of topics, and grouping by topic."""

from __future__ import annotations

from uuid import uuid4

from broker.clients import Client
from kafka.protocol.admin import DescribeTopicPartitionsResponse
from kafka.protocol.metadata import MetadataRequest, MetadataResponse

from dafka.broker.server.answers.naming import NO_UUID, by_topic, topic_fields, topic_names, version_of


def test_a_request_without_a_version_has_the_newest_one() -> None:
    request = MetadataRequest(topics=[])
    assert version_of(request) == MetadataRequest.valid_versions[1]
    request.API_VERSION = 4
    assert version_of(request) == 4


def test_ids_of_unknown_topics_and_null_have_no_name(client: Client) -> None:
    client.create("t")
    known = client.call("metadata", ["t"]).topics["t"].topic_id

    def names(*ids: object) -> object:
        return client.connection.hub.run(topic_names, client.core, ids)

    assert names(known, uuid4(), NO_UUID, None) == {known: "t"}
    assert names(None) == {}


def test_partitions_are_grouped_by_topic_in_their_order() -> None:
    values = {("b", 1): "x", ("a", 0): "y", ("b", 0): "z"}
    assert by_topic(values) == {"b": [(1, "x"), (0, "z")], "a": [(0, "y")]}


def test_a_topic_is_described_with_this_broker_as_leader_and_only_replica(client: Client) -> None:
    client.create("t", 2)
    topic = client.call("metadata", ["t"]).topics["t"]
    partition = MetadataResponse.MetadataResponseTopic.MetadataResponsePartition
    fields = topic_fields(topic, partition, 5)
    assert (fields["name"], fields["topic_id"], fields["error_code"]) == ("t", topic.topic_id, 0)
    assert [one.partition_index for one in fields["partitions"]] == [0, 1]
    for one in fields["partitions"]:
        assert (one.leader_id, one.replica_nodes, one.isr_nodes, one.offline_replicas) == (5, [5], [5], [])


def test_only_some_partitions_may_be_described_and_with_further_fields(client: Client) -> None:
    client.create("t", 2)
    topic = client.call("metadata", ["t"]).topics["t"]
    partition = (
        DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponseTopic
    ).DescribeTopicPartitionsResponsePartition
    fields = topic_fields(topic, partition, 5, topic.partitions[1:], last_known_elr=[])
    (found,) = fields["partitions"]
    assert (found.partition_index, found.last_known_elr) == (1, [])
