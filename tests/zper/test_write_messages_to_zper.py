"""README, "Write messages to ZPER": DEALER, REQ and PUSH sockets in the three modes."""

from __future__ import annotations

import time

import pytest

from dafka.testing import TestBroker
from dafka.zper import ZperOptions


@pytest.fixture
def broker():
    with TestBroker(zper=ZperOptions(flush_interval=50)) as broker:
        yield broker


def silent(socket, ms=100):
    return not socket.poll(ms)


def test_a_dealer_writes_in_mode_0_and_gets_no_response(broker, clients):
    sock = clients.dealer(broker.zper.writer_address, "events", 0)
    for number in range(100):
        sock.send(b"hello %d" % number)
    records = broker.wait_for_records("events", 100)
    assert [(record.key, record.value) for record in records] == [
        (None, b"hello %d" % number) for number in range(100)
    ]
    assert silent(sock)


def test_a_push_socket_writes(broker, clients):
    sock = clients.push(broker.zper.writer_address, "events")
    sock.send(b"hello")
    sock.send_multipart([b"id", b"body"])
    records = broker.wait_for_records("events", 2)
    assert [(record.key, record.value) for record in records] == [(None, b"hello"), (b"id", b"body")]


def test_a_dealer_in_mode_1_gets_the_last_frame_at_each_flush(clients):
    with TestBroker(zper=ZperOptions(flush_messages=3, flush_interval=60_000)) as broker:
        sock = clients.dealer(broker.zper.writer_address, "events", 1)
        for number in range(2):
            sock.send(b"%d" % number)
        assert silent(sock)
        assert broker.values("events") == []
        sock.send_multipart([b"id", b"2"])
        assert sock.recv_multipart() == [b"2"]
        assert len(broker.values("events")) == 3
        assert silent(sock)


def test_a_dealer_in_mode_1_gets_a_response_when_the_flush_interval_is_over(broker, clients):
    sock = clients.dealer(broker.zper.writer_address, "events", 1)
    began = time.monotonic()
    sock.send(b"a")
    assert sock.recv_multipart() == [b"a"]
    assert time.monotonic() - began >= 0.05
    assert broker.values("events") == [b"a"]


def test_a_req_socket_in_mode_2_gets_a_response_at_every_write_after_its_commit(clients):
    with TestBroker(zper=ZperOptions(flush_interval=60_000)) as broker:
        sock = clients.req(broker.zper.writer_address, "events")
        for number in range(5):
            sock.send(b"%d" % number)
            assert sock.recv_multipart() == [b"%d" % number]
            assert broker.values("events") == [b"%d" % each for each in range(number + 1)]


def test_a_dealer_in_mode_2_gets_a_response_for_each_message_in_order(broker, clients):
    sock = clients.dealer(broker.zper.writer_address, "events", 2)
    for number in range(500):
        sock.send_multipart([b"id", b"%d" % number])
    assert [sock.recv() for _ in range(500)] == [b"%d" % number for number in range(500)]
    assert len(broker.values("events")) == 500


def test_req_sockets_work_in_every_mode_that_answers(broker, clients):
    for mode in (1, 2):
        sock = clients.req(broker.zper.writer_address, f"mode{mode}", mode)
        for number in range(3):
            sock.send_multipart([b"id", b"%d" % number])
            assert sock.recv_multipart() == [b"%d" % number]


def test_a_dealer_that_sends_the_delimiter_gets_it_back(broker, clients):
    sock = clients.dealer(broker.zper.writer_address, "events", 2)
    sock.send_multipart([b"", b"with"])
    sock.send_multipart([b"without"])
    sock.send_multipart([b""])
    assert [sock.recv_multipart() for _ in range(3)] == [[b"", b"with"], [b"without"], [b""]]
    assert broker.values("events") == [b"with", b"without", b""]


def test_the_modes_of_several_clients_of_one_topic_are_their_own(broker, clients):
    address = broker.zper.writer_address
    none, flush, write = (clients.dealer(address, "events", mode) for mode in (0, 1, 2))
    none.send(b"0")
    flush.send(b"1")
    write.send(b"2")
    assert (flush.recv(), write.recv()) == (b"1", b"2")
    assert sorted(value for value in broker.wait_for_records("events", 3) and broker.values("events")) == [
        *(b"0", b"1", b"2")
    ]
    assert silent(none)


def test_messages_of_many_frames_are_one_record_each(broker, clients):
    sock = clients.req(broker.zper.writer_address, "events")
    sock.send_multipart([b"id", b"a", b"", b"c" * 300])
    assert sock.recv() == b"c" * 300
    (record,) = broker.records("events")
    assert record.key == b"id"
    assert record.value == b"\x01\x02id\x01\x01a\x01\x00\x02" + (300).to_bytes(8, "big") + b"c" * 300
    assert [name for name, _ in record.headers] == ["zper.frames"]
