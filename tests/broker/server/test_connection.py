"""A connection: requests that arrive in parts or not at all, and the order of responses."""

from __future__ import annotations

import socket
import struct

import pytest
from broker.clients import Client
from broker.server.client import WireClient, alive, discarded, encoded
from broker.server.samples import NO_ID, fetch, samples
from kafka.protocol.metadata import ApiVersionsRequest, MetadataRequest
from timing import until

from dafka import Broker
from dafka.broker.server import limits
from dafka.broker.server.table import BY_KEY


def test_responses_are_in_the_order_of_their_requests(client: Client, wire: WireClient):
    client.create("topic", 2)
    topic_id = client.call("metadata", ["topic"]).topics["topic"].topic_id
    known = [one for one in samples("topic", topic_id) if one.API_KEY in BY_KEY]
    everything = [(one, BY_KEY[one.API_KEY].last) for one in reversed(known)]
    sent = [wire.send(one, version) for one, version in everything]
    for (one, version), correlation in zip(everything, sent, strict=True):
        wire.receive(one, version, correlation)
    assert topic_id != NO_ID


def test_a_request_may_arrive_octet_by_octet(client: Client, wire: WireClient):
    client.create("topic")
    octets = encoded(MetadataRequest(topics=None), 1)
    for index in range(len(octets)):
        wire.socket.sendall(octets[index : index + 1])
    assert wire.receive(MetadataRequest(), 1, 1).topics[0].name == "topic"


def test_a_disconnect_within_a_request_is_counted(broker: Broker, wire: WireClient):
    wire.socket.sendall(encoded(MetadataRequest(topics=None), 1)[:-2])
    wire.socket.close()
    until(lambda: discarded(broker) == {"short": 1})


def test_a_disconnect_between_requests_is_not_counted(broker: Broker, wire: WireClient):
    wire.ask(ApiVersionsRequest(), 0)
    wire.socket.close()
    until(lambda: broker.metrics()["listener_connections"] == 0)
    assert discarded(broker) == {}


def test_an_incomplete_request_times_out(broker: Broker, wire: WireClient, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(limits, "REQUEST_SECONDS", 0.2)
    wire.socket.sendall(b"\0\0")
    assert wire.is_closed()
    with WireClient(broker) as other:
        other.socket.sendall(struct.pack(">i", 1 << 20) + bytes(5000))
        assert other.is_closed()
    until(lambda: discarded(broker) == {"slow": 2})


def test_an_announced_length_takes_no_memory(broker: Broker):
    announcing = [WireClient(broker) for _ in range(20)]
    for one in announcing:
        one.socket.sendall(struct.pack(">ih", limits.REQUEST_MAX_BYTES, 0))
    until(lambda: broker.metrics()["listener_held_bytes"] > 19 * limits.FIRST_CHUNK)
    assert broker.metrics()["listener_held_bytes"] <= 20 * limits.FIRST_CHUNK
    assert alive(broker)
    for one in announcing:
        one.socket.close()
    until(lambda: broker.metrics()["listener_held_bytes"] == 0)


def test_an_unread_response_times_out(
    broker: Broker, client: Client, wire: WireClient, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(limits, "WRITE_SECONDS", 0.2)
    client.create("topic")
    for _ in range(16):
        client.produce("topic", bytes(1_000_000))
    wire.send(fetch("topic", 0, max_bytes=50 << 20), 12)
    until(lambda: discarded(broker) == {"unread": 1})
    assert alive(broker)


def test_an_idle_connection_is_closed(broker: Broker, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(limits, "IDLE_SECONDS", 0.2)
    with WireClient(broker) as idle:
        assert idle.is_closed()
    assert discarded(broker) == {}


def test_a_slow_reader_delays_only_itself(broker: Broker, client: Client):
    client.create("topic")
    for _ in range(16):
        client.produce("topic", bytes(1_000_000))
    with WireClient(broker) as slow, WireClient(broker) as quick:
        for _ in range(4):
            slow.send(fetch("topic", 0, max_bytes=50 << 20), 12)
        until(lambda: broker.metrics()["listener_held_bytes"] > 1_000_000)
        for _ in range(3):
            answer = quick.ask(fetch("topic", 0, max_bytes=50 << 20), 12)
            assert len(answer.responses[0].partitions[0].records) > 15_000_000
        # One response of the slow one is under way, and no more; the quick one's last is read, and given back
        # as soon as the green thread that sent it goes on.
        until(lambda: broker.metrics()["listener_held_bytes"] < 20_000_000)


def test_a_fetch_ends_with_its_client_and_others_continue(broker: Broker, client: Client, wire: WireClient):
    client.create("topic")
    request = fetch("topic", 0, wait=300_000)
    waiting = wire.send(request, 12)
    for number, end in enumerate(("closed", "reset"), 1):
        with WireClient(broker) as gone:
            gone.send(request, 12)
            until(lambda: broker.metrics()["listener_requests"] == 1 + number)  # noqa: B023
            if end == "reset":
                gone.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    until(lambda: broker.metrics()["listener_connections"] == 1)
    client.produce("topic", b"a")
    answer = wire.receive(request, 12, waiting).responses[0].partitions[0]
    assert answer.high_watermark == 1
    assert discarded(broker) == {}
