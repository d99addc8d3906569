"""Produce through the listener."""

from __future__ import annotations

import os
from itertools import repeat
from typing import Any

import pytest
from broker.clients import Client, batch
from broker.server.client import WireClient, discarded
from broker.server.samples import produce
from kafka.errors import (
    CorruptRecordError,
    InvalidProducerEpochError,
    InvalidRecordError,
    InvalidRequiredAcksError,
    MessageSizeTooLargeError,
    OutOfOrderSequenceNumberError,
    TransactionalIdAuthorizationFailedError,
    UnknownTopicIdError,
    UnknownTopicOrPartitionError,
    UnsupportedCompressionTypeError,
)
from kafka.protocol.metadata import ApiVersionsRequest
from timing import until

from dafka import Broker
from dafka.broker.interface.admin import ConfigChange, ConfigOperation, Resource, ResourceType
from dafka.broker.interface.broker import TopicSpec
from dafka.hub import limits
from dafka.protocol.batch import with_offset, with_producer
from dafka.protocol.batch_writer import encode_batch

NEWEST_BY_NAME = 12
VERSIONS = range(3, NEWEST_BY_NAME + 1)


def partition(response, index=0):
    return response.responses[0].partition_responses[index]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("acks", [1, -1])
def test_records_get_their_offsets(client: Client, wire: WireClient, version: int, acks: int):
    client.create("topic")
    first = partition(wire.ask(produce("topic", batch(b"a", b"b"), acks=acks), version))
    second = partition(wire.ask(produce("topic", batch(b"c"), acks=acks), version))
    assert (first.error_code, first.base_offset) == (0, 0)
    assert (second.error_code, second.base_offset) == (0, 2)
    assert client.values("topic") == [b"a", b"b", b"c"]


def test_large_batches_under_way_at_once_are_stored_as_they_came(client: Client, wire: WireClient):
    client.create("topic")
    sent = [batch(*[bytes([number]) * 100_000] * (number + 2)) for number in range(8)]
    requests = [produce("topic", content) for content in sent]
    numbers = [wire.send(request, 7) for request in requests]
    answers = [wire.receive(*one) for one in zip(requests, repeat(7), numbers, strict=False)]
    offsets = [partition(one).base_offset for one in answers]
    assert offsets == [0, 2, 5, 9, 14, 20, 27, 35]
    stored = client.fetch("topic", max_bytes=10_000_000).batches
    assert stored == [with_offset(*one) for one in zip(sent, offsets, strict=True)]


def test_topics_have_ids_from_version_13_on(client: Client, wire: WireClient):
    client.create("topic", 2)
    topic_id = client.call("metadata", ["topic"]).topics["topic"].topic_id
    response = wire.ask(produce("", batch(b"a"), batch(b"b"), topic_id=topic_id), 13)
    assert response.responses[0].topic_id == topic_id
    assert [partition(response, index).error_code for index in (0, 1)] == [0, 0]
    assert client.values("topic", partition=1) == [b"b"]


def test_the_id_of_a_deleted_topic_is_unknown(client: Client, wire: WireClient):
    client.create("topic")
    topic_id = client.call("metadata", ["topic"]).topics["topic"].topic_id
    client.call("delete_topics", ["topic"])
    client.create("topic")
    response = wire.ask(produce("", batch(b"a"), topic_id=topic_id), 13)
    assert partition(response).error_code == UnknownTopicIdError.errno


GOOD, ZSTD = batch(b"a"), batch(b"a" * 100, compression="zstd")


@pytest.mark.parametrize(
    ("records", "version", "error"),
    [
        pytest.param(GOOD + GOOD, 9, InvalidRecordError, id="two batches"),
        pytest.param(GOOD + GOOD, 4, InvalidRecordError, id="two batches, an old version"),
        pytest.param(GOOD + GOOD[:-1] + b"?", 9, InvalidRecordError, id="two batches, one damaged"),
        pytest.param(GOOD[:-1] + b"?" + GOOD, 9, InvalidRecordError, id="two batches, the first damaged"),
        pytest.param(GOOD + bytes(20), 9, CorruptRecordError, id="zeros behind it"),
        pytest.param(ZSTD + GOOD, 6, UnsupportedCompressionTypeError, id="zstd and another one"),
        pytest.param(GOOD + ZSTD, 6, InvalidRecordError, id="two batches, the second zstd"),
        pytest.param(ZSTD, 6, UnsupportedCompressionTypeError, id="zstd"),
        pytest.param(GOOD + b"xxxxx", 9, None, id="a cut header behind it"),
        pytest.param(GOOD + b"\1" * 100, 9, None, id="a cut batch of an old version behind it"),
        pytest.param(GOOD + GOOD[:-1], 9, None, id="a cut batch behind it"),
    ],
)
def test_a_partition_gets_one_batch_and_exists_before_anything_else_counts(
    client: Client, wire: WireClient, records: bytes, version: int, error: type | None
):
    client.create("topic")
    answer = partition(wire.ask(produce("topic", records), version))
    assert answer.error_code == (error.errno if error else 0)
    assert client.values("topic") == ([] if error else [b"a"])
    asked = produce("topic", records)
    asked.topic_data[0].partition_data[0].index = 7
    assert partition(wire.ask(asked, version)).error_code == UnknownTopicOrPartitionError.errno
    asked = produce("other", records)
    assert partition(wire.ask(asked, version)).error_code == UnknownTopicOrPartitionError.errno


def test_a_batch_is_stored_unchanged(client: Client, wire: WireClient):
    client.create("topic")
    content = batch(b"a" * 1000, compression="gzip")
    wire.ask(produce("topic", content), NEWEST_BY_NAME)
    assert client.fetch("topic").batches[0][16:] == content[16:]


@pytest.mark.parametrize(
    ("records", "error"),
    [
        pytest.param(None, InvalidRecordError, id="null"),
        pytest.param(b"", InvalidRecordError, id="nothing"),
        pytest.param(b"garbage", InvalidRecordError, id="garbage"),
        pytest.param(batch(b"a")[:-1] + b"?", CorruptRecordError, id="checksum"),
        pytest.param(batch(b"a")[:-1], InvalidRecordError, id="cut"),
        pytest.param(batch(b"a")[:11] + b"\x38" + batch(b"a")[12:], CorruptRecordError, id="shorter"),
        pytest.param(batch(b"a")[:16] + b"\1" + batch(b"a")[17:], InvalidRecordError, id="magic 1"),
        pytest.param(batch(b"x" * 1_100_000), MessageSizeTooLargeError, id="oversize"),
        pytest.param(batch(b"a", base_offset=100), InvalidRecordError, id="base offset"),
    ],
)
def test_invalid_records_get_kafkas_error_with_a_message(
    client: Client, wire: WireClient, records: bytes | None, error: type
):
    client.create("topic", 2)
    response = wire.ask(produce("topic", records, batch(b"good")), NEWEST_BY_NAME)
    assert partition(response).error_code == error.errno
    assert partition(response).error_message
    assert partition(response, 1).error_code == 0
    assert client.values("topic", partition=1) == [b"good"]


@pytest.mark.parametrize("version", [7, 8, NEWEST_BY_NAME])
def test_invalid_records_are_listed_from_version_8_on(client: Client, wire: WireClient, version: int):
    client.call("create_topics", {"topic": TopicSpec(1, {"cleanup.policy": "compact"})})
    records = encode_batch([(1, key, b"v", ()) for key in (b"a", None, b"b", None)])
    answer = partition(wire.ask(produce("topic", records), version))
    assert answer.error_code == InvalidRecordError.errno
    if version < 8:
        return
    assert [one.batch_index for one in answer.record_errors] == [1, 3]
    assert all("without a key" in one.batch_index_error_message for one in answer.record_errors)
    assert "2 of 4 records" in answer.error_message


def test_an_unknown_partition_is_refused(client: Client, wire: WireClient):
    response = wire.ask(produce("nothing", batch(b"a")), NEWEST_BY_NAME)
    assert partition(response).error_code == UnknownTopicOrPartitionError.errno


def test_invalid_acks_are_refused(client: Client, wire: WireClient):
    client.create("topic")
    response = wire.ask(produce("topic", batch(b"a"), acks=2), NEWEST_BY_NAME)
    assert partition(response).error_code == InvalidRequiredAcksError.errno
    response = wire.ask(produce("topic", b"", acks=2), NEWEST_BY_NAME)
    assert partition(response).error_code == InvalidRecordError.errno


def test_zstd_needs_version_7(client: Client, wire: WireClient):
    client.create("topic")
    content = batch(b"a" * 100, compression="zstd")
    assert (
        partition(wire.ask(produce("topic", content), 6)).error_code == UnsupportedCompressionTypeError.errno
    )
    assert partition(wire.ask(produce("topic", content), 7)).error_code == 0


@pytest.mark.parametrize("version", range(3))
def test_versions_without_record_batches_end_the_connection(client: Client, wire: WireClient, version: int):
    client.create("topic")
    with pytest.raises(EOFError):
        wire.ask(produce("topic", batch(b"a")), version)
    assert client.values("topic") == []


def test_acks_0_gets_no_response(client: Client, wire: WireClient):
    client.create("topic")
    wire.send(produce("topic", batch(b"a"), acks=0), NEWEST_BY_NAME)
    assert wire.ask(ApiVersionsRequest(), 0).error_code == 0
    until(lambda: client.values("topic") == [b"a"])


def test_an_error_with_acks_0_closes_the_connection(broker: Broker, wire: WireClient):
    wire.send(produce("nothing", batch(b"a"), acks=0), NEWEST_BY_NAME)
    assert wire.is_closed()
    assert discarded(broker) == {"acks0": 1}


@pytest.mark.parametrize("bound", ["", "dafka.broker.records.pending.PENDING_BYTES", "CONNECTION_BYTES"])
def test_pipelined_requests_are_stored_and_answered_in_order(
    client: Client, wire: WireClient, monkeypatch: pytest.MonkeyPatch, bound: str
):
    """Also if the broker or the connection handles one batch at a time."""
    if bound:
        monkeypatch.setattr(bound if "." in bound else f"dafka.broker.server.limits.{bound}", 1)
    monkeypatch.setattr("dafka.broker.server.limits.CONNECTION_REQUESTS", 50)
    client.create("topic")
    request = produce("topic", batch(b"x"))
    count = 100
    sent = [wire.send(produce("topic", batch(b"%d" % number)), 9) for number in range(count)]
    offsets = [partition(wire.receive(request, 9, one)).base_offset for one in sent]
    assert offsets == list(range(count))
    assert client.values("topic") == [b"%d" % number for number in range(count)]


def test_another_request_after_produce_requests_is_answered_after_them(client: Client, wire: WireClient):
    client.create("topic")
    request = produce("topic", batch(b"x"))
    first, second = wire.send(request, 9), wire.send(request, 9)
    versions = ApiVersionsRequest()
    third, fourth = wire.send(versions, 0), wire.send(request, 9)
    assert partition(wire.receive(request, 9, first)).base_offset == 0
    assert partition(wire.receive(request, 9, second)).base_offset == 1
    assert wire.receive(versions, 0, third).error_code == 0
    assert partition(wire.receive(request, 9, fourth)).base_offset == 2


@pytest.mark.parametrize("topics", [1, 2])
def test_the_last_of_two_entries_for_a_partition_counts(client: Client, wire: WireClient, topics: int):
    """As in Kafka, and it is answered once, whether its topic is named twice as well."""
    client.create("topic")

    def ask(first: bytes, last: bytes) -> list[int]:
        request = produce("topic", first, last)
        (topic,) = request.topic_data
        for one in topic.partition_data:
            one.index = 0
        if topics > 1:
            request.topic_data = [produce("topic", one).topic_data[0] for one in (first, last)]
        answered = wire.ask(request, NEWEST_BY_NAME).responses
        return [one.error_code for topic in answered for one in topic.partition_responses]

    assert ask(batch(b"a"), batch(b"b")) == [0]
    bad = batch(b"c")[:-1] + b"?"
    assert ask(bad, batch(b"d")) == [0]
    assert ask(batch(b"e"), bad) == [2]
    assert client.values("topic") == [b"b", b"d"]


def both(packed: bytes | None, plain: bytes) -> Any:
    """A request for the partitions 0 of two topics, or of the second one alone."""
    request = produce("packed", packed)
    other = produce("plain", plain).topic_data
    request.topic_data = [*(request.topic_data if packed else ()), *other]
    return request


def test_a_partition_keeps_its_order_beside_one_that_is_recompressed(client: Client, wire: WireClient):
    """The requests of a connection are stored in their order, although one of them has to wait."""
    client.create("plain")
    specs = {"packed": TopicSpec(1, configs={"compression.type": "gzip"})}
    assert client.change("create_topics", specs) == {"packed": None}
    takes_time = batch(os.urandom(900_000))
    requests = []
    for number in range(6):
        requests += [
            both(takes_time, batch(b"%d" % (2 * number))),
            both(None, batch(b"%d" % (2 * number + 1))),
        ]
    sent = [wire.send(request, NEWEST_BY_NAME) for request in requests]
    for number, (request, correlation) in enumerate(zip(requests, sent, strict=True)):
        response = wire.receive(request, NEWEST_BY_NAME, correlation)
        answers = {topic.name: topic.partition_responses[0] for topic in response.responses}
        assert (answers["plain"].error_code, answers["plain"].base_offset) == (0, number)
    assert client.values("plain") == [b"%d" % number for number in range(12)]
    assert len(client.values("packed")) == 6


def test_a_partition_keeps_its_order_when_recompression_ends(
    broker: Broker, client: Client, wire: WireClient
):
    specs = {"packed": TopicSpec(1, configs={"compression.type": "gzip"})}
    assert client.change("create_topics", specs) == {"packed": None}
    large = [produce("packed", batch(b"%d" % number + os.urandom(900_000))) for number in range(8)]
    sent = [wire.send(request, NEWEST_BY_NAME) for request in large]
    until(lambda: broker.metrics()["listener_requests"] == len(large))
    change = {
        Resource(ResourceType.TOPIC, "packed"): [
            ConfigChange("compression.type", ConfigOperation.SET, "producer")
        ]
    }
    client.call("alter_configs", change)
    small = produce("packed", batch(b"last"))
    last = wire.send(small, NEWEST_BY_NAME)
    for request, correlation in zip([*large, small], [*sent, last], strict=True):
        assert partition(wire.receive(request, NEWEST_BY_NAME, correlation)).error_code == 0
    assert [value[:4] for value in client.values("packed")][-1] == b"last"


def test_a_batch_of_a_transaction_without_an_id_has_all_of_the_request_refused(
    client: Client, wire: WireClient
):
    """As in Kafka, which asks first whether the client may write in a transaction, of whatever topic."""
    client.create("topic")
    transactional = with_producer(batch(b"a"), 7, 0, 0, transactional=True)
    response = wire.ask(produce("topic", batch(b"b"), transactional), 9)
    refused = TransactionalIdAuthorizationFailedError.errno
    assert [partition(response, index).error_code for index in (0, 1)] == [refused, refused]
    assert client.values("topic") == []


@pytest.mark.parametrize("topics", [limits.PACE_ITEMS, 150])
def test_a_request_of_many_topics_is_not_overtaken_by_the_next_one(
    client: Client, wire: WireClient, monkeypatch: pytest.MonkeyPatch, topics: int
):
    names = [f"t{number}" for number in range(topics)]
    for name in names:
        client.create(name)
    known = client.call("metadata", names).topics

    def of(names: list[str], value: bytes) -> Any:
        parts = [produce("", batch(value), topic_id=known[name].topic_id).topic_data[0] for name in names]
        return produce("", topic_data=parts)

    monkeypatch.setattr(limits, "PACE_SECONDS", -1.0)  # whoever may pause does
    requests = [of(names, b"first"), of(names[:1], b"second")]
    sent = [wire.send(request, 13) for request in requests]
    for request, number in zip(requests, sent, strict=True):
        assert partition(wire.receive(request, 13, number)).error_code == 0
    assert client.values("t0") == [b"first", b"second"]


def test_the_beginning_of_the_log_is_told_with_what_the_log_refuses(client: Client, wire: WireClient):
    client.create("topic")
    client.produce("topic", b"a", b"b")
    client.call("delete_records", {("topic", 0): 1})

    def start(records: bytes) -> tuple[int, int]:
        answer = partition(wire.ask(produce("topic", records), NEWEST_BY_NAME))
        return answer.error_code, answer.log_start_offset

    def numbered(epoch: int, sequence: int) -> bytes:
        return with_producer(batch(b"x"), 7, epoch, sequence)

    assert start(numbered(1, 0)) == (0, 1)
    assert start(numbered(1, 5)) == (OutOfOrderSequenceNumberError.errno, 1)
    assert start(numbered(1, -1)) == (InvalidRecordError.errno, 1)
    assert start(numbered(0, 0)) == start(numbered(-1, 0)) == (InvalidProducerEpochError.errno, 1)
    assert start(batch(b"a", base_offset=100)) == (InvalidRecordError.errno, 1)
    assert start(batch(b"a")[:-1]) == (InvalidRecordError.errno, -1)
    assert start(batch(b"a")[:-1] + b"?") == (CorruptRecordError.errno, -1)


def test_a_batch_that_comes_again_is_told_with_its_time(client: Client, wire: WireClient):
    client.create("topic")
    content = with_producer(batch(b"x"), 7, 0, 0)
    answers = [partition(wire.ask(produce("topic", content), NEWEST_BY_NAME)) for _ in range(2)]
    assert [one.base_offset for one in answers] == [0, 0]
    assert [one.log_append_time_ms for one in answers] == [-1, 1000]
