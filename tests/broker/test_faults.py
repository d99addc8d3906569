"""A disk that fails, and values that are damaged: named errors, the broker stays up, the rest is readable."""

from __future__ import annotations

import os
import time
from types import SimpleNamespace

import kafka.errors as errors
import pytest
from broker.clients import Client
from log.messages import chunk_rows, database
from timing import until

from compat.kafka import KafkaConsumer
from dafka import Broker
from dafka.broker.interface.broker import EARLIEST, CommittedOffset, TopicSpec
from dafka.log import LogWriteError
from dafka.log.repeating import LINES

LARGE = bytes(100_000)


@pytest.fixture
def damaged(tmp_path):
    """A folder whose topic t has lost the second of its three values, with offset 1."""
    with Broker(tmp_path) as broker:
        client = Client(broker)
        client.create("t")
        for letter in (b"a", b"b", b"c"):
            client.produce("t", letter + LARGE)
    _, (row, _, value), _ = chunk_rows(tmp_path)
    harmed = value[:5000] + bytes([value[5000] ^ 1]) + value[5001:]
    with database(tmp_path) as rows:
        rows.execute("UPDATE Cache SET value = ? WHERE rowid = ?", (harmed, row))
    return tmp_path


def test_a_damaged_value_is_refused_and_the_records_around_it_can_be_read(damaged):
    with Broker(damaged) as broker:
        client = Client(broker)
        assert len(client.fetch("t", 0).batches) == 1
        assert client.fetch("t", 1).error is errors.CorruptRecordError
        assert len(client.fetch("t", 2).batches) == 1


def test_the_place_of_the_damage_is_logged_once(damaged, caplog):
    with Broker(damaged) as broker:
        client = Client(broker)
        for _ in range(3):
            assert client.fetch("t", 1).error is errors.CorruptRecordError
    ours = [one for one in caplog.records if one.name.startswith("dafka")]
    (line,) = [one.getMessage() for one in ours if one.levelname == "ERROR"]
    assert "sequences 1 to 1 of topic b't'" in line


def test_a_damaged_value_is_skipped_if_the_broker_is_told_to(damaged, caplog):
    with Broker(damaged, on_damage="skip") as broker:
        with KafkaConsumer(
            "t", bootstrap_servers=broker.bootstrap_servers, auto_offset_reset="earliest"
        ) as consumer:
            records = [next(consumer) for _ in range(2)]
        assert [(record.offset, record.value[:1]) for record in records] == [(0, b"a"), (2, b"c")]
        assert Client(broker).produce("t", b"d").base_offset == 3
    assert "is damaged" in caplog.text
    assert "it is skipped" in caplog.text


def test_a_disk_that_fails_writes_some_lines_and_not_one_for_each_batch(client, monkeypatch, caplog):
    client.create("t")
    full = SimpleNamespace(f_bavail=1_000_000, f_frsize=1, f_blocks=10**9)
    monkeypatch.setattr(os, "statvfs", lambda path: full)
    for _ in range(200):
        assert client.produce("t", b"refused").error is errors.KafkaStorageError
    lines = [record for record in caplog.records if record.name.startswith("dafka")]
    assert 0 < len(lines) <= 2 * LINES
    assert "No space left on device" in lines[0].getMessage()


def test_retention_on_a_disk_that_fails_is_tried_again_without_harm(monkeypatch, caplog, capfd):
    with Broker(retention_ms=500, retention_check_interval=0.05) as broker:
        client = Client(broker)
        client.create("t")
        log = client.core.log
        commit = log._storage.commit

        def failing(deleted, stored):
            stored = list(stored)
            if any(row[:1] == b"f" for row, _ in stored):  # a floor: the beginning of a partition moves
                raise LogWriteError(log.path, "no space left on device")
            return commit(deleted, stored)

        with monkeypatch.context() as patch:
            patch.setattr(log._storage, "commit", failing)
            client.produce("t", LARGE, timestamp=int(time.time() * 1000))
            until(lambda: "no space left on device" in caplog.text)
            assert client.call("delete_records", {("t", 0): 1})["t", 0].error is errors.KafkaStorageError
            assert client.call("list_offsets", {("t", 0): EARLIEST})["t", 0].offset == 0
            assert client.values("t") == [LARGE]
            assert client.produce("t", b"b", timestamp=2**40).base_offset == 1
        until(lambda: client.call("list_offsets", {("t", 0): EARLIEST})["t", 0].offset > 0)
    assert "Traceback" not in capfd.readouterr().err


def test_the_records_of_a_deleted_topic_go_when_the_disk_works_again(monkeypatch, caplog):
    monkeypatch.setattr("dafka.broker.embedded.cleaner._REST", 0.05)
    with Broker() as broker:
        client = Client(broker)
        client.create("t")
        client.produce("t", LARGE)
        log = client.core.log
        commit = log._storage.commit

        def failing(deleted, stored):
            stored = list(stored)
            if any(row[:1] == b"d" for row, _ in stored):  # a partition is dropped
                raise LogWriteError(log.path, "no space left on device")
            return commit(deleted, stored)

        with monkeypatch.context() as patch:
            patch.setattr(log._storage, "commit", failing)
            assert client.change("delete_topics", ["t"]) == {"t": None}
            until(lambda: "could not be deleted yet" in caplog.text)
            assert len(log.partitions()) == 1
        until(lambda: not log.partitions())
        assert client.change("create_topics", {"t": TopicSpec()}) == {"t": None}


def test_on_a_full_disk_nothing_is_stored_and_whatever_makes_room_can_be_done(client, monkeypatch):
    for topic in ("t", "other"):
        client.create(topic)
        for _ in range(5):
            client.produce(topic, LARGE)
    full = SimpleNamespace(f_bavail=1_000_000, f_frsize=1, f_blocks=10**9)
    with monkeypatch.context() as patch:
        patch.setattr(os, "statvfs", lambda path: full)
        assert client.produce("t", b"more").error is errors.KafkaStorageError
        offsets = {("t", 0): CommittedOffset(3)}
        assert client.call("commit_offsets", "g", offsets) == {("t", 0): None}
        assert client.call("delete_records", {("t", 0): 3})["t", 0] == (None, 3)
        assert client.change("delete_topics", ["other"]) == {"other": None}
        until(lambda: len(client.core.log.partitions()) == 1 and not client.core.log.space.garbage_bytes)
        assert client.produce("t", b"more").error is errors.KafkaStorageError
        assert len(client.values("t", 3)) == 2
    assert client.produce("t", b"more").error is None
