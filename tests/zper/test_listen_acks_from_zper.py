"""README, "Listen acks from ZPER": SUB sockets, three frames for each message that was flushed."""

from __future__ import annotations

import pytest
import zmq
from timing import until
from zper.clients import OK, fetch, long, raw, write

from dafka.broker.interface.broker import TopicSpec
from dafka.testing import TestBroker
from dafka.zper import ZperOptions


@pytest.fixture
def broker():
    with TestBroker(zper=ZperOptions(flush_interval=5)) as broker:
        yield broker


def subscribed(clients, broker, *topics, **options):
    """A SUB socket whose subscriptions are known to the server."""
    before = subscriptions(broker)
    sock = clients.context.socket(zmq.SUB)
    sock.setsockopt(zmq.RCVTIMEO, 100_000)
    for option, value in options.items():
        sock.setsockopt(getattr(zmq, option), value)
    for topic in topics:
        sock.subscribe(topic)
    sock.connect(broker.zper.ack_address)
    until(lambda: subscriptions(broker) == before + len(topics))
    return sock


def subscriptions(broker):
    return broker.zper._publisher.metrics()["subscriptions"]


def test_each_flushed_message_is_told_with_topic_first_frame_and_offset(broker, clients):
    sock = subscribed(clients, broker, b"events")
    messages = [[b"hello"], [b"id", b"body"], [b"a", b"", b"c" * 300], [b""]]
    write(clients, broker, "events", *messages)
    position = 0
    for message in messages:
        assert sock.recv_multipart() == [b"events", message[0], long(position)]
        position += len(raw(*message))
    reader = clients.dealer(broker.zper.reader_address, "events")
    assert fetch(reader, 7, 10) == [OK, raw(b"id", b"body")]


@pytest.mark.parametrize("mode", [0, 1, 2])
def test_acks_come_in_every_mode(broker, clients, mode):
    sock = subscribed(clients, broker, b"events")
    clients.dealer(broker.zper.writer_address, "events", mode).send_multipart([b"id", b"body"])
    assert sock.recv_multipart() == [b"events", b"id", long(0)]


def test_the_delimiter_of_a_req_socket_is_not_the_messages_id(broker, clients):
    sock = subscribed(clients, broker, b"events")
    clients.req(broker.zper.writer_address, "events").send_multipart([b"id", b"body"])
    assert sock.recv_multipart() == [b"events", b"id", long(0)]


def test_a_subscriber_chooses_topics(broker, clients):
    one, both = subscribed(clients, broker, b"one"), subscribed(clients, broker, b"one", b"other")
    write(clients, broker, "other", [b"2"])
    write(clients, broker, "one", [b"1"])
    assert one.recv_multipart()[1] == b"1"
    assert [both.recv_multipart()[1] for _ in range(2)] == [b"2", b"1"]


def test_the_topic_is_as_the_client_named_it(broker, clients):
    broker.create_topic("events", partitions=3)
    sock = subscribed(clients, broker, b"events:2")
    write(clients, broker, "events:2", [b"a"])
    assert sock.recv_multipart() == [b"events:2", b"a", long(0)]


def test_offsets_count_what_kafka_wrote_before(broker, clients):
    broker.preload("events", [b"12345", (b"k", b"v")])
    sock = subscribed(clients, broker, b"events")
    write(clients, broker, "events", [b"a"])
    assert sock.recv_multipart() == [b"events", b"a", long(7 + 6)]


def test_a_topic_that_others_delete_and_create_is_told_about_from_its_beginning(broker, clients):
    sock = subscribed(clients, broker, b"events")
    writer = clients.dealer(broker.zper.writer_address, "events", 2)
    writer.send(b"old")
    assert sock.recv_multipart() == [b"events", b"old", long(0)]
    broker._within(lambda core: core.delete_topics(["events"]))
    broker._within(lambda core: core.create_topics({"events": TopicSpec(1)}))
    writer.send(b"new")
    assert sock.recv_multipart() == [b"events", b"new", long(0)]


def test_a_subscriber_that_does_not_read_loses_acks_and_delays_nobody(broker, clients):
    sock = subscribed(clients, broker, b"events", RCVHWM=1, RCVBUF=4096)
    writer = clients.dealer(broker.zper.writer_address, "events", 0)
    for _ in range(300):
        for _ in range(10):
            writer.send_multipart([bytes(10_000), b"x"])
    broker.wait_for_records("events", 3000)
    until(lambda: broker.metrics()["zper_acks_dropped"] > 0)
    assert broker.metrics()["zper_queued_bytes"] < 1_200_000
    assert sock.recv_multipart() == [b"events", bytes(10_000), long(0)]


def test_without_subscribers_nothing_is_told(broker, clients):
    write(clients, broker, "events", [b"a"])
    assert broker.metrics()["zper_acks"] == 0
