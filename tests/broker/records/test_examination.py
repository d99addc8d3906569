"""Every record of a client's batch is examined: what a broker then answers, however much there is of it."""

from __future__ import annotations

import tracemalloc
from typing import Any

import kafka.errors as errors
import pytest
from broker.clients import Client, batch, counting
from crc32c import crc32c
from protocol.material import codecs

from compat.kafka import KafkaProducer
from dafka.broker.interface.broker import Produced, TopicSpec
from dafka.protocol.batch import (
    CRC_END,
    CRC_START,
    HEADER,
    HEADER_OCTETS,
    LENGTH_END,
    BatchHeader,
    check_batch,
)
from dafka.protocol.batch_records import examine
from dafka.protocol.batch_writer import encode_batch
from dafka.protocol.compression import compress, is_available
from dafka.protocol.varint import encode_varint

needs_zstd = pytest.mark.skipif(not is_available("zstd"), reason="zstd is not installed")


def create(client: Client, topic: str = "t", **configs: object) -> None:
    named = {name.replace("_", "."): str(value) for name, value in configs.items()}
    assert client.change("create_topics", {topic: TopicSpec(1, named)}) == {topic: None}


def produce(client: Client, *contents: bytes) -> Produced:
    return client.call("produce", {("t", 0): list(contents)})["t", 0]


# -- what the header says -----------------------------------------------------------------------


@pytest.mark.parametrize("codec", codecs)
@pytest.mark.parametrize("policy", ["delete", "compact"])
@pytest.mark.parametrize(("records", "count"), [(3, 2), (3, 4), (1, 2), (20_000, 19_999), (20_000, 20_001)])
def test_a_batch_with_more_or_fewer_records_than_it_says_is_refused(client, policy, records, count, codec):
    create(client, cleanup_policy=policy)
    content = encode_batch([(0, b"key", b"value", ())] * records, compression=codec)
    outcome = produce(client, counting(content, count))
    assert outcome.error is errors.InvalidRecordError
    assert produce(client, content).error is None
    assert len(client.values("t")) == records


@pytest.mark.parametrize("codec", codecs)
def test_a_batch_whose_records_nobody_could_read_is_refused(client, codec):
    create(client)
    right = encode_batch([(0, b"key", b"value", ())] * 3)
    body = right[HEADER_OCTETS:]
    doubled = body[: len(body) // 3] * 3  # each with offset delta 0
    header = check_batch(right)
    attributes = 0 if codec is None else check_batch(batch(bytes(999), compression=codec)).attributes
    for wrong in (body[:-1], body + b"x", doubled, body[:-1] + b"\2"):
        packed = wrong if codec is None else compress(codec, wrong)
        outcome = produce(client, sealed(header._replace(attributes=attributes), packed))
        assert outcome.error is errors.InvalidRecordError
        assert outcome.detail
    assert client.values("t") == []


def test_a_codec_that_there_is_not_is_refused(client):
    for number, wanted in enumerate(("producer", "gzip")):
        create(client, f"t{number}", compression_type=wanted)
        content = sealed(check_batch(batch(b"a"))._replace(attributes=5), b"body")
        outcome = client.call("produce", {(f"t{number}", 0): [content]})[f"t{number}", 0]
        assert outcome.error is errors.UnsupportedCompressionTypeError
        assert "codec 5" in outcome.detail


def test_batches_that_this_process_has_encoded_are_not_examined(broker, client, monkeypatch):
    examined: list[Any] = []

    def counted(*args: Any) -> Any:
        examined.append(args)
        return examine(*args)

    monkeypatch.setattr("dafka.broker.records.admission.examine", counted)
    create(client)
    for compression in (None, "gzip"):
        with KafkaProducer(
            bootstrap_servers=broker.bootstrap_servers, compression_type=compression
        ) as producer:
            producer.send("t", bytes(1000)).get(timeout=100)
    assert not examined
    assert produce(client, batch(b"a")).error is None
    assert len(examined) == 1
    create(client, "compacted", cleanup_policy="compact")
    content = batch(b"without a key")
    outcome = client.call("produce", {("compacted", 0): [content]}, trusted=True)["compacted", 0]
    assert outcome.error is errors.InvalidRecordError


# -- batches that unfold to more than they look -------------------------------------------------


def bomb(records: int, headers: int, *, base: int = 2000, largest: int = 1000) -> bytes:
    """A compressed batch of records with a key and that many headers each, of a few kilobytes."""
    fields = b"\0\0%b\0\1" + encode_varint(headers) + b"\0\1" * headers
    body = b"".join(
        encode_varint(len(record)) + record
        for number in range(records)
        for record in (fields % encode_varint(number),)
    )
    plain = batch(*[b""] * records)
    header = check_batch(plain)._replace(base_timestamp=base, max_timestamp=largest, attributes=4)
    return sealed(header, compress("zstd", body))


def sealed(header: BatchHeader, body: bytes) -> bytes:
    """The batch of that header and body, with the length and the checksum that it has."""
    head = HEADER.pack(*header._replace(length=HEADER_OCTETS - LENGTH_END + len(body)))
    crc = crc32c(body, crc32c(head[CRC_END:]))
    return head[:CRC_START] + crc.to_bytes(4, "big") + head[CRC_END:] + body


@needs_zstd
@pytest.mark.parametrize("configs", [{}, {"cleanup_policy": "compact"}, {"compression_type": "gzip"}])
@pytest.mark.parametrize(("headers", "error"), [(200_000, None), (20_000_000, errors.InvalidRecordError)])
def test_a_bomb_of_headers_delays_no_other_call_and_takes_no_memory_for_them(client, configs, headers, error):
    create(client, **configs)
    content = bomb(1, headers)
    assert len(content) < 8_000
    turns = client.connection.hub.turns
    produce(client, batch(b"warm"))
    tracemalloc.start()
    turns.reset()
    try:
        outcome = produce(client, content)
        client.call("list_offsets", {("t", 0): 1000, ("t", 1): -3})
        allowed = 120 if configs.get("compression_type") else 20
        assert tracemalloc.get_traced_memory()[1] < allowed * 1_000_000
    finally:
        tracemalloc.stop()
    assert outcome.error is error
    assert turns.longest_cpu < 0.5  # in one turn it is seconds


@needs_zstd
@pytest.mark.parametrize("configs", [{"cleanup_policy": "compact"}, {"compression_type": "gzip"}])
def test_a_batch_that_decompresses_to_too_much_is_refused_as_too_large(client, configs, monkeypatch):
    monkeypatch.setattr("dafka.protocol.compression.DECOMPRESSED_LIMIT", 1_000_000)
    create(client, **configs)
    content = encode_batch([(1, b"k", bytes(1_000_001), ())], compression="zstd")
    outcome = produce(client, content)
    assert outcome.error is errors.MessageSizeTooLargeError
    assert "decompresses to more than 1000000 octets" in outcome.detail
    assert produce(client, encode_batch([(1, b"k", bytes(900_000), ())], compression="zstd")).error is None


def test_a_batch_with_more_records_than_clients_read_is_refused_by_every_topic(client, monkeypatch):
    create(client)
    monkeypatch.setattr("dafka.protocol.batch_walk.RECORDS_LIMIT", 3)
    outcome = produce(client, batch(*[b""] * 4, compression="gzip"))
    assert outcome.error is errors.InvalidRecordError
    assert "at most 3" in outcome.detail
    assert produce(client, batch(*[b""] * 3)).error is None


def test_a_count_that_no_such_batch_can_have_is_refused(client):
    create(client)
    header = check_batch(batch(b"a"))
    outcome = produce(client, sealed(header._replace(count=9, last_offset_delta=8), bytes(8)))
    assert outcome.error is errors.InvalidRecordError
    assert "9 records in 8 octets" in outcome.detail
