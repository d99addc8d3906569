"""README, "RAW format": fetched octets are ZMTP 2.0's frames; and one topic for three kinds of clients."""

from __future__ import annotations

import kafka
import pytest
import zmq
from zper.clients import OK, fetch, identity, raw, write

from compat.kafka import KafkaConsumer, KafkaProducer
from dafka import Consumer
from dafka.broker.interface.admin import ConfigChange, ConfigOperation, Resource, ResourceType
from dafka.testing import TestBroker
from dafka.zper import ZperOptions


@pytest.fixture
def broker():
    with TestBroker(zper=ZperOptions(flush_interval=5)) as broker:
        yield broker


@pytest.fixture
def reader(broker, clients):
    return clients.dealer(broker.zper.reader_address, "events")


def test_a_frame_of_up_to_254_octets_has_a_head_of_2_and_a_longer_one_of_9(broker, clients, reader):
    sizes = (0, 1, 254, 255, 256, 70_000)
    write(clients, broker, "events", *[[b"x" * size] for size in sizes])
    _, octets = fetch(reader, 0, 10**6)
    heads = [bytes([0, size]) if size < 255 else b"\x02" + size.to_bytes(8, "big") for size in sizes]
    assert octets == b"".join(head + b"x" * size for head, size in zip(heads, sizes, strict=True))


def test_all_frames_but_the_last_have_the_bit_for_more(broker, clients, reader):
    write(clients, broker, "events", [b"a", b"b" * 300, b""])
    _, octets = fetch(reader, 0, 10**6)
    assert octets == b"\x01\x01a" + b"\x03" + (300).to_bytes(8, "big") + b"b" * 300 + b"\x00\x00"


def records_of(consumer, count):
    records = []
    while len(records) < count:
        records.append(next(consumer))
    return [(record.key, record.value) for record in records]


@pytest.mark.parametrize("kind", [KafkaConsumer, kafka.KafkaConsumer], ids=["in process", "over TCP"])
def test_a_kafka_consumer_reads_messages_of_a_zeromq_program(broker, clients, kind):
    write(clients, broker, "events", [b"hello"], [b"id", b"body"], [b""])
    consumer = kind(
        "events",
        bootstrap_servers=broker.bootstrap_servers,
        auto_offset_reset="earliest",
        consumer_timeout_ms=20_000,
    )
    try:
        assert records_of(consumer, 3) == [(None, b"hello"), (b"id", b"body"), (None, b"")]
    finally:
        consumer.close()


@pytest.mark.parametrize("compression", [None, "gzip"])
def test_a_zeromq_program_reads_records_of_a_kafka_producer(broker, reader, compression):
    with KafkaProducer(bootstrap_servers=broker.bootstrap_servers, compression_type=compression) as producer:
        producer.send("events", b"hello")
        producer.send("events", key=b"id", value=b"body")
        producer.send("events", key=b"deleted", value=None)
    expected = raw(b"hello") + raw(b"id", b"body") + raw(b"deleted", b"")
    assert fetch(reader, 0, 10**6) == [OK, expected]
    assert fetch(reader, 0, -1) == [OK]
    assert [reader.recv_multipart() for _ in range(3)] == [[b"hello"], [b"id", b"body"], [b"deleted", b""]]


def test_all_kinds_of_clients_read_each_others_writes_in_one_order(broker, clients, reader):
    with KafkaProducer(bootstrap_servers=broker.bootstrap_servers) as producer:
        for number in range(50):
            producer.send("events", b"kafka %d" % number).get(timeout=100)
            write(clients, broker, "events", [b"zper %d" % number], [b"a", b"b", b"%d" % number])
    expected = b"".join(
        raw(b"kafka %d" % number) + raw(b"zper %d" % number) + raw(b"a", b"b", b"%d" % number)
        for number in range(50)
    )
    assert fetch(reader, 0, 10**6) == [OK, expected]
    consumer = KafkaConsumer(
        "events", bootstrap_servers=broker.bootstrap_servers, auto_offset_reset="earliest"
    )
    records = records_of(consumer, 150)
    consumer.close()
    assert records[:3] == [(None, b"kafka 0"), (None, b"zper 0"), (b"a", raw(b"a", b"b", b"0"))]


def test_a_dafka_consumer_reads_what_a_zeromq_program_writes(broker, clients):
    with Consumer(["events"], tower=broker.tower, offset_reset="earliest") as consumer:
        write(clients, broker, "events", [b"hello"], [b"id", b"body"])
        records = [next(consumer) for _ in range(2)]
    assert [(record.key, record.value) for record in records] == [(None, b"hello"), (b"id", b"body")]


def test_aborted_records_have_no_octets(broker, reader):
    with KafkaProducer(bootstrap_servers=broker.bootstrap_servers, transactional_id="t") as producer:
        producer.init_transactions()
        for commit in (True, False, True):
            producer.begin_transaction()
            producer.send("events", b"%d" % commit).get(timeout=100)
            if commit:
                producer.commit_transaction()
            else:
                producer.abort_transaction()
        producer.begin_transaction()
        producer.send("events", b"open").get(timeout=100)
        assert fetch(reader, 0, 100) == [OK, raw(b"1") + raw(b"1")]
        producer.commit_transaction()
    assert fetch(reader, 0, 100) == [OK, raw(b"1") + raw(b"1") + raw(b"open")]


def test_a_topic_with_positions_does_not_become_compacted(broker, clients):
    write(clients, broker, "events", [b"hello"])
    topic = Resource(ResourceType.TOPIC, "events")
    change = ConfigChange("cleanup.policy", ConfigOperation.SET, "compact")
    outcome = broker._within(lambda core: core.alter_configs({topic: [change]}))[topic]
    assert outcome.error is not None and "ZPER" in outcome.detail


def test_sockets_of_zmtp_2_and_3_write_the_same(broker, clients, reader):
    for kind in (zmq.PUSH, zmq.DEALER):  # the first is spoken to in ZMTP 2.0
        sock = clients.connect(kind, broker.zper.writer_address, identity("events"))
        sock.send_multipart([b"k", b"v" * 255])
    broker.wait_for_records("events", 2)
    assert fetch(reader, 0, 10**6) == [OK, 2 * raw(b"k", b"v" * 255)]
