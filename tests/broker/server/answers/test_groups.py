"""Groups: members, descriptions, and the APIs of the consumer protocol."""

from __future__ import annotations

import struct
import time
from contextlib import closing

import confluent_kafka
import pytest
from broker.clients import Client
from broker.server.client import WireClient, answered
from kafka import KafkaConsumer
from kafka.errors import (
    GroupIdNotFoundError,
)
from kafka.protocol.admin import (
    DescribeGroupsRequest,
    ListGroupsRequest,
)
from kafka.protocol.consumer import (
    JoinGroupRequest,
)
from kafka.protocol.metadata import ApiVersionsRequest
from timing import until

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


@pytest.mark.parametrize(("types", "count"), [([], 1), (["Classic"], 1), (["consumer"], 0)])
def test_all_groups_have_the_classic_type(client: Client, types: list[str], count: int):
    client.create("topic")
    client.call("commit_offsets", "group", {("topic", 0): CommittedOffset(1)})
    assert len(answered(client, ListGroupsRequest(states_filter=[], types_filter=types)).groups) == count


# -- the consumer protocol of KIP-848 ---------------------------------------------------------------

HEARTBEAT, DESCRIBE = 68, 69
UNSUPPORTED_VERSION = 35

# Apache Kafka 4.3 answers so with group.coordinator.rebalance.protocols=classic, after the correlation id.
HEARTBEAT_ANSWER = bytes.fromhex("00000000002300000000000000000000ff00")
DESCRIBE_ANSWER = bytes.fromhex("00000000020023000367310100000000000000000101800000000000")


def compact(text: bytes | None) -> bytes:
    return b"\0" if text is None else bytes([len(text) + 1]) + text


def heartbeat_body(version: int) -> bytes:
    body = compact(b"g1") + compact(b"member") + struct.pack(">i", 0) + compact(None) + compact(None)
    body += struct.pack(">i", 300_000) + b"\2" + compact(b"topic")
    return body + (compact(None) if version else b"") + compact(None) + b"\1" + b"\0"


def ask_in_bytes(wire: WireClient, key: int, version: int, body: bytes) -> bytes:
    """The body of the response to a flexible request."""
    frame = struct.pack(">hhi", key, version, 7) + struct.pack(">h", 5) + b"tests" + b"\0" + body
    wire.socket.sendall(struct.pack(">i", len(frame)) + frame)
    answer = wire.receive_frame()
    assert answer[:5] == struct.pack(">i", 7) + b"\0"
    return answer[5:]


@pytest.mark.parametrize("version", [0, 1])
def test_consumer_group_heartbeat_is_answered_as_by_a_kafka_with_the_classic_protocol_only(
    wire: WireClient, version: int
):
    assert ask_in_bytes(wire, HEARTBEAT, version, heartbeat_body(version)) == HEARTBEAT_ANSWER
    assert wire.ask(ApiVersionsRequest(), 0).error_code == 0  # the connection is still in step


@pytest.mark.parametrize("version", [0, 1])
def test_consumer_group_describe_is_answered_as_by_a_kafka_with_the_classic_protocol_only(
    wire: WireClient, version: int
):
    assert ask_in_bytes(wire, DESCRIBE, version, b"\2" + compact(b"g1") + b"\0\0") == DESCRIBE_ANSWER
    two = ask_in_bytes(wire, DESCRIBE, version, b"\3" + compact(b"a") + compact(b"b") + b"\0\0")
    assert two.count(struct.pack(">h", UNSUPPORTED_VERSION)) == 2


@pytest.mark.parametrize("body", [b"", b"\7", b"\2\x7fg1", b"\2\3g"])
def test_a_truncated_consumer_group_describe_closes_its_connection(
    broker: Broker, wire: WireClient, body: bytes
):
    with pytest.raises(EOFError):
        ask_in_bytes(wire, DESCRIBE, 0, body)
    until(lambda: broker.discarded.get("short") == 1)


def test_librdkafka_with_the_consumer_protocol_fails_at_once_and_says_why(broker: Broker, client: Client):
    client.create("topic")
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": broker.bootstrap_servers, "group.id": "new", "group.protocol": "consumer"}
    )
    try:
        consumer.subscribe(["topic"])
        began = time.monotonic()
        message = until(lambda: consumer.poll(0.5))
        assert time.monotonic() - began < 10
        assert message.error().name() == "_FATAL"
        assert "ConsumerGroupHeartbeat" in message.error().str()
        assert "not supported" in message.error().str()
    finally:
        consumer.close()
