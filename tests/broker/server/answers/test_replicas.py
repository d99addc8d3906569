"""Replicas: the election of leaders, and where they lie."""

from __future__ import annotations

from broker.clients import Client
from broker.server.client import answered
from kafka.errors import ElectionNotNeededError, LogDirNotFoundError, UnknownTopicOrPartitionError
from kafka.protocol.admin import AlterReplicaLogDirsRequest, ElectLeadersRequest


def test_no_election_is_needed(client: Client):
    client.create("topic")
    topics = [ElectLeadersRequest.TopicPartitions(topic="topic", partitions=[0, 1])]
    (result,) = answered(client, ElectLeadersRequest(topic_partitions=topics)).replica_election_results
    assert [one.error_code for one in result.partition_result] == [
        ElectionNotNeededError.errno,
        UnknownTopicOrPartitionError.errno,
    ]


def test_a_replica_that_is_moved_twice_is_where_it_was_last_told(client: Client):
    client.create("topic")
    (own,) = client.call("log_directories", [])
    folder = AlterReplicaLogDirsRequest.AlterReplicaLogDir
    moves = [folder.AlterReplicaLogDirTopic(name="topic", partitions=[0, 0, 1])]
    for paths, error in (((own.path, "/other"), LogDirNotFoundError.errno), (("/other", own.path), 0)):
        request = AlterReplicaLogDirsRequest(dirs=[folder(path=path, topics=moves) for path in paths])
        (topic,) = answered(client, request).results
        missing = error or UnknownTopicOrPartitionError.errno
        assert [(one.partition_index, one.error_code) for one in topic.partitions] == [
            (0, error),
            (1, missing),
        ]
