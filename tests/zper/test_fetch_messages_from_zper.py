"""README, "Fetch messages from ZPER": OFFSET and FETCH, by DEALER and REQ sockets."""

from __future__ import annotations

import select
import time
from contextlib import ExitStack

import pytest
import zmq
from kafka.errors import KafkaStorageError
from sockets.serving import plain
from timing import until
from zmtp.vectors import GREETING_31, ready
from zper.clients import (
    EARLIEST,
    INTERNAL_ERROR,
    INVALID_COMMAND,
    INVALID_OFFSET,
    LATEST,
    OK,
    fetch,
    identity,
    long,
    offset,
    raw,
    write,
)

from dafka.sockets import limits as socket_limits
from dafka.testing import TestBroker
from dafka.zper import ZperOptions, limits
from dafka.zper import identity as ours
from dafka.zper.places import Place


@pytest.fixture
def broker():
    with TestBroker(zper=ZperOptions(segment_size=100, flush_interval=20)) as broker:
        yield broker


@pytest.fixture
def reader(broker, clients):
    return clients.dealer(broker.zper.reader_address, "events")


MESSAGES = [[b"hello"], [b"id", b"body"], [b"a", b"", b"c" * 300], [b""]]
RAW = b"".join(raw(*message) for message in MESSAGES)


# -- OFFSET -------------------------------------------------------------------------------------


def test_a_topic_that_does_not_exist_has_no_messages_and_is_not_created(broker, reader):
    assert offset(reader, EARLIEST) == (100, [0])
    assert offset(reader, LATEST) == (100, [0, 0])
    assert fetch(reader, 0, 100) == [OK, b""]
    assert fetch(reader, 1, 100) == [INVALID_OFFSET]
    assert broker.topics() == []


def test_the_earliest_offset_is_one_and_the_latest_two(broker, clients, reader):
    write(clients, broker, "events", *[[b"x" * 38]] * 10)  # 40 octets each: segments at 0, 120, 200, 320
    assert offset(reader, EARLIEST) == (100, [0])
    assert offset(reader, LATEST) == (100, [320, 400])


def test_a_time_lists_the_segments_that_were_last_modified_before_it(broker, clients, reader):
    write(clients, broker, "events", *[[b"x" * 38]] * 5)
    time.sleep(0.05)  # times of files are those of the last tick
    between = int(1000 * time.time())
    time.sleep(0.05)
    write(clients, broker, "events", *[[b"x" * 38]] * 5)
    now = int(1000 * time.time())
    assert offset(reader, between) == (100, [0, 120])
    assert offset(reader, now) == (100, [0, 120, 200, 320, 400])
    assert offset(reader, now, 2) == (100, [200, 320, 400])
    assert offset(reader, now, 0) == (100, [0, 120, 200, 320, 400])
    assert offset(reader, 2**63 - 1) == (100, [0, 120, 200, 320, 400])
    assert offset(reader, 1) == (101, [])
    assert offset(reader, -5) == (101, [])


# -- FETCH --------------------------------------------------------------------------------------


def test_a_super_frame_has_the_messages_as_they_were_sent(broker, clients, reader):
    write(clients, broker, "events", *MESSAGES[:2])
    assert fetch(reader, 0, 2**31) == [OK, RAW[: 7 + 10]]


def test_a_super_frame_is_cut_at_the_size_asked_for(broker, clients, reader):
    write(clients, broker, "events", *MESSAGES[:2])
    for size in range(18):
        assert fetch(reader, 0, size) == [OK, RAW[:size]]


def test_a_super_frame_begins_at_any_octet_and_ends_with_the_segment(broker, clients, reader):
    write(clients, broker, "events", *[[b"x" * 38]] * 10)
    everything = 10 * raw(b"x" * 38)
    ends = [120, 200, 320, 400]
    for position in range(0, 401, 7):
        end = next((end for end in ends if end > position), 400)
        assert fetch(reader, position, 10**9) == [OK, everything[position:end]]


def test_fetching_on_from_what_was_whole_brings_every_message_once(broker, clients, reader):
    write(clients, broker, "events", *MESSAGES)
    position, got = 0, b""
    while True:
        status, frame = fetch(reader, position, 450)
        assert status == OK
        if not frame:
            break
        got += frame
        position += len(frame)
    assert got == RAW


def test_an_offset_at_the_end_gives_an_empty_super_frame_and_one_beyond_is_invalid(broker, clients, reader):
    write(clients, broker, "events", [b"hello"])
    assert fetch(reader, 7, 100) == [OK, b""]
    assert fetch(reader, 8, 100) == [INVALID_OFFSET]
    assert fetch(reader, -1, 100) == [INVALID_OFFSET]
    assert fetch(reader, 2**63 - 1, 2**63 - 1) == [INVALID_OFFSET]
    assert fetch(reader, -(2**63), 100) == [INVALID_OFFSET]
    assert fetch(reader, 0, 2**63 - 1) == [OK, raw(b"hello")]


def test_only_what_is_flushed_can_be_fetched(clients):
    with TestBroker(zper=ZperOptions(flush_interval=3_600_000)) as broker:
        sock = clients.dealer(broker.zper.writer_address, "events", 0)
        sock.send(b"not yet")
        until(lambda: broker.metrics()["zper_unflushed_messages"] == 1)
        reader = clients.dealer(broker.zper.reader_address, "events")
        assert fetch(reader, 0, 100) == [OK, b""]


@pytest.mark.parametrize(
    "request_",
    [
        [b"GET"],
        [b"fetch", long(0), long(10)],
        [b"FETCH"],
        [b"FETCH", long(0)],
        [b"FETCH", long(0), long(10), long(10)],
        [b"FETCH", b"0", b"10"],
        [b"FETCH", long(0), b""],
        [b"FETCH", long(0), long(-2)],
        [b"FETCH", long(0), long(-(2**63))],
        [b"OFFSET"],
        [b"OFFSET", b"\xff"],
        [b"OFFSET", long(-1), long(1)],
        [b"OFFSET", long(-1), b"\0\0\0\1", b""],
        [b"\xff\xfe" * 100_000],
        [b""],
    ],
)
def test_any_other_command_or_number_of_arguments_is_invalid(broker, reader, request_):
    reader.send_multipart(request_)
    assert reader.recv_multipart() == [INVALID_COMMAND]
    assert offset(reader, LATEST) == (100, [0, 0])
    assert broker.discarded["zper-command"] == 1


def test_a_req_socket_gets_its_delimiter_back(broker, clients):
    write(clients, broker, "events", [b"hello"])
    sock = clients.req(broker.zper.reader_address, "events", 0)
    assert fetch(sock, 0, 100) == [OK, raw(b"hello")]
    assert offset(sock, LATEST) == (100, [0, 7])
    sock.send(b"?")
    assert sock.recv_multipart() == [INVALID_COMMAND]


def test_requests_are_answered_in_their_order(broker, clients, reader):
    write(clients, broker, "events", [b"hello"])
    for number in range(200):
        reader.send_multipart([b"FETCH", long(number % 8), long(1)])
        reader.send_multipart([b"", b"OFFSET", long(EARLIEST)])
    for number in range(200):
        assert reader.recv_multipart() == [OK, raw(b"hello")[number % 8 :][:1]]
        assert reader.recv_multipart() == [b"", OK, long(0)]


def test_an_internal_error_has_a_status_and_a_line_in_the_log(broker, clients, reader, monkeypatch, caplog):
    write(clients, broker, "events", [b"hello"])

    def broken(*args):
        raise KafkaStorageError("the disk is gone")

    monkeypatch.setattr("dafka.broker.positions.partition.MeasuredPartition.read", broken)
    assert fetch(reader, 0, 100) == [INTERNAL_ERROR]
    assert "the disk is gone" in caplog.text
    assert broker.discarded["zper-failed"] == 1


def test_a_reader_with_an_unreadable_identity_gets_no_response(broker, clients):
    sock = clients.connect(zmq.DEALER, broker.zper.reader_address, b"me")
    sock.send_multipart([b"OFFSET", long(LATEST)])
    until(lambda: broker.discarded.get("zper-identity") == 1)
    assert not sock.poll(50)


def test_partition_n_is_read_by_its_number(broker, clients):
    broker.create_topic("events", partitions=2)
    broker.preload("events", [b"zero"], partition=0)
    broker.preload("events", [b"one"], partition=1)
    for topic, value in (("events", b"zero"), ("events:0", b"zero"), ("events:1", b"one")):
        assert fetch(clients.dealer(broker.zper.reader_address, topic), 0, 100) == [OK, raw(value)]
    assert fetch(clients.dealer(broker.zper.reader_address, "events:2"), 0, 100) == [OK, b""]


def test_the_mode_of_a_readers_identity_means_nothing(broker, clients):
    write(clients, broker, "events", [b"hello"])
    for mode in (0, 1, 2):
        assert fetch(clients.dealer(broker.zper.reader_address, "events", mode), 0, 9) == [OK, raw(b"hello")]


# -- what stays ---------------------------------------------------------------------------------


def test_positions_are_the_same_after_a_restart(tmp_path, clients):
    broker = TestBroker(tmp_path, zper=ZperOptions(segment_size=100))
    with broker:
        write(clients, broker, "events", *MESSAGES)
    with broker:
        write(clients, broker, "events", [b"more"])
        reader = clients.dealer(broker.zper.reader_address, "events")
        assert offset(reader, LATEST)[1][1] == len(RAW) + 6
        assert fetch(reader, 0, 7) == [OK, RAW[:7]]
        assert fetch(reader, len(RAW), 100) == [OK, raw(b"more")]


def test_when_the_front_is_removed_positions_stay_and_those_before_it_are_invalid(broker, clients, reader):
    write(clients, broker, "events", *[[b"%02d" % number * 19] for number in range(10)])
    broker._within(lambda core: core.delete_records({("events", 0): 4}))
    assert offset(reader, EARLIEST) == (100, [160])
    assert fetch(reader, 159, 100) == [INVALID_OFFSET]
    assert fetch(reader, 160, 1000) == [OK, raw(b"04" * 19)]
    assert fetch(reader, 200, 40) == [OK, raw(b"05" * 19)]
    assert offset(reader, 2**62) == (100, [160, 200, 320, 400])


def test_a_topic_that_is_created_again_begins_at_0(broker, clients, reader):
    write(clients, broker, "events", [b"old"])
    assert fetch(reader, 0, 100) == [OK, raw(b"old")]
    broker._within(lambda core: core.delete_topics(["events"]))
    assert fetch(reader, 5, 100) == [INVALID_OFFSET]
    assert offset(reader, LATEST) == (100, [0, 0])
    write(clients, broker, "events", [b"new"])
    assert fetch(reader, 0, 100) == [OK, raw(b"new")]


def test_a_compacted_topic_has_no_positions(broker, clients, caplog):
    broker.create_topic("table", configs={"cleanup.policy": "compact"})
    reader = clients.dealer(broker.zper.reader_address, "table")
    assert fetch(reader, 0, 100) == [INTERNAL_ERROR]
    assert offset(reader, LATEST) == (255, [])
    writer = clients.dealer(broker.zper.writer_address, "table", 2)
    writer.send_multipart([b"key", b"value"])
    until(lambda: broker.discarded.get("zper-compacted") == 1)
    assert "compacted" in caplog.text
    assert not writer.poll(50)


def test_identities_are_built_as_the_readme_says():
    assert identity("events", 1)[:-16] == ours.build("events", 1)[:-16]


def test_super_frames_of_many_clients_that_do_not_read_are_not_read_from_the_log_either(clients, monkeypatch):
    monkeypatch.setattr(limits, "READS_AT_ONCE", 1)
    monkeypatch.setattr(socket_limits, "ALL_QUEUED_OCTETS", 4_000_000)
    read: list[int] = []
    inner = Place.read

    def counted(*args):
        octets = inner(*args)
        read.append(len(octets))
        return octets

    monkeypatch.setattr(Place, "read", counted)
    with (
        TestBroker(zper=ZperOptions(flush_interval=5, send_buffer=4096)) as broker,
        ExitStack() as closed,
    ):
        write(clients, broker, "events", *[[bytes(500_000)]] * 5)
        socks = [closed.enter_context(plain(broker.zper.reader_address)) for _ in range(12)]
        for sock in socks:
            sock.sendall(GREETING_31 + ready(b"DEALER", identity("events")))
            sock.sendall(b"\x01\x05FETCH\x01\x08" + long(0) + b"\x00\x08" + long(2_000_000))
        settled = -1
        while not read or settled != (settled := len(read)):
            time.sleep(0.3)
        assert sum(read) <= 10_000_000  # those queued, one that waits, and those that the kernel took
        left = dict.fromkeys(socks, 2_000_000)
        while left:
            readable, _, _ = select.select(list(left), [], [], 100)
            assert readable
            for sock in readable:
                left[sock] -= len(sock.recv(1_000_000))
                if left[sock] <= 0:
                    del left[sock]
    assert read == [2_000_000] * 12
