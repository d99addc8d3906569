"""Metadata, and topics that come by use."""

from __future__ import annotations

import gc

import gevent
import kafka.errors as errors
import pytest
from broker.clients import Client

from dafka import Broker
from dafka.broker.interface.topics import TopicSpec


def test_metadata_names_the_broker_under_its_own_address(broker, client):
    found = client.call("metadata", None)
    host, port = broker.bootstrap_servers.split(":")
    assert found.brokers == [(0, host, int(port))]
    assert found.controller_id == 0
    assert len(found.cluster_id) == 22
    assert found.topics == {}


def test_metadata_creates_a_topic_only_when_asked_to(client):
    assert client.call("metadata", ["t"]).topics["t"].error is errors.UnknownTopicOrPartitionError
    assert client.call("metadata", None).topics == {}
    assert client.call("metadata", ["t"], True).topics["t"].error is None
    assert list(client.call("metadata", None).topics) == ["t"]
    assert client.call("metadata", ()).topics == {}


def test_default_partitions_are_those_of_the_broker():
    with Broker(default_partitions=3) as broker:
        client = Client(broker)
        client.call("metadata", ["t"], True)
        assert [writable for _, writable in client.partitions("t")] == [True] * 3


def test_no_topic_is_created_by_use_if_the_broker_is_told_so():
    with Broker(auto_create_topics=False) as broker:
        found = Client(broker).call("metadata", ["t"], True)
        assert found.topics["t"].error is errors.UnknownTopicOrPartitionError


@pytest.mark.parametrize("name", ["", ".", "..", "a b", "ä", "x" * 250, "a\n"])
def test_illegal_names_are_refused(client, name):
    assert client.call("metadata", [name], True).topics[name].error is errors.InvalidTopicError


def test_names_that_differ_in_dots_and_underlines_alone_are_refused(tmp_path):
    """Kafka's metrics could not tell them apart."""
    with Broker(tmp_path) as broker:
        Client(broker).create("a.b_c")
    with Broker(tmp_path) as broker:
        client = Client(broker)
        for name in ("a_b_c", "a.b.c"):
            outcome = client.call("create_topics", {name: TopicSpec(1, {"no": "setting"})})[name]
            assert outcome.error is errors.InvalidTopicError
            assert outcome.detail == f"Topic '{name}' collides with existing topic: a.b_c"
            assert client.call("metadata", [name], True).topics[name].error is errors.InvalidTopicError
        again = client.call("create_topics", {"a.b_c": TopicSpec(1)})["a.b_c"]
        assert again.error is errors.TopicAlreadyExistsError
        client.create("a-b-c")
        client.call("create_partitions", {"a.b_c": 2})
        client.call("delete_topics", ["a.b_c"])
        client.create("a_b_c")
        assert (
            client.call("create_topics", {"a.b_c": TopicSpec(1)})["a.b_c"].error is errors.InvalidTopicError
        )


def test_callers_that_create_the_same_topic_at_once_get_the_same(client):
    def create_together():
        greens = [gevent.spawn(client.core.metadata, ["t"], True) for _ in range(10)]
        gevent.joinall(greens, raise_error=True)
        return {green.value.topics["t"].topic_id for green in greens}

    assert len(client.connection.hub.run(create_together)) == 1


def test_topics_are_described_for_as_long_as_somebody_looks(client):
    """Descriptions of all topics at once would bring Python to look through all it has for garbage."""
    specs = {f"t{number}": TopicSpec(2) for number in range(500)}
    client.call("create_topics", specs)
    gc.collect()
    gc.disable()
    made = []
    try:
        for _ in range(5):  # other threads make some too
            before = len(gc.get_objects())
            found = client.call("metadata", None).topics
            assert sum(len(one.partitions) for one in found.values()) == 1000
            made.append(len(gc.get_objects()) - before)
        assert min(made) < 700  # one for each partition would be 1000
    finally:
        gc.enable()
    assert found.keys() == specs.keys() and found["t3"] == client.call("metadata", ["t3"]).topics["t3"]
