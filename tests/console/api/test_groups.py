"""Groups through the API."""

from __future__ import annotations

from uuid import uuid4

import pytest
from console.asking import SECONDS
from timing import until

import dafka.broker
from compat.kafka import KafkaConsumer
from compat.kafka.share import AcknowledgeType, ShareConsumer
from dafka.broker.interface.admin import ConfigChange, ConfigOperation, Resource, ResourceType
from dafka.broker.interface.streams_groups import InternalTopic, StreamsHeartbeat, Subtopology, Topology


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
    path, body = "/api/group/remove-member", {"member": group["members"][0]["member"], "instance": None}
    assert client.ask("POST", path, body, name=name).status == 200
    until(
        lambda: (
            body["member"] not in [one["member"] for one in client.get("/api/group", name=name)["members"]]
        )
    )
    assert client.ask("POST", path, {**body, "member": "nobody"}, name=name).status == 409
    assert client.ask("POST", path, body, name=f"{name}-").status == 404


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
        body = {"member": group["members"][0]["member"]}
        assert client.ask("POST", "/api/group/remove-member", body, name=name).status == 200
        assert client.get("/api/group", name=name)["total_members"] in (0, 1)  # it joins again by itself


def test_states_of_delivery_are_counted(client, shared, is_apache, name, topic):
    share_from_the_beginning(shared, name)
    with ShareConsumer(
        topic,
        bootstrap_servers=shared.bootstrap_servers,
        group_id=name,
        share_acknowledgement_mode="explicit",
    ) as consumer:
        records = until(lambda: [one for some in consumer.poll(50).values() for one in some])
        consumer.acknowledge(records[0])
        consumer.acknowledge(records[1], AcknowledgeType.REJECT)
        consumer.acknowledge(records[4], AcknowledgeType.RELEASE)
        consumer.commit()

        def row():
            found = client.get("/api/group", name=name)["deliveries"]
            return next((one for one in found if one["partition"] == records[0].partition), {})

        until(lambda: row().get("available") == 1)
        found = row()
        assert found["start"] + found["acknowledged"] + found["archived"] == 2  # brokers move the start later
        if client.get("/api/cluster")["embedded"]:
            assert (found["acquired"], found["ahead"], found["end"]) == (7, 0, 10)
            assert found["deliveries"] == {"1": 8} and list(found["holders"].values()) == [7]
        else:  # records a member holds for the first time are stored nowhere
            assert (found["acquired"], found["ahead"], found["holders"]) == (None, None, {})
            assert found["deliveries"] == {"1": 1}


def share_from_the_beginning(shared, name):
    connection = dafka.broker.connect(shared.bootstrap_servers, SECONDS)
    resource = Resource(ResourceType.GROUP, name)
    change = ConfigChange("share.auto.offset.reset", ConfigOperation.SET, "earliest")
    assert connection.call("alter_configs", {resource: [change]})[resource].error is None


def test_a_streams_group_is_shown_with_its_topology_and_tasks(client, shared, is_apache, name, topic):
    if is_apache:
        pytest.skip("members of streams groups are programs in Java there")
    connection = dafka.broker.connect(shared.bootstrap_servers, SECONDS)
    topology = Topology(
        1, [Subtopology("0", sources=[topic], changelogs=[InternalTopic(f"{topic}-changelog")])]
    )
    joining = StreamsHeartbeat(
        "member-1",
        0,
        rebalance_timeout=30.0,
        topology=topology,
        active={},
        standby={},
        warmup={},
        process_id="p",
    )
    epoch, tasks = 0, {}

    def beat():
        nonlocal epoch
        again = StreamsHeartbeat("member-1", epoch, active=tasks, standby={}, warmup={})
        answer = connection.call("streams_group_heartbeat", name, again if epoch else joining)
        assert answer.error is None, answer
        epoch = answer.member_epoch
        return answer.tasks and answer.tasks.active

    tasks = until(beat)
    beat()
    group = client.get("/api/group", name=name)
    assert group["type"] == "streams" and group["deliveries"] is None
    (subtopology,) = group["topology"]["subtopologies"]
    assert subtopology["sources"] == [topic] and subtopology["changelogs"] == [f"{topic}-changelog"]
    (row,) = group["tasks"]
    assert row["process"] == "p" and row["assigned"]["active"] == ["0_0", "0_1"] == row["target"]["active"]
    assert group["members"][0]["partitions"] == [[topic, 0], [topic, 1]]
    body = {"member": "member-1"}
    assert client.ask("POST", "/api/group/remove-member", body, name=name).status == 200
    assert client.get("/api/group", name=name)["total_members"] == 0
