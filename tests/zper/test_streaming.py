"""README, "Streaming mode": FETCH with -1 as the maximum size."""

from __future__ import annotations

import time

import pytest
import zmq
import zmq.utils.monitor
from timing import until
from zper.clients import (
    INVALID_COMMAND,
    INVALID_OFFSET,
    LATEST,
    OK,
    fetch,
    long,
    offset,
    raw,
    write,
)

from dafka.testing import TestBroker
from dafka.zper import ZperOptions, limits
from dafka.zper.places import Chunk, Chunks


@pytest.fixture
def broker():
    with TestBroker(zper=ZperOptions(flush_interval=5)) as broker:
        yield broker


@pytest.fixture
def reader(broker, clients):
    return clients.dealer(broker.zper.reader_address, "events")


def streams(broker):
    return broker.metrics()["zper_streams"]


def test_a_status_and_then_every_message_as_it_was_sent(broker, clients, reader):
    messages = [[b"hello"], [b"id", b"body"], [b"a", b"", b"c" * 300], [b""]]
    write(clients, broker, "events", *messages)
    assert fetch(reader, 0, -1) == [OK]
    assert [reader.recv_multipart() for _ in messages] == messages
    write(clients, broker, "events", [b"later"])
    assert reader.recv_multipart() == [b"later"]


def test_a_stream_begins_at_any_message(broker, clients, reader):
    write(clients, broker, "events", [b"hello"], [b"id", b"body"], [b"end"])
    assert fetch(reader, 7, -1) == [OK]
    assert [reader.recv_multipart() for _ in range(2)] == [[b"id", b"body"], [b"end"]]


def test_a_stream_from_the_end_waits_for_what_comes(broker, clients, reader):
    write(clients, broker, "events", [b"old"])
    assert fetch(reader, 5, -1) == [OK]
    assert not reader.poll(50)
    write(clients, broker, "events", [b"new"])
    assert reader.recv_multipart() == [b"new"]


@pytest.mark.parametrize("position", [-1, 1, 6, 8, 2**62])
def test_a_stream_from_no_message_is_an_invalid_offset(broker, clients, reader, position):
    write(clients, broker, "events", [b"hello"])
    assert fetch(reader, position, -1) == [INVALID_OFFSET]
    assert streams(broker) == 0


def test_a_stream_of_a_topic_that_is_to_come_begins_with_it(broker, clients, reader):
    assert fetch(reader, 0, -1) == [OK]
    write(clients, broker, "events", [b"first"])
    assert reader.recv_multipart() == [b"first"]
    assert fetch(clients.dealer(broker.zper.reader_address, "other"), 5, -1) == [INVALID_OFFSET]


def test_a_new_command_ends_the_stream(broker, clients, reader):
    write(clients, broker, "events", *[[b"%d" % number] for number in range(1000)])
    assert fetch(reader, 0, -1) == [OK]
    assert reader.recv() == b"0"
    reader.send_multipart([b"OFFSET", long(LATEST)])
    number = 1
    while len(message := reader.recv_multipart()) == 1:  # messages under way come in order
        assert message == [b"%d" % number]
        number += 1
    assert message[0] == OK
    assert streams(broker) == 0
    write(clients, broker, "events", [b"unheard"])
    assert fetch(reader, 0, -1) == [OK]
    assert reader.recv() == b"0"
    reader.send(b"?")
    while (message := reader.recv_multipart()) != [INVALID_COMMAND]:
        assert message[0].isdigit() or message == [b"unheard"]
    assert not reader.poll(50)


def test_a_stream_with_the_delimiter_repeats_it(broker, clients, reader):
    write(clients, broker, "events", [b"a"], [b"b", b"c"])
    reader.send_multipart([b"", b"FETCH", long(0), long(-1)])
    assert [reader.recv_multipart() for _ in range(3)] == [[b"", OK], [b"", b"a"], [b"", b"b", b"c"]]


def test_a_stream_ends_with_its_client(broker, clients, reader):
    assert fetch(reader, 0, -1) == [OK]
    until(lambda: streams(broker) == 1)
    reader.close()
    until(lambda: streams(broker) == 0)


def test_the_messages_sizes_in_raw_form_lead_to_the_next_offset(broker, clients, reader):
    messages = [[b"x" * size] for size in (0, 1, 254, 255, 256, 70_000)] + [[b"k", b"v" * 300]]
    write(clients, broker, "events", *messages)
    assert fetch(reader, 0, -1) == [OK]
    position = 0
    for message in messages:
        got = reader.recv_multipart()
        assert got == message
        position += len(raw(*got))
    assert offset(clients.dealer(broker.zper.reader_address, "events"), LATEST)[1][1] == position


def test_messages_longer_than_what_is_read_at_once_arrive_whole(clients, monkeypatch):
    monkeypatch.setattr(limits, "CHUNK_OCTETS", 1000)
    with TestBroker(zper=ZperOptions(flush_interval=5)) as broker:
        sizes = [10, 999, 998, 1000, 1001, 5_000_000, 3, 8_388_608, 70_000, 1]
        messages = [[bytes([number]) * size] for number, size in enumerate(sizes)]
        write(clients, broker, "events", *messages)
        reader = clients.dealer(broker.zper.reader_address, "events")
        assert fetch(reader, 0, -1) == [OK]
        for message in messages:
            assert reader.recv_multipart() == message


def test_many_streams_get_every_message_in_order(broker, clients):
    readers = [clients.dealer(broker.zper.reader_address, "events", RCVHWM=0) for _ in range(30)]
    for reader in readers:
        assert fetch(reader, 0, -1) == [OK]
    sock = clients.push(broker.zper.writer_address, "events")
    for number in range(3000):
        sock.send(b"%d" % number)
    for reader in readers:
        assert [reader.recv() for _ in range(3000)] == [b"%d" % number for number in range(3000)]


def test_streams_of_more_partitions_than_are_remembered_go_on(broker, clients, monkeypatch):
    monkeypatch.setattr(limits, "PARTITIONS_KNOWN", 2)
    readers = [clients.dealer(broker.zper.reader_address, f"t{number}") for number in range(5)]
    for turn in range(3):
        for number, reader in enumerate(readers):
            write(clients, broker, f"t{number}", [b"%d" % turn])
            if not turn:
                assert fetch(reader, 0, -1) == [OK]
    for reader in readers:
        assert [reader.recv() for _ in range(3)] == [b"0", b"1", b"2"]


def test_a_reader_that_does_not_read_costs_a_bounded_number_of_octets(broker, clients):
    sock = clients.push(broker.zper.writer_address, "events")
    for _ in range(3000):
        sock.send(bytes(10_000))
    lazy = [clients.dealer(broker.zper.reader_address, "events", RCVHWM=1, RCVBUF=4096) for _ in range(5)]
    for reader in lazy:
        assert fetch(reader, 0, -1) == [OK]
    broker.wait_for_records("events", 3000)
    settled = -1
    deadline = time.monotonic() + 100
    while settled != (settled := broker.metrics()["zper_bytes_streamed"]):
        assert time.monotonic() < deadline
        time.sleep(0.2)
    assert broker.metrics()["zper_queued_bytes"] < 5 * 1_200_000
    assert settled < 5 * 30_000_000
    write(clients, broker, "events", [b"others are served"])
    for reader in lazy:
        for _ in range(3000):
            assert reader.recv() == bytes(10_000)
        assert reader.recv() == b"others are served"


def test_chunks_that_are_kept_for_other_streams_are_bounded_however_small_they_are(monkeypatch):
    monkeypatch.setattr(limits, "CHUNKS_OCTETS", 10_000)
    chunks, positions = Chunks(), object()
    for position in range(1000):
        chunks.keep(positions, position, Chunk(b"\0\0", 1, position + 2))
    assert sum(chunks.get(positions, position) is not None for position in range(1000)) <= 50
    assert chunks.get(positions, 999) is not None


def closed(sock, monitor):
    """Wait until the connection is closed by the server."""
    while True:
        assert monitor.poll(100_000)
        if zmq.utils.monitor.recv_monitor_message(monitor)["event"] == zmq.EVENT_DISCONNECTED:
            return


def test_a_stream_whose_topic_is_deleted_is_disconnected(broker, clients, reader):
    monitor = reader.get_monitor_socket()
    write(clients, broker, "events", [b"a"])
    assert fetch(reader, 0, -1) == [OK]
    assert reader.recv() == b"a"
    broker._within(lambda core: core.delete_topics(["events"]))
    closed(reader, monitor)
    reader.disable_monitor()
    assert broker.discarded["zper-stream"] == 1


def test_a_stream_that_retention_overtakes_is_disconnected_and_never_skips(clients, monkeypatch):
    with TestBroker(zper=ZperOptions(flush_interval=5)) as broker:
        sock = clients.push(broker.zper.writer_address, "events")
        for number in range(2000):
            sock.send(b"%06d" % number * 2000)
        broker.wait_for_records("events", 2000)
        reader = clients.dealer(broker.zper.reader_address, "events", RCVHWM=1, RCVBUF=4096)
        monitor = reader.get_monitor_socket(zmq.EVENT_DISCONNECTED)
        assert fetch(reader, 0, -1) == [OK]
        broker._within(lambda core: core.delete_records({("events", 0): 1999}))
        for number in range(2000):
            until(lambda: reader.poll(100) or monitor.poll(0))
            if not reader.poll(1000):
                break
            assert reader.recv() == b"%06d" % number * 2000
        assert number < 1999
        closed(reader, monitor)
        reader.disable_monitor()


def test_no_stream_is_left_when_the_broker_stops(clients):
    broker = TestBroker(zper=ZperOptions()).start()
    write(clients, broker, "events", [b"a"])
    reader = clients.dealer(broker.zper.reader_address, "events")
    assert fetch(reader, 0, -1) == [OK]
    front_end = broker.zper
    broker.stop()
    assert front_end._streams.running == 0
