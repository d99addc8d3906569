"""The writer's limits: messages that are ignored, refused, or wait, and that none is lost."""

from __future__ import annotations

import logging
import os
import time
from contextlib import suppress
from types import SimpleNamespace

import pytest
import zmq
from kafka.errors import KafkaStorageError
from timing import until
from zper.clients import OK, fetch, identity, raw

from dafka.testing import TestBroker
from dafka.zper import ZperOptions, limits


@pytest.fixture
def broker():
    with TestBroker(zper=ZperOptions(flush_interval=20)) as broker:
        yield broker


def written(clients, broker, topic="control"):
    """What a client of another topic sends is committed: the server serves."""
    sock = clients.req(broker.zper.writer_address, topic)
    sock.send(b"a")
    return sock.recv() == b"a"


# -- identities ---------------------------------------------------------------------------------

WRONG = [
    b"x",
    bytes([0, 0]),
    bytes([0, 0, 0]) + bytes(16),
    bytes([0, 0, 9]) + b"short",
    bytes([0, 3, 1]) + b"t" + bytes(16),
    bytes([0, 0, 65]) + b"t" * 65 + bytes(16),
    bytes([0, 0, 3]) + b"a/b" + bytes(16),
    bytes([0, 0, 3]) + b"a\0b" + bytes(16),
    bytes([0, 0, 2]) + b"\xff\xfe" + bytes(16),
    bytes([0, 0, 2]) + b".." + bytes(16),
    bytes([0, 0, 3]) + b"t:x" + bytes(16),
    bytes([0, 0, 3]) + b"t:" + bytes(17),
    bytes(255),
]


def test_clients_with_unreadable_identities_are_counted_and_logged_once_a_minute(broker, clients, caplog):
    for name in WRONG:
        sock = clients.connect(zmq.DEALER, broker.zper.writer_address, name)
        sock.send(b"a")
        sock.send(b"b")
    sock = clients.context.socket(zmq.DEALER)  # without any identity
    sock.connect(broker.zper.writer_address)
    sock.send(b"a")
    count = 2 * len(WRONG) + 1
    until(lambda: broker.discarded.get("zper-identity") == count)
    lines = [record for record in caplog.records if record.name == "dafka.zper.discarded"]
    assert len(lines) == 1
    assert broker.topics() == []
    assert written(clients, broker)


def test_topics_with_dots_underscores_and_hyphens_are_allowed(broker, clients):
    for topic in ("a.b", "a_c", "a-b", "t" * 64):
        assert written(clients, broker, topic)
    assert broker.topics() == sorted(["a.b", "a_c", "a-b", "t" * 64])


def test_messages_for_a_topic_that_differs_from_another_by_dots_and_underscores_are_counted(broker, clients):
    broker.create_topic("a.b")
    sock = clients.dealer(broker.zper.writer_address, "a_b", 2)
    sock.send(b"a")
    until(lambda: broker.discarded.get("zper-topic") == 1)
    assert broker.topics() == ["a.b"] and not sock.poll(50)


def test_a_flood_of_clients_with_random_identities_is_forgotten_when_they_go(broker, clients):
    for _ in range(20):
        some = [clients.dealer(broker.zper.writer_address, "events") for _ in range(25)]
        for sock in some:
            sock.send(b"x")
        for sock in some:
            sock.close()
    broker.wait_for_records("events", 500)
    until(lambda: broker.metrics()["zper_connections"] == 0)
    writer = broker.zper._writer
    until(lambda: not writer._clients and not writer._partitions)


# -- topics and partitions ----------------------------------------------------------------------


def test_a_topic_is_created_with_one_partition_and_its_retention(clients):
    with TestBroker(default_partitions=7, zper=ZperOptions(retain_hours=5)) as broker:
        assert written(clients, broker, "events")
        assert broker.partitions("events") == [0]
        assert broker._within(lambda core: core.describe_configs({(2, "events"): ["retention.ms"]}))[
            2, "events"
        ].entries[0].value == str(5 * 3_600_000)


def test_partition_n_of_a_topic_is_written_by_its_number(broker, clients):
    broker.create_topic("events", partitions=3)
    sock = clients.req(broker.zper.writer_address, "events:2")
    sock.send(b"a")
    assert sock.recv() == b"a"
    assert [broker.values("events", number) for number in range(3)] == [[], [], [b"a"]]


@pytest.mark.parametrize("topic", ["events:3", "nothing:1"])
def test_messages_for_a_partition_that_does_not_exist_are_counted(broker, clients, topic):
    broker.create_topic("events", partitions=3)
    sock = clients.dealer(broker.zper.writer_address, topic, 2)
    sock.send(b"a")
    until(lambda: broker.discarded.get("zper-partition") == 1)
    assert broker.topics() == ["events"]
    assert not sock.poll(50)


def test_a_topic_that_is_deleted_is_there_again_with_the_next_message(broker, clients):
    sock = clients.req(broker.zper.writer_address, "events")
    for value in (b"a", b"b"):
        sock.send(value)
        assert sock.recv() == value
        assert broker.values("events") == [value]
        broker._within(lambda core: core.delete_topics(["events"]))
    assert broker.topics() == []


# -- sizes --------------------------------------------------------------------------------------


def test_a_message_of_max_message_octets_is_taken_and_a_larger_one_disconnects(clients):
    with TestBroker(zper=ZperOptions(max_message=3_000_000)) as broker:
        for frames in (
            [bytes(3_000_000)],
            [b"k" * 1_400_000, b"v" * 1_600_000],
            [b"k" * 2_999_990] + [b""] * 9,
        ):
            sock = clients.req(broker.zper.writer_address, "events")
            sock.send_multipart(frames)
            assert sock.recv() == frames[-1]
        sock = clients.dealer(broker.zper.writer_address, "events", 2)
        sock.send_multipart([bytes(1_500_000), bytes(1_500_001)])
        until(lambda: broker.discarded.get("zper-message-size"))
        assert len(broker.records("events")) == 3


def test_messages_a_topic_refuses_are_counted_and_all_others_are_stored(broker, clients, caplog):
    broker.create_topic("events", configs={"max.message.bytes": "2000"})
    sock = clients.dealer(broker.zper.writer_address, "events", 2)
    for number in range(40):
        sock.send(bytes(3000) if number in (7, 8, 30) else b"%d" % number)
    answers = [sock.recv() for _ in range(37)]
    assert answers == [b"%d" % number for number in range(40) if number not in (7, 8, 30)]
    assert broker.values("events") == answers
    assert broker.discarded["zper-refused"] == 3
    assert "MessageSizeTooLargeError" in caplog.text


def test_empty_messages_are_taken_unless_told_otherwise(clients):
    for allowed in (True, False):
        with TestBroker(zper=ZperOptions(allow_empty_message=allowed)) as broker:
            sock = clients.dealer(broker.zper.writer_address, "events", 2)
            for message in ([b""], [b"a", b""], [b"", b""], [b"b"]):
                sock.send_multipart(message)
            sock.send(b"end")
            while sock.recv_multipart()[-1] != b"end":
                pass
            assert broker.values("events") == (
                [b"", b"", b"", b"b", b"end"] if allowed else [b"", b"b", b"end"]
            )


# -- failures -----------------------------------------------------------------------------------


def test_a_flush_that_fails_is_tried_again_and_answered_when_it_is_committed(broker, clients, monkeypatch):
    monkeypatch.setattr(limits, "SHORTEST_RETRY", 0.01)
    sock = clients.dealer(broker.zper.writer_address, "events", 2)
    sock.send(b"first")
    sock.recv()
    broker.fail_next_produce(KafkaStorageError, times=3)
    for number in range(20):
        sock.send(b"%d" % number)
    assert [sock.recv() for _ in range(20)] == [b"%d" % number for number in range(20)]
    assert broker.values("events") == [b"first", *(b"%d" % number for number in range(20))]


def test_on_a_full_disk_everybody_waits_and_reads_and_nothing_is_lost(clients, monkeypatch):
    monkeypatch.setattr(limits, "LONGEST_RETRY", 0.1)
    full = SimpleNamespace(f_bavail=1_000_000, f_frsize=1, f_blocks=10**9)
    with TestBroker(zper=ZperOptions(flush_interval=5)) as broker:
        one = clients.dealer(broker.zper.writer_address, "events", 2)
        one.send(b"before")
        assert one.recv() == b"before"
        reader = clients.dealer(broker.zper.reader_address, "events")
        with monkeypatch.context() as patch:
            patch.setattr(os, "statvfs", lambda path: full)
            new = clients.dealer(broker.zper.writer_address, "another", 1)
            for sock in (one, new):
                sock.send(b"1")
                sock.send(b"2")
            assert not one.poll(300) and not new.poll(0)
            assert fetch(reader, 0, 100) == [OK, raw(b"before")]
        assert [one.recv(), one.recv()] == [b"1", b"2"]
        assert new.recv() in (b"1", b"2")
        broker.wait_for_records("another", 2)
        assert broker.values("events") == [b"before", b"1", b"2"]
        assert fetch(reader, 0, 100) == [OK, raw(b"before") + raw(b"1") + raw(b"2")]


def test_messages_not_stored_until_the_broker_stops_are_logged(clients, caplog, monkeypatch):
    monkeypatch.setattr(limits, "CLOSE_SECONDS", 0.3)
    monkeypatch.setattr(limits, "SHORTEST_RETRY", 0.01)
    broker = TestBroker(zper=ZperOptions(flush_interval=0)).start()
    broker.fail_next_produce(KafkaStorageError, times=10**6)
    sock = clients.dealer(broker.zper.writer_address, "events", 1)
    sock.send(b"a")
    until(lambda: broker.metrics()["zper_unflushed_messages"] == 1)
    broker.stop()
    assert "1 messages for events were not stored" in caplog.text
    assert not sock.poll(50)


def test_a_client_is_not_read_while_too_much_waits_for_its_partition(clients, monkeypatch):
    monkeypatch.setattr(limits, "UNFLUSHED_OCTETS", 100_000)
    with TestBroker(zper=ZperOptions(flush_interval=0)) as broker:
        other = clients.req(broker.zper.writer_address, "events")
        other.send(b"a")
        other.recv()
        hanging = broker.hang()
        sock = clients.dealer(broker.zper.writer_address, "events", 0, SNDHWM=10, SNDBUF=65536, SNDTIMEO=500)
        sent = 0

        def finds_no_room():
            nonlocal sent
            with suppress(zmq.Again):
                while sent < 20_000:
                    sock.send(bytes(1000))
                    sent += 1
            return broker.zper.metrics()["zper_unflushed_bytes"] > 100_000  # or it has not come there yet

        until(finds_no_room)
        assert sent < 20_000
        unflushed = broker.zper.metrics()["zper_unflushed_bytes"]
        assert 100_000 < unflushed < 2_000_000
        hanging.close()
        sock.setsockopt(zmq.SNDTIMEO, 100_000)
        sock.send(b"end")
        broker.wait_for_records("events", sent + 2)
        other.close()
        assert broker.values("events")[-1] == b"end"
        until(lambda: broker.zper.metrics()["zper_unflushed_bytes"] == 0)


def test_messages_waiting_in_all_partitions_together_are_bounded(clients, monkeypatch):
    monkeypatch.setattr(limits, "ALL_UNFLUSHED_OCTETS", 200_000)
    monkeypatch.setattr(limits, "SHORTEST_RETRY", 0.01)
    with TestBroker(zper=ZperOptions(flush_interval=0, receive_buffer=8192)) as broker:
        broker.fail_next_produce(KafkaStorageError, times=10**6)
        options = {"SNDHWM": 10, "SNDTIMEO": 300}
        some = [clients.dealer(broker.zper.writer_address, f"t{number}", 0, **options) for number in range(4)]
        sent = 0

        def find_no_room():
            nonlocal sent
            for sock in some:
                with suppress(zmq.Again):
                    for _ in range(10_000):
                        sock.send(bytes(1000))
                        sent += 1
            return broker.zper.metrics()["zper_unflushed_bytes"] > 200_000  # or it has not come there yet

        until(find_no_room)
        assert 200_000 < broker.zper.metrics()["zper_unflushed_bytes"] < 2_000_000
        broker.clear_faults()
        until(lambda: broker.zper.metrics()["zper_messages_in"] == sent)
        until(lambda: broker.zper.metrics()["zper_unflushed_bytes"] == 0)


def test_a_push_socket_gets_no_answers_whatever_its_mode(broker, clients, monkeypatch):
    monkeypatch.setattr(limits, "ANSWER_OCTETS", 50_000)
    sock = clients.connect(zmq.PUSH, broker.zper.writer_address, identity("events", 2))
    for _ in range(1000):
        sock.send(bytes(10_000))
    broker.wait_for_records("events", 1000)
    assert broker.zper._routers["writer"].metrics()["messages_out"] == 0


def test_a_client_that_does_not_read_its_answers_delays_no_other(broker, clients, monkeypatch):
    monkeypatch.setattr(limits, "ANSWER_OCTETS", 50_000)
    lazy = clients.dealer(
        broker.zper.writer_address, "events", 2, RCVHWM=1, RCVBUF=4096, SNDHWM=10, SNDTIMEO=1000
    )
    sent = 0
    try:
        for _ in range(100_000):
            lazy.send(bytes(5000))
            sent += 1
    except zmq.Again:
        pass
    assert sent < 100_000
    assert written(clients, broker, "events")
    answered = 0
    while answered < sent:
        assert lazy.recv() == bytes(5000)
        answered += 1
    assert written(clients, broker, "events")


def test_a_client_that_goes_without_having_read_its_answers_is_forgotten(broker, clients, monkeypatch):
    monkeypatch.setattr(limits, "ANSWER_OCTETS", 50_000)
    options = {"RCVHWM": 1, "RCVBUF": 4096, "SNDHWM": 10, "SNDTIMEO": 1000, "LINGER": 0}
    lazy = clients.dealer(broker.zper.writer_address, "events", 2, **options)
    writer = broker.zper._writer
    lazy.send(bytes(5000))
    until(lambda: len(writer._clients) == 1)
    with pytest.raises(zmq.Again):
        while True:
            lazy.send(bytes(5000))
    assert len(writer._clients) == 1
    lazy.close()
    until(lambda: not writer._clients and not writer._partitions)


def test_messages_of_a_client_that_has_gone_are_flushed_at_once(clients):
    with TestBroker(zper=ZperOptions(flush_interval=3_600_000)) as broker:
        sock = clients.push(broker.zper.writer_address, "events")
        sock.send(b"a")
        sock.close()
        began = time.monotonic()
        broker.wait_for_records("events", 1)
        assert time.monotonic() - began < 1000


@pytest.fixture(autouse=True)
def _log_everything(caplog):
    caplog.set_level(logging.INFO)
