"""Topics through the API."""

from __future__ import annotations

from uuid import uuid4

import pytest
from timing import until


@pytest.fixture
def topic(client):
    name = f"t-{uuid4()}"
    assert client.ask("POST", "/api/topics", {"name": name, "partitions": 2}).status == 200
    until(lambda: leaders(client, name) == 2)  # not at once, in Kafka
    return name


def leaders(client, topic):
    """How many partitions of a topic have one."""
    answer = client.ask("GET", f"/api/topics/{topic}")
    return answer.status == 200 and sum(one["leader"] is not None for one in answer.json["partitions"])


def test_a_topic_is_created_found_changed_and_deleted(client, shared, topic):
    shared.preload(topic, [b"x"] * 5)
    (row,) = client.get("/api/topics", search=topic[2:])["topics"]
    assert row["name"] == topic and row["partitions"] == 2 and row["records"] == 5 and row["bytes"] > 0
    assert client.ask("POST", f"/api/topics/{topic}/partitions", {"total": 4}).status == 200
    until(lambda: leaders(client, topic) == 4)
    found = client.get(f"/api/topics/{topic}")
    assert [one["partition"] for one in found["partitions"]] == [0, 1, 2, 3]
    assert sum(one["end"] for one in found["partitions"]) == 5
    assert {one["leader"] for one in found["partitions"]} == {client.get("/api/cluster")["brokers"][0]["id"]}
    assert client.ask("POST", f"/api/topics/{topic}/empty", {}).status == 200
    assert {one["first"] == one["end"] for one in client.get(f"/api/topics/{topic}")["partitions"]} == {True}
    assert client.ask("DELETE", f"/api/topics/{topic}").status == 200
    until(lambda: client.ask("GET", f"/api/topics/{topic}").status == 404)


def test_refusals_of_kafka_say_why(client, topic):
    answer = client.ask("POST", "/api/topics", {"name": topic})
    assert answer.status == 409 and answer.json["error"] == "TopicAlreadyExistsError"
    answer = client.ask("POST", "/api/topics", {"name": "bad name"})
    assert answer.status == 409 and answer.json["error"] == "InvalidTopicError"
    assert client.ask("POST", f"/api/topics/{topic}/partitions", {"total": 1}).status == 409
    assert client.ask("DELETE", "/api/topics/nowhere").status == 404
    assert client.ask("POST", f"/api/topics/{topic}/empty", {"partitions": [7]}).status == 400
    assert client.ask("POST", f"/api/topics/{topic}/empty", {"before": "soon"}).status == 409


def test_a_check_creates_nothing(client):
    name = f"t-{uuid4()}"
    assert client.ask("POST", "/api/topics", {"name": name, "check_only": True}).status == 200
    assert client.get("/api/topics", search=name)["matching"] == 0


def test_lists_are_sorted_cut_and_without_internal_topics(local, shared):
    mark = str(uuid4())
    for number, partitions in enumerate([2, 3, 1]):
        shared.create_topic(f"{mark}-{number}", partitions)
    shared.create_topic(f"__{mark}", 1)

    def names(**query):
        return [one["name"][-1] for one in local.get("/api/topics", search=mark, **query)["topics"]]

    assert names() == ["0", "1", "2"]
    assert names(descending="true") == ["2", "1", "0"]
    assert names(sort="partitions") == ["2", "0", "1"]
    assert names(skip=1, limit=1) == ["1"]
    assert local.get("/api/topics", search=mark.upper(), internal="true")["matching"] == 4


def test_settings_are_changed_with_kafkas_checks(client, topic):
    where = {"kind": "topic", "name": topic}

    def value():
        rows = client.get("/api/configs", **where)["configs"]
        return next((one["value"], one["own"]) for one in rows if one["name"] == "retention.ms")

    default = value()
    change = {"set": {"retention.ms": "60000"}}
    assert client.ask("PATCH", "/api/configs", {**change, "check_only": True}, **where).status == 200
    assert value() == default and not default[1]
    assert client.ask("PATCH", "/api/configs", change, **where).status == 200
    until(lambda: value() == ("60000", True))  # not at once, in Kafka
    answer = client.ask("PATCH", "/api/configs", {"set": {"retention.ms": "soon"}}, **where)
    assert answer.status == 409 and answer.json["error"] == "InvalidConfigurationError"
    assert client.ask("PATCH", "/api/configs", {"unset": ["retention.ms"]}, **where).status == 200
    until(lambda: value() == default)


def test_producers_of_partitions_are_listed(client, shared, topic):
    from compat.kafka import KafkaProducer

    producer = KafkaProducer(bootstrap_servers=shared.bootstrap_servers, enable_idempotence=True)
    producer.send(topic, b"x", partition=1).get(100)
    producer.close()
    (row,) = client.get(f"/api/topics/{topic}/producers")["producers"]
    assert row["partition"] == 1 and row["last_sequence"] == 0 and row["transaction_start"] is None
