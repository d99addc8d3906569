"""Requests from bytes, by the schemas of kafka-python: lengths are checked, and items are limited."""

from __future__ import annotations

import struct
import threading
from typing import Any

import pytest
from broker.server.samples import NO_ID, samples
from kafka.protocol.admin import DescribeGroupsRequest, DescribeTopicPartitionsRequest
from kafka.protocol.metadata import ApiVersionsRequest, MetadataRequest
from kafka.protocol.producer import InitProducerIdRequest

from dafka.broker.codec import limits, reader
from dafka.broker.codec.errors import BadRequestError
from dafka.broker.codec.reader import Items, TooManyItems, read_count, read_request, read_varint, skip_tags
from dafka.broker.server.table import BY_KEY

MESSAGES = [
    pytest.param(sample, version, id=f"{type(sample).__name__[:-7]}-{version}")
    for sample in samples("topic", NO_ID)
    if sample.API_KEY in BY_KEY and BY_KEY[sample.API_KEY].home is not None
    for version in range(type(sample).valid_versions[0], type(sample).valid_versions[1] + 1)
]


def read(request_class: type, version: int, octets: bytes) -> Any:
    return read_request(request_class, version, memoryview(octets), 0)


def metadata(*names: str) -> bytes:
    """A body of Metadata, version 4."""
    topics = b"".join(struct.pack(">h", len(name)) + name.encode() for name in names)
    return struct.pack(">i", len(names)) + topics + b"\1"


@pytest.mark.parametrize(("sample", "version"), MESSAGES)
def test_a_request_is_read_as_kafka_python_wrote_it(sample: Any, version: int):
    octets = bytes(sample.encode(version=version))
    assert bytes(read(type(sample), version, octets).encode(version=version)) == octets


@pytest.mark.parametrize(("sample", "version"), MESSAGES)
def test_a_request_that_ends_too_early_is_a_bad_request(sample: Any, version: int):
    octets = bytes(sample.encode(version=version))
    for end in range(0, len(octets), max(1, len(octets) // 20)):
        with pytest.raises(BadRequestError):
            read(type(sample), version, octets[:end])


def test_octets_behind_the_body_are_ignored():
    assert [one.name for one in read(MetadataRequest, 4, metadata("a") + b"more").topics] == ["a"]


def test_a_struct_may_be_null_where_the_protocol_allows_it():
    request_class = DescribeTopicPartitionsRequest
    cursor = request_class.Cursor(topic_name="t", partition_index=3)
    for expected in (None, cursor):
        request = request_class(topics=[], response_partition_limit=1, cursor=expected)
        found = read(request_class, 0, bytes(request.encode(version=0))).cursor
        assert (found is None) == (expected is None)
    assert (found.topic_name, found.partition_index) == ("t", 3)


def test_null_is_refused_with_the_name_of_the_field_unless_the_protocol_allows_it():
    transactional_id, timeout = b"\xff\xff", struct.pack(">i", 1000)
    assert read(InitProducerIdRequest, 1, transactional_id + timeout).transactional_id is None
    with pytest.raises(BadRequestError, match=r"^groups is null$") as caught:
        read(DescribeGroupsRequest, 1, struct.pack(">i", -1))
    assert caught.value.cause == "null"


def test_an_item_of_an_array_is_not_null_even_if_the_array_may_be():
    with pytest.raises(BadRequestError, match=r"^groups is null$"):
        read(DescribeGroupsRequest, 1, struct.pack(">ih", 1, -1))


def test_text_that_is_not_utf_8_is_a_bad_request():
    with pytest.raises(BadRequestError, match="MetadataRequest: ") as caught:
        read(MetadataRequest, 4, struct.pack(">ih", 1, 1) + b"\xff\1")
    assert caught.value.cause == "text"


def test_an_array_with_more_items_than_octets_is_refused_before_it_is_read():
    with pytest.raises(BadRequestError, match="2147483647 items are announced, 1 octets are left"):
        read(MetadataRequest, 4, struct.pack(">i", 2**31 - 1) + b"\1")


def test_a_varint_has_at_most_five_octets():
    assert read_varint(memoryview(b"\xff\xff\xff\xff\x0f"), 0) == (2**32 - 1, 5)
    with pytest.raises(BadRequestError, match="more than five octets"):
        read_varint(memoryview(b"\x80" * 5 + b"\0"), 0)


def test_the_length_of_a_tagged_field_must_be_that_of_its_value():
    body = b"\2a" + b"\2b"  # ApiVersions 3: name and version of the client's software
    assert read(ApiVersionsRequest, 3, body + b"\0").client_software_name == "a"
    assert read(ApiVersionsRequest, 3, body + b"\1\x70\2ab").client_software_version == "b"
    for tags in (b"\1\x70\3ab", b"\1\x70", b"\1"):
        with pytest.raises(BadRequestError):
            read(ApiVersionsRequest, 3, body + tags)


def test_a_request_has_at_most_so_many_items_and_the_next_one_as_many(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(limits, "REQUEST_ITEMS", 2)
    for _ in range(2):
        assert len(read(MetadataRequest, 4, metadata("a", "b")).topics) == 2
    with pytest.raises(TooManyItems, match="more than 2 items in a request"):
        read(MetadataRequest, 4, metadata("a", "b", "c"))


def test_threads_count_the_items_of_their_requests_separately(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(limits, "REQUEST_ITEMS", 1)
    begun, go_on, answers = threading.Event(), threading.Event(), []
    text = reader._text

    def slow(*args: Any) -> Any:
        if threading.current_thread() is other:
            begun.set()
            assert go_on.wait(100)
        return text(*args)

    def read_slowly() -> None:
        answers.append(len(read(MetadataRequest, 4, metadata("a")).topics))

    monkeypatch.setattr(reader, "_text", slow)
    other = threading.Thread(target=read_slowly)
    other.start()
    assert begun.wait(100)
    answers.append(len(read(MetadataRequest, 4, metadata("b")).topics))
    go_on.set()
    other.join(100)
    assert answers == [1, 1]


def test_counts_and_tagged_fields_outside_of_a_schema_use_the_same_items():
    items = Items(3)
    assert read_count(memoryview(b"\0\0\0\2ab"), 0, False, items) == (2, 4)
    assert skip_tags(memoryview(b"\1\x70\1a"), 0, items) == 4
    assert items.left == 0
    with pytest.raises(TooManyItems):
        read_count(memoryview(b"\2a"), 0, True, items)
    with pytest.raises(BadRequestError, match="an array is null"):
        read_count(memoryview(b"\0"), 0, True, items)
