"""Snapshots: a prepared broker is the beginning of many."""

from __future__ import annotations

import os
import threading
import time

import pytest
from kafka.structs import TopicPartition

from compat.kafka import KafkaConsumer, KafkaProducer
from dafka.log.verify import verify
from dafka.testing import Snapshot, TestBroker, chaos, wait_until

LARGE = b"x" * 300_000  # of a file of its own


def read(broker, count, **options):
    options = {"group_id": "g", "auto_offset_reset": "earliest", "enable_auto_commit": False, **options}
    consumer = KafkaConsumer("t", bootstrap_servers=broker.bootstrap_servers, **options)
    values = []
    wait_until(
        lambda: [values.extend(some) for some in consumer.poll(100).values()] and len(values) >= count, 60
    )
    consumer.commit()
    consumer.close()
    return [record.value for record in values]


@pytest.fixture
def prepared():
    """A broker with all that is stored, and its snapshot."""
    with TestBroker() as broker:
        broker.create_topic("t", 2, {"retention.ms": "7200000"})
        broker.preload("t", [b"a", LARGE], partition=0)
        broker.preload("t", [b"b"], partition=1)
        read(broker, 3)
        broker.clock.advance(hours=1)
        yield broker, broker.snapshot()


def looks(broker):
    return (
        broker.values("t"),
        broker.committed("g"),
        broker.topics(),
        round(broker.clock.ahead),
    )


BEGIN = ([b"a", LARGE, b"b"], {TopicPartition("t", 0): 2, TopicPartition("t", 1): 1}, ["t"], 3600)


def test_many_brokers_begin_with_it_and_go_their_own_ways(prepared):
    first, snapshot = prepared
    brokers = [TestBroker(snapshot=snapshot).start() for _ in range(3)]
    for number, broker in enumerate(brokers):
        assert looks(broker) == BEGIN
        broker.preload("t", [b"%d" % number], partition=0)
        broker.create_topic(f"own-{number}")
    for number, broker in enumerate(brokers):
        assert broker.values("t", 0) == [b"a", LARGE, b"%d" % number]
        assert broker.topics() == [f"own-{number}", "t"]
        broker.stop()
    assert looks(first) == BEGIN
    snapshot.close()


def test_a_broker_is_restored_as_often_as_wanted_at_its_address_with_its_clients(prepared):
    broker, snapshot = prepared
    address = broker.bootstrap_servers
    with KafkaProducer(bootstrap_servers=address, retry_backoff_ms=5) as producer:
        for _ in range(3):
            producer.send("t", b"more", partition=0).get(100)
            broker.preload("u", [b"more"])
            broker.clock.advance(minutes=30)
            assert broker.values("t", 0) == [b"a", LARGE, b"more"]
            broker.restore(snapshot)
            assert looks(broker) == BEGIN and broker.bootstrap_servers == address
    assert read(broker, 1, group_id="other") != []


def test_records_stored_or_deleted_afterwards_leave_a_snapshot_unchanged(prepared):
    broker, snapshot = prepared
    for _ in range(200):
        broker.preload("t", [LARGE], partition=1)
    broker.clock.advance(hours=3)  # all of it is too old by then
    assert broker.values("t") == []
    with TestBroker(snapshot=snapshot) as other:
        assert looks(other) == BEGIN


def test_it_is_taken_while_records_are_written_and_has_whole_ones(tmp_path):
    with TestBroker() as broker:
        broker.create_topic("t")
        stop = threading.Event()

        def write():
            with KafkaProducer(bootstrap_servers=broker.bootstrap_servers) as producer:
                number = 0
                while not stop.is_set() and number < 300:
                    producer.send("t", b"%d " % number + (LARGE if number % 3 == 0 else b"")).get(100)
                    number += 1

        writer = threading.Thread(target=write)
        writer.start()
        try:
            before = 0
            for number in range(5):
                broker.wait_for_records("t", min(before + 2, 300), timeout=100)
                before = len(broker.values("t"))
                snapshot = broker.snapshot()
                path = tmp_path / str(number)
                with TestBroker(path, snapshot=snapshot) as other:
                    values = other.values("t")
                    assert len(values) >= before
                    assert [int(value.split()[0]) for value in values] == list(range(len(values)))
                *_, seen = verify(path)
                assert seen.damages == []
                snapshot.close()
        finally:
            stop.set()
            writer.join()


def test_a_folder_that_has_something_in_it_is_not_overwritten(prepared, tmp_path):
    _, snapshot = prepared
    (tmp_path / "letter").write_text("dear")
    with pytest.raises(FileExistsError, match="empty folder"):
        TestBroker(tmp_path, snapshot=snapshot).start()
    assert (tmp_path / "letter").read_text() == "dear"


def test_a_path_of_its_own_begins_with_it_once(prepared, tmp_path):
    _, snapshot = prepared
    broker = TestBroker(tmp_path / "data", snapshot=snapshot)
    with broker:
        broker.preload("t", [b"more"], partition=0)
    with broker:
        assert broker.values("t", 0) == [b"a", LARGE, b"more"]
        broker.restore(snapshot)
        assert looks(broker) == BEGIN


def test_files_of_the_program_beside_those_of_a_broker_that_is_restored_stay(prepared, tmp_path):
    _, snapshot = prepared
    with TestBroker(tmp_path, snapshot=snapshot) as broker:
        (tmp_path / "letters").mkdir()
        (tmp_path / "letters" / "one").write_text("dear")
        (tmp_path / "link").symlink_to(tmp_path / "letters")
        for _ in range(2):
            broker.preload("t", [b"more"], partition=0)
            broker.restore(snapshot)
            assert looks(broker) == BEGIN
    assert (tmp_path / "link" / "one").read_text() == "dear"


def test_chaos_begins_with_it_as_well(prepared):
    _, snapshot = prepared
    with chaos(3, snapshot=snapshot) as broker:
        assert looks(broker) == BEGIN


def test_a_snapshot_that_is_closed_is_refused_and_its_folder_is_gone(prepared):
    broker, snapshot = prepared
    folder = snapshot._folder
    assert os.path.exists(folder) and repr(snapshot) == f"<snapshot in {folder!r}>"
    snapshot.close()
    assert not os.path.exists(folder) and repr(snapshot) == "<snapshot, closed>"
    for act in (lambda: TestBroker(snapshot=snapshot), lambda: broker.restore(snapshot)):
        with pytest.raises(ValueError, match="closed"):
            act()
    assert looks(broker) == BEGIN


def test_a_snapshot_that_nobody_has_any_more_is_removed(prepared):
    broker, _ = prepared
    another = broker.snapshot()
    assert isinstance(another, Snapshot)
    folder = another._folder
    del another
    assert not os.path.exists(folder)


def test_a_restart_keeps_what_is_stored_in_a_temporary_folder_too(prepared):
    broker, _ = prepared
    path, address = broker.path, broker.bootstrap_servers
    broker.restart()
    assert (broker.path, broker.bootstrap_servers) == (path, address)
    assert looks(broker) == BEGIN
    broker.stop()
    assert not os.path.exists(path)


def test_taking_and_beginning_takes_milliseconds(prepared):
    broker, _ = prepared

    def once():
        began = time.perf_counter()
        with TestBroker(snapshot=broker.snapshot()):
            return time.perf_counter() - began

    assert min(once() for _ in range(20)) < 0.2  # 0.01 on an idle machine
