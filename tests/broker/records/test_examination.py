"""Every record of a client's batch is examined: what a broker then answers, however much there is of it."""

from __future__ import annotations

import random
import threading
import tracemalloc
from collections.abc import Iterator
from typing import Any

import kafka.errors as errors
import pytest
from broker.clients import Client, batch, counting
from broker.server.client import WireClient
from broker.server.samples import produce as produce_request
from crc32c import crc32c
from protocol.material import codecs
from timing import until

from compat.kafka import KafkaProducer
from dafka import Broker
from dafka.broker.interface.broker import Produced, TopicSpec
from dafka.broker.interface.errors import BrokerStoppedError
from dafka.protocol.batch import (
    CRC_END,
    CRC_START,
    HEADER,
    HEADER_OCTETS,
    LENGTH_END,
    BatchHeader,
    check_batch,
)
from dafka.protocol.batch_body import Allowance, Work
from dafka.protocol.batch_records import Examined, examine
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


@pytest.mark.parametrize(
    ("configs", "stored"),
    [
        ({}, 0x3C0),
        ({"message_timestamp_type": "LogAppendTime"}, 0x48),
        ({"compression_type": "gzip"}, 0x01),
    ],
)
def test_attributes_without_a_meaning_go_where_apache_kafka_drops_them(client, configs, stored):
    create(client, **configs)
    content = batch(b"a")
    content = sealed(check_batch(content)._replace(attributes=0x3C0), content[HEADER_OCTETS:])
    assert produce(client, content).error is None
    assert check_batch(client.fetch("t").batches[0]).attributes == stored


def test_attributes_without_a_meaning_go_where_a_largest_time_is_put_right(client):
    create(client)
    content = batch(b"a")
    header = check_batch(content)._replace(attributes=0x3C0, max_timestamp=5)
    assert produce(client, sealed(header, content[HEADER_OCTETS:])).error is None
    stored = check_batch(client.fetch("t").batches[0])
    assert (stored.attributes, stored.max_timestamp) == (0x40, 1000)


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


# -- what ends while a batch is examined in a thread --------------------------------------------


class Gate:
    """Lets nothing be examined in a thread until it opens."""

    def __init__(self) -> None:
        self.reached, self.opened = threading.Event(), threading.Event()

    def examine(self, content: bytes, header: BatchHeader, work: Work) -> Examined:
        if not isinstance(work, Allowance):
            self.reached.set()
            assert self.opened.wait(100)
        return examine(content, header, work)


@pytest.fixture
def gate(monkeypatch) -> Iterator[Gate]:
    gate = Gate()
    monkeypatch.setattr("dafka.broker.records.admission.examine", gate.examine)
    yield gate
    gate.opened.set()


def large(value: bytes) -> bytes:
    """A batch that is not examined in the hub: it is compressed, and more than is unfolded there."""
    return batch(value + random.Random(1).randbytes(50_000) + bytes(50_000), compression="gzip")


def test_the_next_batch_is_taken_after_a_client_has_gone_while_its_batch_was_examined(tmp_path, gate):
    with Broker(tmp_path, listen="127.0.0.1:0") as broker:
        client = Client(broker)
        create(client)
        leaving = WireClient(broker)
        leaving.send(produce_request("t", large(b"of the one that leaves")), 8)
        assert gate.reached.wait(100)
        leaving.socket.close()
        outcomes: list[int] = []

        def produce_next() -> None:
            with WireClient(broker) as staying:
                response = staying.ask(produce_request("t", batch(b"next")), 8)
                outcomes.append(response.responses[0].partition_responses[0].error_code)

        thread = threading.Thread(target=produce_next)
        thread.start()
        assert until(lambda: has_a_line(client, "t"))
        gate.opened.set()
        thread.join(100)
        assert outcomes == [0]
        stored = [value[:4] for value in client.values("t")]
        assert stored in ([b"next"], [b"of t", b"next"])
        assert until(lambda: not client.core._record_calls._lines._lines)


def test_a_topic_may_be_deleted_while_a_batch_for_it_is_examined(client, gate):
    create(client)
    outcomes: list[Produced] = []
    thread = threading.Thread(target=lambda: outcomes.append(produce(client, large(b"for the old one"))))
    thread.start()
    assert gate.reached.wait(100)
    assert client.change("delete_topics", ["t"]) == {"t": None}
    create(client)
    gate.opened.set()
    thread.join(100)
    assert [one.error for one in outcomes] == [errors.UnknownTopicOrPartitionError]
    assert produce(client, batch(b"for the new one")).base_offset == 0
    assert client.values("t") == [b"for the new one"]


def test_a_broker_that_stops_does_not_wait_for_ever_for_a_batch_that_is_examined(tmp_path, gate):
    broker = Broker(tmp_path)
    broker.start()
    client = Client(broker)
    create(client)
    outcomes: list[object] = []

    def produce_it() -> None:
        try:
            outcomes.append(produce(client, large(b"late")).error)
        except BrokerStoppedError as error:
            outcomes.append(type(error))

    threads = [threading.Thread(target=produce_it) for _ in range(3)]
    for thread in threads:
        thread.start()
    assert gate.reached.wait(100)
    stopping = threading.Thread(target=broker.stop)
    stopping.start()
    assert until(lambda: not broker.running)
    gate.opened.set()
    stopping.join(100)
    for thread in threads:
        thread.join(100)
    assert outcomes == [BrokerStoppedError] * 3
    with Broker(tmp_path) as again:
        assert Client(again).values("t") == []


def has_a_line(client: Client, topic: str) -> bool:
    """Whether two batches wait for the topic's partition."""
    calls = client.core._record_calls
    return len(calls._lines._lines.get(calls._topics.partition(topic, 0), ())) > 1
