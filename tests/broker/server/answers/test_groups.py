"""Groups: members and descriptions."""

from __future__ import annotations

import time
from contextlib import closing

import pytest
from broker.clients import Client
from broker.server.client import WireClient, answered
from kafka import KafkaConsumer
from kafka.errors import (
    GroupIdNotFoundError,
    InvalidGroupIdError,
)
from kafka.protocol.admin import (
    DescribeGroupsRequest,
    ListGroupsRequest,
)
from kafka.protocol.consumer import (
    JoinGroupRequest,
    LeaveGroupRequest,
)
from kafka.protocol.metadata import ApiVersionsRequest

from dafka import Broker
from dafka.broker.groups import rebalance
from dafka.broker.interface.broker import CommittedOffset
from dafka.broker.limits import INITIAL_DELAY_UNREADY


def joined(wire: WireClient) -> float:
    """Seconds from the join of the only member to the first generation."""
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


def test_the_first_generation_of_kafka_python_has_the_longer_initial_delay(wire: WireClient):
    introduce(wire, "kafka-python")
    assert joined(wire) >= INITIAL_DELAY_UNREADY


@pytest.mark.parametrize("version", [0, 3, None])
def test_other_clients_have_the_shorter_initial_delay(
    wire: WireClient, monkeypatch: pytest.MonkeyPatch, version: int | None
):
    monkeypatch.setattr(rebalance, "INITIAL_DELAY_UNREADY", 3600.0)
    if version is not None:
        wire.ask(ApiVersionsRequest(client_software_name="other", client_software_version="1"), version)
    joined(wire)


def test_kafka_python_assigns_its_partitions_in_the_first_generation(
    broker: Broker, client: Client, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(rebalance, "INITIAL_DELAY_UNREADY", 2.0)  # enough on a loaded machine
    client.create("topic", 4)
    client.produce("topic", b"x")
    consumer = KafkaConsumer(
        "topic", bootstrap_servers=broker.bootstrap_servers, group_id="g", auto_offset_reset="earliest"
    )
    with closing(consumer):
        assert consumer.poll(20_000)
        assert len(consumer.assignment()) == 4
        assert consumer.group_metadata().generation_id == 1


@pytest.mark.parametrize(("version", "error"), [(5, 0), (6, GroupIdNotFoundError.errno)])
def test_an_unknown_group_is_dead(client: Client, version: int, error: int):
    (group,) = answered(client, DescribeGroupsRequest(groups=["nobody"]), version).groups
    assert (group.group_state, group.error_code) == ("Dead", error)


@pytest.mark.parametrize("version", [2, 5])
def test_nobody_leaves_a_group_without_a_name(client: Client, version: int):
    member = LeaveGroupRequest.MemberIdentity(member_id="m", group_instance_id=None, reason=None)
    request = LeaveGroupRequest(group_id="", member_id="m", members=[member])
    response = answered(client, request, version)
    assert (response.error_code, response.members or []) == (InvalidGroupIdError.errno, [])


@pytest.mark.parametrize(("types", "count"), [([], 1), (["Classic"], 1), (["consumer"], 0)])
def test_a_group_with_nothing_but_offsets_has_the_classic_type(client: Client, types: list[str], count: int):
    client.create("topic")
    client.call("commit_offsets", "group", {("topic", 0): CommittedOffset(1)})
    assert len(answered(client, ListGroupsRequest(states_filter=[], types_filter=types)).groups) == count
