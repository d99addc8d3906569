"""Metadata and changes of topics over TCP."""

from __future__ import annotations

from broker.clients import errors_of
from kafka.errors import (
    InvalidTopicError,
    TopicAlreadyExistsError,
    UnknownTopicOrPartitionError,
)

from dafka.broker import connect
from dafka.broker.interface.broker import (
    TopicSpec,
)


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
