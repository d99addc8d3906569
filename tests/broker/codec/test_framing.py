"""Frames of Kafka's protocol: headers of requests and responses, and the strings and sizes in them."""

from __future__ import annotations

import struct

import pytest
from kafka.protocol.metadata import ApiVersionsRequest, MetadataRequest

from dafka.broker.codec.errors import BadRequestError
from dafka.broker.codec.framing import (
    Header,
    array_size,
    body_of,
    compact_string,
    framed,
    read_header,
    string,
    varint,
)
from dafka.broker.codec.reader import read_compact_string, read_size, read_string, read_varint


def request(body: bytes = b"", client_id: bytes = b"\0\4test", key: int = 3, version: int = 9) -> memoryview:
    return memoryview(struct.pack(">hhi", key, version, 77) + client_id + body)


def test_a_header_has_key_version_correlation_id_and_client_id() -> None:
    assert read_header(request(b"body")) == Header(3, 9, 77, "test", 14)


def test_a_header_without_client_id() -> None:
    assert read_header(request(client_id=b"\xff\xff")) == Header(3, 9, 77, None, 10)


def test_kafka_pythons_header_is_read() -> None:
    for message, version in ((ApiVersionsRequest(), 3), (MetadataRequest(topics=[]), 4)):
        message.with_header(correlation_id=5, client_id="kafka-python")
        data = memoryview(message.encode(version=version, header=True))
        header = read_header(data)
        assert header[:4] == (message.API_KEY, version, 5, "kafka-python")
        begin = body_of(data, header, flexible=message.flexible_version_q(version))
        assert bytes(data[begin:]) == message.encode(version=version)


@pytest.mark.parametrize(
    ("data", "cause"),
    [
        pytest.param(bytes(9), "short", id="less than a header"),
        pytest.param(bytes(8) + b"\0\5test", "short", id="a client id that ends too early"),
        pytest.param(bytes(8) + b"\0\1\xff", "text", id="a client id that is not UTF-8"),
    ],
)
def test_a_malformed_header_is_a_bad_request(data: bytes, cause: str) -> None:
    with pytest.raises(BadRequestError) as caught:
        read_header(memoryview(data))
    assert caught.value.cause == cause


def test_the_body_begins_behind_the_tagged_fields_of_a_flexible_header() -> None:
    data = request(b"\1\x70\2ab" + b"body")
    header = read_header(data)
    assert bytes(data[body_of(data, header, flexible=True) :]) == b"body"
    assert bytes(data[body_of(data, header, flexible=False) :]) == b"\1\x70\2abbody"


def test_a_flexible_header_without_its_tagged_fields_is_a_bad_request() -> None:
    data = request()
    with pytest.raises(BadRequestError, match="the header ends too early"):
        body_of(data, read_header(data), flexible=True)


@pytest.mark.parametrize(("flexible", "tags"), [(False, b""), (True, b"\0")])
def test_a_response_has_its_length_its_correlation_id_and_the_buffers_as_they_are(
    flexible: bool, tags: bytes
) -> None:
    body = [b"ab", memoryview(b"cde")]
    frame = framed(77, flexible, body)
    assert b"".join(frame) == struct.pack(">ii", 4 + len(tags) + 5, 77) + tags + b"abcde"
    assert frame[1:] == body
    assert frame[2] is body[1]


@pytest.mark.parametrize("value", [0, 1, 127, 128, 300, 2**14, 2**31, 2**32 - 1])
def test_a_varint_is_read_as_it_was_written(value: int) -> None:
    octets = varint(value)
    assert read_varint(memoryview(octets), 0) == (value, len(octets))
    assert len(octets) == max(1, -(-value.bit_length() // 7))


@pytest.mark.parametrize("value", [None, "", "topic", "Flüge"])
def test_a_string_is_read_as_it_was_written(value: str | None) -> None:
    for octets, read in ((string(value), read_string), (compact_string(value), read_compact_string)):
        assert read(memoryview(octets), 0) == (value, len(octets))


@pytest.mark.parametrize("flexible", [False, True])
def test_the_length_of_an_array_is_read_as_it_was_written(flexible: bool) -> None:
    for count in (0, 1, 200):
        octets = array_size(count, flexible)
        assert read_size(memoryview(octets), 0, flexible) == (count, len(octets))
