"""Metadata and FindCoordinator."""

from __future__ import annotations

from uuid import uuid4

import pytest
from broker.clients import Client
from broker.server.client import answered
from kafka.errors import (
    InvalidRequestError,
    UnknownTopicIdError,
    UnknownTopicOrPartitionError,
)
from kafka.protocol.metadata import FindCoordinatorRequest, MetadataRequest


@pytest.mark.parametrize(
    ("version", "allowed", "created"), [(4, True, True), (4, False, False), (1, False, True)]
)
def test_topics_are_created_if_the_request_allows_it(client: Client, version, allowed, created):
    """Versions before 4 cannot forbid it."""
    request = MetadataRequest(
        topics=[MetadataRequest.MetadataRequestTopic(name="new")], allow_auto_topic_creation=allowed
    )
    (topic,) = answered(client, request, version).topics
    assert topic.error_code == (0 if created else UnknownTopicOrPartitionError.errno)
    assert ("new" in client.call("metadata", None).topics) is created


def test_an_unknown_topic_id_is_refused(client: Client):
    missing = uuid4()
    (topic,) = answered(
        client,
        MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name=None, topic_id=missing)]),
        12,
    ).topics
    assert (topic.name, topic.topic_id, topic.error_code) == (None, missing, UnknownTopicIdError.errno)


def test_an_unknown_topic_id_is_answered_once_however_often_it_is_named(client: Client):
    asked = MetadataRequest.MetadataRequestTopic(name=None, topic_id=uuid4())
    answer = answered(client, MetadataRequest(topics=[asked, asked]), 12)
    assert [one.topic_id for one in answer.topics] == [asked.topic_id]


def test_a_topic_is_found_by_its_id_whatever_name_comes_with_it(client: Client):
    """Java's Admin sends an empty name."""
    client.create("topic")
    client.create("other")
    topic_id = client.call("metadata", ["topic"]).topics["topic"].topic_id
    for name in (None, "", "other"):
        asked = MetadataRequest.MetadataRequestTopic(name=name, topic_id=topic_id)
        (found,) = answered(client, MetadataRequest(topics=[asked]), 12).topics
        assert (found.name, found.topic_id, found.error_code) == ("topic", topic_id, 0)


def test_an_empty_list_of_topics_differs_from_null(client: Client):
    client.create("topic")
    assert answered(client, MetadataRequest(topics=[]), 1).topics == []
    assert len(answered(client, MetadataRequest(topics=None), 1).topics) == 1
    assert len(answered(client, MetadataRequest(topics=[]), 0).topics) == 1  # version 0 has no null


def test_authorized_operations_are_listed_on_request(client: Client):
    client.create("topic")
    topics = [MetadataRequest.MetadataRequestTopic(name="topic")]
    asked = MetadataRequest(topics=topics, include_topic_authorized_operations=True)
    assert answered(client, asked).topics[0].authorized_operations
    assert answered(client, MetadataRequest(topics=topics)).topics[0].authorized_operations is None


@pytest.mark.parametrize("version", [0, 3, 4, 6])
def test_this_broker_is_the_coordinator_of_everything(client: Client, version: int):
    response = answered(client, FindCoordinatorRequest(key="g", key_type=1, coordinator_keys=["g"]), version)
    found = response.coordinators[0] if version >= 4 else response
    assert (found.error_code, found.host, found.port) == (0, client.core.host, client.core.port)
    assert found.error_message == ("" if version >= 4 else "NONE")  # as in Kafka


def test_share_groups_have_no_coordinator(client: Client):
    (found,) = answered(client, FindCoordinatorRequest(key_type=2, coordinator_keys=["g"])).coordinators
    assert (found.error_code, found.node_id) == (InvalidRequestError.errno, -1)
