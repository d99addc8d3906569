"""Invalid requests get an error of the protocol, or close the connection with a reason in the log."""

from __future__ import annotations

import logging
import struct

import pytest
import zmq
from broker.clients import Client, batch, until
from broker.server.client import WireClient, discarded, encoded
from broker.server.samples import NO_ID, fetch, produce, samples
from kafka.errors import UnsupportedVersionError
from kafka.protocol.metadata import ApiVersionsRequest, MetadataRequest
from kafka.protocol.sasl import SaslAuthenticateRequest, SaslHandshakeRequest

from dafka import Broker
from dafka.broker.codec import limits as codec_limits
from dafka.broker.server import limits
from dafka.broker.server.table import BY_KEY

HEADER = struct.Struct(">ihhi")


def frame(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


def header(key: int, version: int, client_id: bytes = b"\0\5tests") -> bytes:
    return struct.pack(">hhi", key, version, 7) + client_id


def alive(broker: Broker) -> bool:
    with WireClient(broker) as other:
        return other.ask(ApiVersionsRequest(), 0).error_code == 0


@pytest.mark.parametrize(
    ("octets", "cause"),
    [
        pytest.param(struct.pack(">i", -1), "size", id="negative length"),
        pytest.param(struct.pack(">i", 2**31 - 1), "size", id="absurd length"),
        pytest.param(
            struct.pack(">i", limits.REQUEST_MAX_BYTES + 1) + bytes(10), "size", id="more than the most"
        ),
        pytest.param(
            struct.pack(">ih", limits.SMALL_REQUEST_MAX_BYTES + 1, 3) + bytes(10),
            "size",
            id="a large Metadata",
        ),
        pytest.param(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "http", id="HTTP"),
        pytest.param(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", "tls", id="TLS"),
        pytest.param(frame(b""), "short", id="empty"),
        pytest.param(frame(bytes(9)), "short", id="half a header"),
        pytest.param(frame(header(3, 1, b"\0\x09tests")), "short", id="a client id that is cut"),
        pytest.param(frame(header(3, 1, b"\0\1\xff") + bytes(4)), "text", id="a client id that is no text"),
        pytest.param(frame(header(3, 1) + b"\0\0\0\1"), "short", id="a body that is cut"),
        pytest.param(frame(header(3, 1) + b"\x7f\xff\xff\xff"), "short", id="more items than octets"),
        pytest.param(frame(header(3, 1) + b"\0\0\0\1\0\1\xff"), "text", id="a topic that is no text"),
        pytest.param(frame(header(3, 9) + b"\0" + b"\xff" * 6), "varint", id="a varint without end"),
        pytest.param(frame(header(12, 0) + b"\xff\xff" + bytes(8)), "null", id="null where there is none"),
        pytest.param(frame(header(0, 9) + b"\0\0"), "short", id="a Produce that is cut"),
        pytest.param(frame(header(1, 12) + b"\0" + bytes(10)), "short", id="a Fetch that is cut"),
        pytest.param(frame(header(999, 0)), "unsupported", id="an API that does not exist"),
        pytest.param(frame(header(-1, 0)), "unsupported", id="a negative API"),
        pytest.param(frame(header(3, 99)), "unsupported", id="a version of Metadata that does not exist"),
        pytest.param(frame(header(3, -1)), "unsupported", id="a negative version"),
    ],
)
def test_a_malformed_request_closes_its_connection_and_is_counted_and_logged_once(
    broker: Broker, wire: WireClient, caplog: pytest.LogCaptureFixture, octets: bytes, cause: str
):
    with caplog.at_level(logging.WARNING, "dafka.broker.server"), WireClient(broker) as bystander:
        wire.socket.sendall(octets)
        assert wire.is_closed()
        assert bystander.ask(ApiVersionsRequest(), 0).error_code == 0
    assert discarded(broker) == {cause: 1}
    assert len([text for text in caplog.messages if "closed" in text and "ZeroMQ" not in text]) == 1


TOPICS = struct.pack(">i", 1) + b"\0\1t"
PARTITIONS = TOPICS + struct.pack(">i", 100)
BATCHES = batch(b"x") * 101


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(
            header(0, 3) + struct.pack(">hhi", -1, -1, 0) + PARTITIONS + struct.pack(">ii", 0, -1) * 100,
            id="partitions of a Produce",
        ),
        pytest.param(
            header(0, 3)
            + struct.pack(">hhi", -1, -1, 0)
            + TOPICS
            + struct.pack(">iii", 1, 0, len(BATCHES))
            + BATCHES,
            id="batches of a Produce",
        ),
        pytest.param(
            header(1, 4) + struct.pack(">iiiib", -1, 0, 0, 0, 0) + PARTITIONS + bytes(16) * 100,
            id="partitions of a Fetch",
        ),
        pytest.param(header(3, 1) + struct.pack(">i", 101) + b"\0\1t" * 101, id="topics of Metadata"),
        pytest.param(
            header(24, 0) + b"\0\1x" + bytes(10) + PARTITIONS + bytes(400), id="partitions of a transaction"
        ),
        pytest.param(
            header(18, 3) + b"\0\2a\2a" + bytes([101]) + b"\x70\0" * 101, id="tagged fields of ApiVersions"
        ),
        pytest.param(header(3, 12) + bytes([101]) + b"\x70\0" * 101, id="tagged fields of a header"),
    ],
)
def test_a_request_with_too_many_items_closes_its_connection(
    broker: Broker, wire: WireClient, monkeypatch: pytest.MonkeyPatch, body: bytes
):
    monkeypatch.setattr(codec_limits, "REQUEST_ITEMS", 100)
    Client(broker).create("t")
    wire.socket.sendall(frame(body))
    assert wire.is_closed()
    assert discarded(broker) == {"items": 1}


def test_the_limit_of_items_holds_for_each_request(wire: WireClient, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(codec_limits, "REQUEST_ITEMS", 100)
    names = MetadataRequest(
        topics=[MetadataRequest.MetadataRequestTopic(name=f"t{number}") for number in range(90)],
        allow_auto_topic_creation=False,
    )
    for _ in range(3):
        assert len(wire.ask(names, 4).topics) == 90


def test_many_closed_connections_of_one_cause_are_logged_a_few_times_and_then_counted(
    broker: Broker, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(limits, "REASON_SECONDS", 1.0)
    closed = 0

    def close_one(octets: bytes) -> None:
        nonlocal closed
        with WireClient(broker) as bad:
            bad.socket.sendall(octets)
            assert bad.is_closed()
        closed += 1

    def said() -> tuple[int, int]:
        """The number of connections in single lines, and in lines with a sum."""
        sums = [int(text.split()[0]) for text in caplog.messages if "(short)" in text]
        return len([text for text in caplog.messages if "a request of 0 bytes" in text]), sum(sums)

    with caplog.at_level(logging.WARNING, "dafka.broker.server"):
        for _ in range(limits.REASON_LINES + 5):
            close_one(frame(b""))
        close_one(frame(header(999, 0)))
        assert "API key 999" in caplog.text  # each cause has its own lines
        until(lambda: sum(said()) == limits.REASON_LINES + 5)
        assert said()[0] >= limits.REASON_LINES
        close_one(frame(b""))
        until(lambda: sum(said()) == limits.REASON_LINES + 6)  # single lines again in the next minute
    assert sum(broker.discarded.values()) >= closed


def test_the_number_of_closed_connections_is_logged_when_the_broker_stops(caplog: pytest.LogCaptureFixture):
    with caplog.at_level(logging.WARNING, "dafka.broker.server"), Broker(listen="127.0.0.1:0") as broker:
        for _ in range(limits.REASON_LINES + 3):
            with WireClient(broker) as bad:
                bad.socket.sendall(frame(b""))
                assert bad.is_closed()
        assert "more connections" not in caplog.text
    assert "3 more connections closed for the same cause (short)" in caplog.text


def test_a_zeromq_node_is_named_in_the_log(broker: Broker, caplog: pytest.LogCaptureFixture):
    with zmq.Context() as context, context.socket(zmq.SUB) as node:
        node.linger = 0
        with caplog.at_level(logging.WARNING, "dafka.broker.server"):
            node.connect(f"tcp://{broker.bootstrap_servers}")
            until(lambda: broker.discarded.get("zeromq", 0) >= 1)
    assert broker.discarded.keys() == {"zeromq"}
    assert "a ZeroMQ greeting; this port is for Kafka's protocol" in caplog.text
    assert alive(broker)


def test_a_disconnect_within_a_request_is_counted(broker: Broker, wire: WireClient):
    wire.socket.sendall(encoded(MetadataRequest(topics=None), 1)[:-2])
    wire.socket.close()
    until(lambda: discarded(broker) == {"short": 1})


def test_a_disconnect_between_requests_is_not_counted(broker: Broker, wire: WireClient):
    wire.ask(ApiVersionsRequest(), 0)
    wire.socket.close()
    until(lambda: broker.metrics()["listener_connections"] == 0)
    assert discarded(broker) == {}


def test_a_request_may_arrive_octet_by_octet(client: Client, wire: WireClient):
    client.create("topic")
    octets = encoded(MetadataRequest(topics=None), 1)
    for index in range(len(octets)):
        wire.socket.sendall(octets[index : index + 1])
    assert wire.receive(MetadataRequest(), 1, 1).topics[0].name == "topic"


def test_an_incomplete_request_times_out(broker: Broker, wire: WireClient, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(limits, "REQUEST_SECONDS", 0.2)
    wire.socket.sendall(b"\0\0")
    assert wire.is_closed()
    with WireClient(broker) as other:
        other.socket.sendall(struct.pack(">i", 1 << 20) + bytes(5000))
        assert other.is_closed()
    assert discarded(broker) == {"slow": 2}


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


def test_a_large_request_waits_until_others_leave_room(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(limits, "TOTAL_BYTES", 1)
    large = encoded(produce("topic", batch(bytes(500_000))), 9)
    with Broker(listen="127.0.0.1:0") as broker, WireClient(broker) as first, WireClient(broker) as second:
        Client(broker).create("topic")
        first.socket.sendall(large[:200_000])
        until(lambda: broker.metrics()["listener_held_bytes"] > 0)
        second.socket.sendall(large)
        until(lambda: broker.metrics()["listener_bytes_in"] > 100_000)
        first.socket.sendall(large[200_000:])
        for number, wire in enumerate((first, second)):
            answer = wire.receive(produce("topic"), 9, 1)
            assert answer.responses[0].partition_responses[0].base_offset == number


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


def test_the_number_of_connections_is_limited(
    broker: Broker, wire: WireClient, monkeypatch: pytest.MonkeyPatch
):
    wire.ask(ApiVersionsRequest(), 0)
    monkeypatch.setattr(limits, "CONNECTIONS", 1)
    with WireClient(broker) as one_more:
        assert one_more.is_closed()
    assert discarded(broker).keys() == {"connections"}
    assert wire.ask(ApiVersionsRequest(), 0).error_code == 0


@pytest.mark.parametrize("version", [5, 99, -1])
def test_an_unknown_version_of_api_versions_gets_version_0_with_the_supported_versions(
    wire: WireClient, version: int
):
    wire.socket.sendall(frame(header(18, version) + b"whatever it is"))
    octets = wire.receive_frame()
    assert octets[:6] == struct.pack(">ih", 7, UnsupportedVersionError.errno)
    assert struct.unpack_from(">i", octets, 6)[0] == len(BY_KEY)
    assert wire.ask(ApiVersionsRequest(), 0).error_code == 0


@pytest.mark.parametrize(
    ("request_", "version"),
    [(SaslHandshakeRequest(mechanism="PLAIN"), 1), (SaslAuthenticateRequest(auth_bytes=b"a"), 2)],
)
def test_unsupported_apis_get_the_error_of_the_protocol(wire: WireClient, request_, version: int):
    assert wire.ask(request_, version).error_code == UnsupportedVersionError.errno
    assert wire.ask(ApiVersionsRequest(), 0).error_code == 0


def test_consumer_group_heartbeat_gets_the_error_of_the_protocol(wire: WireClient):
    wire.socket.sendall(frame(header(68, 0) + b"\0" + bytes(20)))
    octets = wire.receive_frame()
    # correlation id, tags of the header, throttle time, error
    assert octets[:11] == struct.pack(">ibih", 7, 0, 0, UnsupportedVersionError.errno)
    assert wire.ask(ApiVersionsRequest(), 0).error_code == 0


def test_octets_after_the_body_are_ignored(wire: WireClient):
    wire.socket.sendall(frame(header(3, 1) + b"\0\0\0\0???"))
    assert wire.receive(MetadataRequest(), 1, 7).topics == []


def test_responses_are_in_the_order_of_their_requests(client: Client, wire: WireClient):
    client.create("topic", 2)
    topic_id = client.call("metadata", ["topic"]).topics["topic"].topic_id
    known = [one for one in samples("topic", topic_id) if one.API_KEY in BY_KEY]
    everything = [(one, BY_KEY[one.API_KEY].last) for one in reversed(known)]
    sent = [wire.send(one, version) for one, version in everything]
    for (one, version), correlation in zip(everything, sent, strict=True):
        wire.receive(one, version, correlation)
    assert topic_id != NO_ID
