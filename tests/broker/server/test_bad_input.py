"""Invalid requests get an error of the protocol, or close the connection with a reason in the log."""

from __future__ import annotations

import logging
import struct

import pytest
from broker.clients import Client, batch
from broker.server.client import WireClient, discarded, frame, header
from kafka.protocol.metadata import ApiVersionsRequest, MetadataRequest

from dafka import Broker
from dafka.broker.codec import limits as codec_limits
from dafka.broker.server import limits


@pytest.mark.parametrize(
    ("octets", "cause"),
    [
        pytest.param(struct.pack(">i", -1), "size", id="negative length"),
        pytest.param(struct.pack(">i", 2**31 - 1), "size", id="absurd length"),
        pytest.param(struct.pack(">i", limits.REQUEST_MAX_BYTES + 1) + bytes(10), "size", id="too large"),
        pytest.param(
            struct.pack(">ih", limits.SMALL_REQUEST_MAX_BYTES + 1, 3) + bytes(10),
            "size",
            id="a large Metadata",
        ),
        pytest.param(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "http", id="HTTP"),
        pytest.param(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", "tls", id="TLS"),
        pytest.param(frame(b""), "short", id="empty"),
        pytest.param(frame(bytes(9)), "short", id="half a header"),
        pytest.param(frame(header(3, 1, b"\0\x09tests")), "short", id="truncated client id"),
        pytest.param(frame(header(3, 1, b"\0\1\xff") + bytes(4)), "text", id="client id not UTF-8"),
        pytest.param(frame(header(3, 1) + b"\0\0\0\1"), "short", id="truncated body"),
        pytest.param(frame(header(3, 1) + b"\x7f\xff\xff\xff"), "short", id="more items than octets"),
        pytest.param(frame(header(3, 1) + b"\0\0\0\1\0\1\xff"), "text", id="topic not UTF-8"),
        pytest.param(frame(header(3, 9) + b"\0" + b"\xff" * 6), "varint", id="a varint without end"),
        pytest.param(frame(header(12, 0) + b"\xff\xff" + bytes(8)), "null", id="null not allowed"),
        pytest.param(frame(header(0, 9) + b"\0\0"), "short", id="truncated Produce"),
        pytest.param(frame(header(1, 12) + b"\0" + bytes(10)), "short", id="truncated Fetch"),
        pytest.param(frame(header(999, 0)), "unsupported", id="unknown API"),
        pytest.param(frame(header(-1, 0)), "unsupported", id="a negative API"),
        pytest.param(frame(header(3, 99)), "unsupported", id="unknown version of Metadata"),
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
