"""The records of deleted topics leave the disk, and what stays."""

from __future__ import annotations

import threading
from collections import Counter
from types import SimpleNamespace

import gevent
from broker.clients import Client, batch
from broker.embedded.cleaning import (
    LARGE,
    create,
    end_of,
    size_of,
    start_of,
)
from broker.pausing import at_pause, counted_pauses
from timing import until

from compat.kafka import KafkaConsumer, KafkaProducer, TopicPartition
from dafka import Broker, Producer, Store
from dafka.broker.interface.topics import TopicSpec
from dafka.hub.limits import PACE_ITEMS


def test_the_records_of_a_deleted_topic_leave_the_disk(tmp_path):
    with Broker(tmp_path) as broker:
        client = Client(broker)
        create(client, partitions=3)
        create(client, "kept")
        client.produce("kept", b"x")
        for number in range(150):
            client.produce("t", LARGE, partition=number % 3)
        full = size_of(tmp_path)
        assert client.change("delete_topics", ["t"]) == {"t": None}
        create(client)
        assert start_of(client) == end_of(client) == 0
        log = client.core.log
        until(lambda: {partition.topic for partition in log.partitions()} == {b"kept"})
        until(lambda: log.space.garbage_bytes == 0 == log.space.spare_bytes)
    with Broker(tmp_path) as broker:
        client = Client(broker)
        assert client.values("kept") == [b"x"]
        assert client.produce("t", b"anew").base_offset == 0
    assert size_of(tmp_path) < full / 3


def test_each_part_of_the_broker_forgets_very_many_partitions_in_pieces(tmp_path, monkeypatch):
    with Broker(tmp_path) as broker:
        client = Client(broker)
        create(client, partitions=1000)
        hub, core = client.connection.hub, client.core
        topic = hub.run(core._topics.get, "t")
        pauses = counted_pauses(monkeypatch)
        before = pauses()
        hub.run(core._producers.forget, topic)
        between = pauses()
        hub.run(core._log_cleaner.deleted, topic.partitions)
        assert min(between - before, pauses() - between) >= 1000 // PACE_ITEMS


def test_records_that_were_never_there_are_deleted_in_pieces(tmp_path, monkeypatch):
    """Nothing is written for them, so nothing is waited for: very many took a long turn."""
    count = 10 * PACE_ITEMS
    with Broker(tmp_path) as broker:
        client = Client(broker)
        create(client, partitions=count)
        cleaner, looked = client.core._log_cleaner, Counter[int]()
        pauses, find = counted_pauses(monkeypatch), client.core.log.find

        def counted(topic: bytes, address: bytes) -> object:
            looked[pauses()] += 1
            return find(topic, address)

        monkeypatch.setattr(cleaner, "_log", SimpleNamespace(find=counted))
        client.call("delete_topics", ["t"])
        until(lambda: not cleaner._deleted)
        assert looked.total() >= count
        assert max(looked.values()) <= PACE_ITEMS


def test_topics_that_are_deleted_while_the_records_of_one_go_lose_theirs_too(tmp_path, monkeypatch):
    """And one that is made anew meanwhile keeps its own."""
    count = 3 * PACE_ITEMS
    with Broker(tmp_path) as broker:
        client = Client(broker)
        create(client, partitions=count)
        create(client, "u", partitions=2)
        client.produce("t", b"old", partition=count - 1)
        client.produce("u", b"x", partition=1)
        core = client.core

        def happen() -> None:
            assert core.create_topics({"t": TopicSpec(count)})["t"].error is None
            answers = core.produce({("t", number): [batch(b"new")] for number in (0, count - 1)}, 1)
            assert [one.error for one in answers.values()] == [None, None]
            assert core.delete_topics(["u"])["u"].error is None

        happened = at_pause(monkeypatch, "_delete_some", happen)
        client.call("delete_topics", ["t"])
        until(happened)
        until(lambda: len(core.log.partitions()) == 2)
        until(lambda: not core._log_cleaner._deleted)
        assert {one.topic for one in core.log.partitions()} == {b"t"}
        assert [client.values("t", partition=number) for number in (0, count - 1)] == [[b"new"], [b"new"]]


def test_a_broker_that_stops_while_records_of_a_deleted_topic_go_deletes_the_others_later(
    tmp_path, monkeypatch
):
    count = 3 * PACE_ITEMS
    broker = Broker(tmp_path)
    broker.start()
    client = Client(broker)
    create(client, partitions=count)
    client.produce("t", LARGE, partition=count - 1)
    cleaner, stopping = client.core._log_cleaner, threading.Thread(target=broker.stop)

    def happen() -> None:
        stopping.start()
        while not cleaner._closed:
            gevent.sleep(0.001)

    with monkeypatch.context() as patched:
        happened = at_pause(patched, "_delete_some", happen)
        client.call("delete_topics", ["t"])
        until(happened)
        until(lambda: stopping.ident is not None)  # it may have ended as well
        stopping.join(100)
        assert not stopping.is_alive()
        assert cleaner._deleted
    with Broker(tmp_path) as broker:
        log = Client(broker).core.log
        until(lambda: not log.partitions())
        until(lambda: log.space.garbage_bytes == 0)


def test_a_deletion_that_was_interrupted_is_finished_at_the_next_start(tmp_path, monkeypatch):
    with Broker(tmp_path) as broker:
        client = Client(broker)
        create(client)
        client.produce("t", LARGE)
        monkeypatch.setattr(client.core._log_cleaner, "deleted", lambda partitions: None)  # as if killed here
        client.call("delete_topics", ["t"])
        assert [partition.topic for partition in client.core.log.partitions()] == [b"t"]
    with Broker(tmp_path) as broker:
        log = Client(broker).core.log
        until(lambda: not log.partitions())


def test_a_native_partition_of_a_deleted_topic_loses_its_records_and_goes_on(broker, client):
    with Producer("t", tower=broker.tower) as producer:
        for _ in range(30):
            producer.send(LARGE)
        producer.flush(100)
        until(lambda: len(client.call("metadata", ["t"]).topics["t"].partitions) == 2)
        client.call("delete_topics", ["t"])
        (stored,) = [one for one in client.core.log.partitions() if one.topic == b"t"]
        until(lambda: stored.first_offset == 30)
        producer.send(b"more")
        producer.flush(100)
        number = until(
            lambda: [one.number for one in client.call("metadata", ["t"]).topics["t"].partitions][1:]
        )
        assert client.values("t", 30, partition=number[0]) == [b"more"]
        assert start_of(client, partition=number[0]) == 30


def test_records_of_a_deleted_topic_that_another_store_kept_do_not_come_back(tmp_path):
    with Broker(tmp_path / "broker") as broker:
        client = Client(broker)
        with Store(tmp_path / "store", tower=broker.tower) as store:
            create(client)
            client.produce("t", LARGE)
            until(lambda: store.heads())
            client.call("delete_topics", ["t"])
            log = client.core.log
            until(lambda: not log.partitions())
            with Store(tmp_path / "other", tower=broker.tower) as other:
                until(lambda: other.heads())  # stores tell each other what they have
                assert not log.partitions()


def test_groups_keep_their_offsets_over_trimming(broker, client):
    create(client)
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap_servers)
    for _ in range(10):
        producer.send("t", b"x")
    producer.close()
    partition = TopicPartition("t", 0)
    options = {"group_id": "g", "bootstrap_servers": broker.bootstrap_servers}
    with KafkaConsumer("t", auto_offset_reset="earliest", **options) as consumer:
        seen = 0
        while seen < 10:
            seen += sum(map(len, consumer.poll(1000).values()))
        consumer.commit()
    client.call("delete_records", {("t", 0): -1})
    with KafkaConsumer("t", **options) as consumer:
        assert consumer.committed(partition) == 10
        client.produce("t", b"next")
        polled = until(lambda: consumer.poll(1000))
        assert [record.offset for record in polled[partition]] == [10]
