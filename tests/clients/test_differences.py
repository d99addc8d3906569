"""What differs between this broker and Apache Kafka, as dafka/broker/README.md lists it."""

from __future__ import annotations

import uuid

import pytest
from clients.adapters import Confluent
from clients.adapters.client import SECONDS
from clients.adapters.java import tool, tools_missing
from clients.records import Record
from clients.servers import DAFKA, Server
from confluent_kafka import Consumer
from confluent_kafka.admin import (
    AdminClient,
)
from timing import until


@pytest.fixture
def admin(servers: str) -> AdminClient:
    return AdminClient({"bootstrap.servers": servers})


@pytest.fixture
def name() -> str:
    return f"differences-{uuid.uuid4().hex[:8]}"


def test_the_broker_keeps_no_topics_of_its_own(
    admin: AdminClient, server: Server, topic: str, name: str
) -> None:
    Confluent().produce(server.bootstrap_servers, topic, [Record(b"x")])
    member = Confluent().member(server.bootstrap_servers, name, topic)
    until(lambda: member.records, member)
    member.close()
    own = {each for each in admin.list_topics(timeout=SECONDS).topics if each.startswith("__")}
    assert ("__consumer_offsets" in own) == (server.name != DAFKA)


def test_a_consumer_may_have_the_newer_group_protocol(server: Server, topic: str, name: str) -> None:
    Confluent().produce(server.bootstrap_servers, topic, [Record(b"x")])
    errors: list[object] = []
    consumer = Consumer(
        {
            "bootstrap.servers": server.bootstrap_servers,
            "group.id": name,
            "group.protocol": "consumer",
            "auto.offset.reset": "earliest",
            "error_cb": errors.append,
        }
    )
    consumer.subscribe([topic])
    message = consumer.poll(SECONDS)
    consumer.close()
    assert message is not None, errors
    assert message.error() is None
    assert message.value() == b"x"


def test_javas_consumer_may_have_it_too(server: Server, topic: str, name: str) -> None:
    reason = tools_missing()
    if reason is not None:
        pytest.skip(reason)
    Confluent().produce(server.bootstrap_servers, topic, [Record(b"to Java")])
    address = "--bootstrap-server", server.bootstrap_servers
    wanted = (
        "--topic",
        topic,
        "--group",
        name,
        "--from-beginning",
        "--max-messages",
        "1",
        "--timeout-ms",
        "60000",
    )
    newer = "--command-property", "group.protocol=consumer"
    assert "to Java" in tool("consumer.ConsoleConsumer", *address, *wanted, *newer)
    listed = tool("consumer.group.ConsumerGroupCommand", *address, "--list", "--type")
    assert [name, "Consumer"] in [line.split() for line in listed.splitlines()]
