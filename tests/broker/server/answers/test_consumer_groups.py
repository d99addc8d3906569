"""Groups of KIP-848: there are none, and clients that want one are told at once."""

from __future__ import annotations

import struct
import time

import confluent_kafka
import pytest
from broker.clients import Client, until
from broker.server.client import WireClient
from kafka.protocol.metadata import ApiVersionsRequest

from dafka import Broker

HEARTBEAT, DESCRIBE = 68, 69
UNSUPPORTED_VERSION = 35

# What Apache Kafka 4.3 answers with group.coordinator.rebalance.protocols=classic, behind the correlation id.
HEARTBEAT_ANSWER = bytes.fromhex("00000000002300000000000000000000ff00")
DESCRIBE_ANSWER = bytes.fromhex("00000000020023000367310100000000000000000101800000000000")


def compact(text: bytes | None) -> bytes:
    return b"\0" if text is None else bytes([len(text) + 1]) + text


def heartbeat_body(version: int) -> bytes:
    body = compact(b"g1") + compact(b"member") + struct.pack(">i", 0) + compact(None) + compact(None)
    body += struct.pack(">i", 300_000) + b"\2" + compact(b"topic")
    return body + (compact(None) if version else b"") + compact(None) + b"\1" + b"\0"


def ask(wire: WireClient, key: int, version: int, body: bytes) -> bytes:
    """The body of the response to a flexible request."""
    frame = struct.pack(">hhi", key, version, 7) + struct.pack(">h", 5) + b"tests" + b"\0" + body
    wire.socket.sendall(struct.pack(">i", len(frame)) + frame)
    answer = wire.receive_frame()
    assert answer[:5] == struct.pack(">i", 7) + b"\0"
    return answer[5:]


@pytest.mark.parametrize("version", [0, 1])
def test_a_heartbeat_is_answered_octet_for_octet_as_by_a_kafka_with_the_classic_protocol_only(
    wire: WireClient, version: int
):
    assert ask(wire, HEARTBEAT, version, heartbeat_body(version)) == HEARTBEAT_ANSWER
    assert wire.ask(ApiVersionsRequest(), 0).error_code == 0  # the connection is still in step


@pytest.mark.parametrize("version", [0, 1])
def test_so_is_the_description_of_such_groups(wire: WireClient, version: int):
    assert ask(wire, DESCRIBE, version, b"\2" + compact(b"g1") + b"\0\0") == DESCRIBE_ANSWER
    two = ask(wire, DESCRIBE, version, b"\3" + compact(b"a") + compact(b"b") + b"\0\0")
    assert two.count(struct.pack(">h", UNSUPPORTED_VERSION)) == 2


@pytest.mark.parametrize("body", [b"", b"\7", b"\2\x7fg1", b"\2\3g"])
def test_a_description_that_is_cut_ends_its_connection(broker: Broker, wire: WireClient, body: bytes):
    with pytest.raises(EOFError):
        ask(wire, DESCRIBE, 0, body)
    until(lambda: broker.discarded.get("short") == 1)


def test_librdkafka_fails_at_once_and_says_why(broker: Broker, client: Client):
    client.create("topic")
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": broker.bootstrap_servers, "group.id": "new", "group.protocol": "consumer"}
    )
    try:
        consumer.subscribe(["topic"])
        began = time.monotonic()
        message = until(lambda: consumer.poll(0.5), 20)
        assert time.monotonic() - began < 10
        assert message.error().name() == "_FATAL"
        assert "ConsumerGroupHeartbeat" in message.error().str()
        assert "not supported" in message.error().str()
    finally:
        consumer.close()
