"""Fetch: the messages of native producers as record batches."""

from __future__ import annotations

import time

from broker.clients import MEGABYTE, batch
from broker.records.fetching import outcome, spawn_fetch
from timing import until

from dafka import Producer
from dafka.broker.interface.broker import FetchFrom
from dafka.protocol.batch import read_header
from dafka.protocol.batch_reader import decode_batch


def test_messages_of_a_native_producer_are_served_as_batches(broker, client):
    before = time.time() * 1000
    with Producer("n", tower=broker.tower) as producer:
        for number in range(2500):
            producer.send(b"%d" % number)
        producer.flush(100)
        address = producer.address
    until(lambda: len(client.partitions("n")) == 2)
    assert client.partitions("n")[1] == (address, False)
    fetched = client.fetch("n", 700, partition=1)
    columns = [decode_batch(content) for content in fetched.batches]
    assert [offset for part in columns for offset in part.offsets] == list(range(700, 2500))
    assert [value for part in columns for value in part.values] == [b"%d" % n for n in range(700, 2500)]
    assert {key for part in columns for key in part.keys} == {None}
    times = {timestamp for part in columns for timestamp in part.timestamps}
    assert all(before - 1000 <= timestamp <= time.time() * 1000 + 1000 for timestamp in times)
    assert {read_header(content).timestamp_type for content in fetched.batches} == {1}
    assert fetched.high_watermark == 2500


def test_a_native_record_that_looks_like_a_batch_is_a_value_like_any_other(broker, client):
    with Producer("n", tower=broker.tower) as producer:
        producer.send(b"raw")
        producer.flush(100)
    until(lambda: len(client.partitions("n")) == 2)
    # Ours refuses to send this; a node of another library does not.
    core = client.core
    stored = core.log.find(b"n", producer.address.encode())
    client.connection.hub.run(core._writer.append, stored, 1, [batch(b"inner")], lambda error: None)
    until(lambda: stored.next_sequence == 2)
    assert client.values("n", partition=1) == [b"raw", batch(b"inner")]


def test_empty_native_messages_do_not_make_a_fetch_without_bounds(broker, client, monkeypatch):
    monkeypatch.setattr("dafka.broker.records.fetch.RAW_MESSAGES", 10)
    with Producer("n", tower=broker.tower) as producer:
        for _ in range(5):
            for _ in range(100):
                producer.send(b"")
            producer.flush(100)
    until(lambda: len(client.partitions("n")) == 2)
    seen: list[int] = []
    while len(seen) < 500:
        fetched = client.fetch("n", len(seen), partition=1)
        offsets = [offset for content in fetched.batches for offset in decode_batch(content).offsets]
        assert 0 < len(offsets) < 500
        seen += offsets
    assert seen == list(range(500))


def test_native_messages_take_no_more_than_the_limits_as_batches(broker, client):
    client.create("t")
    content = batch(b"x" * 1000)
    client.call("produce", {("t", 0): [content]})
    with Producer("n", tower=broker.tower) as producer:
        for number in range(2000):
            producer.send(b"%d" % number)
            if number % 100 == 0:
                producer.flush(100)
    until(lambda: len(client.partitions("n")) == 2)
    position = 0
    for limit in range(1, 5000, 700):
        wanted = {("t", 0): FetchFrom(0, MEGABYTE), ("n", 1): FetchFrom(position, MEGABYTE)}
        most = len(content) + limit
        answers = client.call("fetch", wanted, max_wait=0, min_bytes=1, max_bytes=most)
        batches = answers["n", 1].batches if ("n", 1) in answers else []
        assert sum(map(len, batches)) <= limit
        assert bool(batches) == (limit > 100)
        for one in batches:
            assert read_header(one).base_offset == position
            position = read_header(one).next_offset
    assert client.fetch("n", partition=1, max_bytes=1).batches


def test_a_fetch_that_waits_is_woken_by_a_native_producer(broker, client):
    with Producer("n", tower=broker.tower) as producer:
        producer.send(b"first")
        producer.flush(100)
        until(lambda: len(client.partitions("n")) == 2)
        green = spawn_fetch(client, {("n", 1): FetchFrom(1, MEGABYTE)})
        producer.send(b"second")
        answers = outcome(client, green)
    assert decode_batch(answers["n", 1].batches[0]).values == [b"second"]
