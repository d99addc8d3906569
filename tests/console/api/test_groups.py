"""Groups through the API."""

from __future__ import annotations

from uuid import uuid4

import pytest
from timing import until

from compat.kafka import KafkaConsumer
from compat.kafka.share import ShareConsumer


@pytest.fixture
def name():
    return f"g-{uuid4()}/ü"


@pytest.fixture
def topic(shared):
    topic = f"t-{uuid4()}"
    shared.create_topic(topic, 2)
    shared.preload(topic, [b"x"] * 10, partition=0)
    return topic


@pytest.fixture(params=["classic", "consumer"])
def consumer(request, shared, name, topic):
    consumer = KafkaConsumer(
        topic,
        bootstrap_servers=shared.bootstrap_servers,
        group_id=name,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        group_protocol=request.param,
    )
    while not consumer.poll(100, max_records=4):
        pass
    consumer.commit()
    yield consumer
    consumer.close()


def test_a_group_is_shown_with_its_members_and_lags(client, consumer, name, topic):
    (row,) = client.get("/api/groups", search=name)["groups"]
    kind = row["type"]
    assert row["state"] == "Stable" and client.get("/api/groups", search=name, type="share")["groups"] == []
    group = client.get("/api/group", name=name)
    assert group["lag"] == 6 and group["type"] == kind
    first = group["partitions"][0]
    assert (first["partition"], first["offset"], first["end"]) == (0, 4, 10)
    assert group["members"][0]["partitions"] == [[topic, 0], [topic, 1]]


def test_offsets_are_reset_after_a_preview(client, consumer, name, topic):
    answer = client.ask("POST", "/api/group/reset", {"to": "earliest", "execute": True}, name=name)
    assert answer.status == 409 and "has members" in answer.json["message"]
    consumer.close()
    preview = client.ask("POST", "/api/group/reset", {"topic": topic, "to": "latest"}, name=name).json
    assert not preview["executed"]
    assert preview["partitions"][0] == {"topic": topic, "partition": 0, "offset": 4, "new_offset": 10}
    assert client.get("/api/group", name=name)["lag"] == 6
    body = {"topic": topic, "partitions": [0], "by": -3, "execute": True}
    assert client.ask("POST", "/api/group/reset", body, name=name).json["executed"]
    assert client.get("/api/group", name=name)["lag"] == 9
    assert client.ask("POST", "/api/group/reset", {}, name=name).status == 400
    assert client.ask("POST", "/api/group/reset", {"to": "soon"}, name=name).status == 409


def test_a_group_is_deleted_when_it_is_empty(client, consumer, name):
    assert client.ask("DELETE", "/api/group", name=name).json["error"] == "NonEmptyGroupError"
    consumer.close()
    assert client.ask("DELETE", "/api/group", name=name).status == 200
    assert client.ask("GET", "/api/group", name=name).status == 404


def test_a_member_is_taken_out(client, consumer, name):
    group = client.get("/api/group", name=name)
    body = {"member": group["members"][0]["member"], "instance": None}
    answer = client.ask("POST", "/api/group/remove-member", body, name=name)
    assert answer.status == (200 if group["type"] == "classic" else 400)


def test_a_share_group_is_shown_with_its_members(client, shared, name, topic):
    with ShareConsumer(topic, bootstrap_servers=shared.bootstrap_servers, group_id=name) as consumer:

        def assigned():
            consumer.poll(50)
            answer = client.ask("GET", "/api/group", name=name)
            members = answer.json["members"] if answer.status == 200 else []
            return bool(members) and members[0]["partitions"] == [[topic, 0], [topic, 1]]

        until(assigned)
        group = client.get("/api/group", name=name)
        assert (group["type"], group["state"], group["total_members"]) == ("share", "Stable", 1)
        (row,) = client.get("/api/groups", search=name, type="share")["groups"]
        assert row["name"] == name
