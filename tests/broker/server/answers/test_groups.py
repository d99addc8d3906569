"""What of a group depends on the client's software."""

from __future__ import annotations

import time
from contextlib import closing

import pytest
from broker.clients import Client
from broker.server.client import WireClient
from kafka import KafkaConsumer
from kafka.protocol.consumer import JoinGroupRequest
from kafka.protocol.metadata import ApiVersionsRequest

from dafka import Broker
from dafka.broker.groups import group as groups
from dafka.broker.limits import INITIAL_DELAY_UNREADY


def joined(wire: WireClient) -> float:
    """Seconds until a new member of a new group is in its first generation."""
    request = JoinGroupRequest(
        group_id="g",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        member_id="",
        protocol_type="consumer",
        protocols=[JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=b"")],
    )
    began = time.monotonic()
    response = wire.ask(request, 3)
    assert (response.error_code, response.generation_id) == (0, 1)
    return time.monotonic() - began


def introduce(wire: WireClient, software: str) -> None:
    wire.ask(ApiVersionsRequest(client_software_name=software, client_software_version="1"), 3)


def test_kafka_python_gets_time_to_learn_of_partitions_before_it_has_to_assign_them(wire: WireClient):
    introduce(wire, "kafka-python")
    assert joined(wire) >= INITIAL_DELAY_UNREADY


@pytest.mark.parametrize("version", [0, 3, None])
def test_other_clients_do_not_wait_for_that(
    wire: WireClient, monkeypatch: pytest.MonkeyPatch, version: int | None
):
    monkeypatch.setattr(groups, "INITIAL_DELAY_UNREADY", 3600.0)
    if version is not None:
        wire.ask(ApiVersionsRequest(client_software_name="other", client_software_version="1"), version)
    joined(wire)


def test_kafka_python_then_assigns_its_partitions_in_the_first_generation(
    broker: Broker, client: Client, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(groups, "INITIAL_DELAY_UNREADY", 2.0)  # for machines of any load
    client.create("topic", 4)
    client.produce("topic", b"x")
    consumer = KafkaConsumer(
        "topic", bootstrap_servers=broker.bootstrap_servers, group_id="g", auto_offset_reset="earliest"
    )
    with closing(consumer):
        assert consumer.poll(20_000)
        assert len(consumer.assignment()) == 4
        assert consumer.group_metadata().generation_id == 1
