"""Fetch: the records read, their bounds, and waiting for more."""

from __future__ import annotations

import time

import gevent
import kafka.errors as errors
import pytest
from broker.clients import MEGABYTE, batch
from broker.records.fetching import outcome, spawn_fetch
from broker.transactions import transactional

from dafka.broker.interface.broker import Fetched, FetchFrom
from dafka.broker.limits import YIELD_BYTES
from dafka.broker.records import fetch as fetching
from dafka.hub.turns import next_turn
from dafka.log import DamagedError, LogReadError
from dafka.protocol.batch import read_header
from dafka.protocol.batch_reader import decode_batch

# -- reading --------------------------------------------------------------------------------------


def test_the_first_batch_is_the_one_that_holds_the_offset(client):
    client.create("t")
    client.produce("t", b"a", b"b", b"c")
    client.produce("t", b"d")
    fetched = client.fetch("t", 1)
    assert [read_header(content).base_offset for content in fetched.batches] == [0, 3]
    assert (fetched.error, fetched.high_watermark, fetched.log_start_offset) == (None, 4, 0)


def test_batches_are_served_without_being_copied(client):
    client.create("t")
    client.produce("t", b"a")
    first, second = client.fetch("t"), client.fetch("t")
    assert first.batches[0] is second.batches[0]


def test_an_offset_outside_of_the_partition_is_out_of_range(client):
    client.create("t")
    client.produce("t", b"a")
    assert client.fetch("t", 1).error is None
    for offset in (2, -1):
        assert client.fetch("t", offset) == Fetched(errors.OffsetOutOfRangeError, 1, 0, (), 1)


def test_an_unknown_partition_is_an_error_at_once(client):
    client.create("t")
    started = time.monotonic()
    assert client.fetch("t", partition=1, wait=100).error is errors.UnknownTopicOrPartitionError
    assert client.fetch("u", wait=100).error is errors.UnknownTopicOrPartitionError
    assert time.monotonic() - started < 50


def test_a_partition_gets_batches_up_to_its_limit_and_at_least_one(client):
    client.create("t")
    size = len(batch(b"x" * 1000))
    client.call("produce", {("t", 0): [batch(b"x" * 1000)] * 10})
    for limit, count in [(0, 1), (1, 1), (size, 1), (3 * size, 3), (3 * size + 1, 3), (100 * size, 10)]:
        assert len(client.fetch("t", max_bytes=limit).batches) == count


def test_the_limit_of_the_whole_fetch_counts_over_partitions_in_their_order(client):
    client.create("t", 3)
    content = batch(b"x" * 1000)
    client.call("produce", {("t", number): [content] * 2 for number in range(3)})
    wanted = {("t", number): FetchFrom(0, MEGABYTE) for number in (2, 0, 1)}

    def counts(max_bytes):
        answers = client.call("fetch", wanted, max_wait=0, min_bytes=1, max_bytes=max_bytes)
        return [(number, len(answer.batches)) for (_, number), answer in answers.items()]

    assert counts(1) == [(2, 1)]
    assert counts(len(content) * 3 // 2) == [(2, 1)]
    assert counts(2 * len(content)) == [(2, 2)]
    assert counts(3 * len(content) - 1) == [(2, 2)]
    assert counts(3 * len(content)) == [(2, 2), (0, 1)]
    assert counts(4 * len(content)) == [(2, 2), (0, 2)]
    assert counts(100 * len(content)) == [(2, 2), (0, 2), (1, 2)]


def test_only_the_first_batch_of_all_partitions_may_exceed_a_limit(client):
    client.create("t", 4)
    large, small = batch(b"x" * 900), batch(b"y" * 100)
    for number, content in enumerate([large, large, small, large]):
        client.call("produce", {("t", number): [content]})

    def read(max_bytes, each, order=(0, 1, 2, 3)):
        wanted = {("t", number): FetchFrom(0, each) for number in order}
        answers = client.call("fetch", wanted, max_wait=0, min_bytes=1, max_bytes=max_bytes)
        return [number for (_, number), answer in answers.items() if answer.batches]

    assert read(1, MEGABYTE) == [0]
    assert read(len(large) + len(small), MEGABYTE) == [0, 2]
    assert read(MEGABYTE, len(small)) == [0, 2]
    assert read(MEGABYTE, 0, (3, 2, 1, 0)) == [3]
    assert read(3 * len(large) + len(small), len(large)) == [0, 1, 2, 3]


def test_a_fetch_without_room_for_the_next_partition_does_not_wait(client):
    client.create("t", 2)
    content = batch(b"x" * 1000)
    client.call("produce", {("t", number): [content] for number in range(2)})
    wanted = {("t", number): FetchFrom(0, MEGABYTE) for number in range(2)}
    enough = len(content) + 1
    began = time.monotonic()
    answers = client.call("fetch", wanted, max_wait=100.0, min_bytes=enough, max_bytes=enough)
    assert time.monotonic() - began < 50
    assert {key: len(answer.batches) for key, answer in answers.items()} == {("t", 0): 1}


def test_many_partitions_without_room_are_not_all_read(client, monkeypatch):
    client.create("t", 100)
    content = batch(b"x" * 1000)
    client.call("produce", {("t", number): [content] for number in range(100)})
    log, read, reads = client.core.log, client.core.log.read_offsets, []

    def read_offsets(stored, *args, **kwargs):
        reads.append(stored)
        return read(stored, *args, **kwargs)

    monkeypatch.setattr(log, "read_offsets", read_offsets)
    wanted = {("t", number): FetchFrom(0, MEGABYTE) for number in range(100)}
    client.call("fetch", wanted, max_wait=0, min_bytes=1, max_bytes=len(content) + 1)
    assert len(reads) == 1 + fetching.MISFITS


@pytest.mark.parametrize(
    ("failure", "error"),
    [
        (lambda path: DamagedError(path, "damaged", "here"), errors.CorruptRecordError),
        (lambda path: LogReadError(path, "EIO"), errors.KafkaStorageError),
    ],
)
def test_a_failure_of_reading_is_an_error_of_its_partition(client, monkeypatch, failure, error):
    client.create("t", 2)
    client.produce("t", b"a")
    client.produce("t", b"b", partition=1)
    log, read = client.core.log, client.core.log.read_offsets

    def read_offsets(stored, *args, **kwargs):
        if stored.address.decode() == client.partitions("t")[0][0]:
            raise failure(log.path)
        return read(stored, *args, **kwargs)

    monkeypatch.setattr(log, "read_offsets", read_offsets)
    wanted = {("t", number): FetchFrom(0, MEGABYTE) for number in range(2)}
    answers = client.call("fetch", wanted, max_wait=0, min_bytes=1, max_bytes=MEGABYTE)
    assert answers["t", 0].error is error
    assert len(answers["t", 1].batches) == 1


# -- waiting --------------------------------------------------------------------------------------


def test_a_fetch_waits_until_something_is_committed(client):
    client.create("t", 2)
    green = spawn_fetch(client, {("t", 0): FetchFrom(0, MEGABYTE), ("t", 1): FetchFrom(0, MEGABYTE)})
    assert not green.ready()
    client.produce("t", b"a", partition=1)
    answers = outcome(client, green)
    assert list(answers) == [("t", 1)]
    assert decode_batch(answers["t", 1].batches[0]).values == [b"a"]


def test_a_fetch_without_records_answers_for_all_partitions_at_its_deadline(client):
    client.create("t", 2)
    wanted = {("t", number): FetchFrom(0, MEGABYTE) for number in range(2)}
    started = time.monotonic()
    answers = client.call("fetch", wanted, max_wait=0.1, min_bytes=1, max_bytes=MEGABYTE)
    assert 0.1 <= time.monotonic() - started < 50
    assert answers == {key: Fetched(None, 0, 0, (), 0) for key in wanted}


def test_min_bytes_0_does_not_wait(client):
    client.create("t")
    started = time.monotonic()
    wanted = {("t", 0): FetchFrom(0, MEGABYTE)}
    assert client.call("fetch", wanted, max_wait=100, min_bytes=0, max_bytes=MEGABYTE)
    assert time.monotonic() - started < 50


def test_a_fetch_gathers_until_there_are_min_bytes_and_reads_every_batch_once(client):
    client.create("t", 2)
    size = len(batch(b"x" * 100))
    client.produce("t", b"x" * 100)
    wanted = {("t", 0): FetchFrom(0, MEGABYTE), ("t", 1): FetchFrom(0, MEGABYTE)}
    green = spawn_fetch(client, wanted, min_bytes=4 * size)
    client.produce("t", b"y" * 100, partition=1)
    client.produce("t", b"y" * 100)
    assert not green.ready()
    client.produce("t", b"z" * 100)
    answers = outcome(client, green)
    values = {key: [decode_batch(one).values for one in found.batches] for key, found in answers.items()}
    assert values == {
        ("t", 0): [[b"x" * 100], [b"y" * 100], [b"z" * 100]],
        ("t", 1): [[b"y" * 100]],
    }
    assert answers["t", 0].high_watermark == 3


def test_a_fetch_misses_nothing_that_is_committed_while_it_reads_other_partitions(client, monkeypatch):
    client.create("t", 2)
    for _ in range(2):
        assert client.produce("t", bytes(YIELD_BYTES * 2 // 3)).error is None
    wanted = {("t", number): FetchFrom(0, 10 * MEGABYTE) for number in (1, 0)}
    least = YIELD_BYTES * 4 // 3 + 500
    produced = {}

    def pause():
        """The first one: it has read the empty partition and a part of the other one."""
        if not produced:
            produced.update(client.core.produce({("t", 1): [batch(bytes(1000))]}))

    monkeypatch.setattr("dafka.hub.turns._rest", pause)
    began = time.monotonic()
    answers = client.call("fetch", wanted, max_wait=100.0, min_bytes=least, max_bytes=50 * MEGABYTE)
    assert time.monotonic() - began < 50
    assert [len(answers["t", number].batches) for number in range(2)] == [2, 1]


def test_a_fetch_answers_with_less_than_min_bytes_at_its_deadline(client):
    client.create("t", 2)
    client.produce("t", b"a")
    wanted = {("t", 0): FetchFrom(0, MEGABYTE), ("t", 1): FetchFrom(0, MEGABYTE)}
    answers = client.call("fetch", wanted, max_wait=0.05, min_bytes=MEGABYTE, max_bytes=MEGABYTE)
    assert [len(answers["t", number].batches) for number in range(2)] == [1, 0]


def test_a_waiting_fetch_leaves_nothing_behind(client):
    client.create("t")
    green = spawn_fetch(client, {("t", 0): FetchFrom(0, MEGABYTE)})
    client.connection.hub.run(green.kill)
    assert client.core._record_calls._fetches == set()
    assert client.core._topics.partition("t", 0).watchers == []


def test_a_waiting_fetch_lists_aborted_transactions_whose_records_are_deleted_meanwhile(client, monkeypatch):
    """And what was known of their transactions with them."""
    monkeypatch.setattr("dafka.broker.records.transaction_index.ABORTED_BLOCK", 1)
    client.create("t")
    producer = transactional.Producer(client)
    producer.send(b"aborted")
    producer.abort()
    client.produce("t", b"a")
    green = spawn_fetch(client, {("t", 0): FetchFrom(0, MEGABYTE)}, min_bytes=1000, read_committed=True)
    assert client.call("delete_records", {("t", 0): 3})["t", 0].low_watermark == 3
    client.connection.hub.run(client.core._producers.forget_old, gevent.sleep)
    assert len(client.core.log.table("aborted")) == 0
    client.produce("t", bytes(1000))
    fetched = outcome(client, green)["t", 0]
    assert transactional.visible(fetched) == [b"a", bytes(1000)]


def test_an_aborted_transaction_is_named_once_however_often_a_fetch_has_read_on_in_it(client):
    client.create("t")
    producer = transactional.Producer(client)
    for letter in (b"a", b"b"):
        producer.send(letter)
    producer.abort()
    size = len(batch(b"a"))
    wanted = {("t", 0): FetchFrom(0, size)}
    answers = client.call("fetch", wanted, max_wait=0, min_bytes=1, max_bytes=MEGABYTE, read_committed=True)
    assert [answers["t", 0].aborted, len(answers["t", 0].batches)] == [((producer.producer_id, 0),), 1]
    assert transactional.fetch(client, 1).aborted == ((producer.producer_id, 0),)


def test_deleting_a_topic_wakes_its_fetches(client):
    client.create("t")
    green = spawn_fetch(client, {("t", 0): FetchFrom(0, MEGABYTE)})
    client.call("delete_topics", ["t"])
    assert outcome(client, green)["t", 0].error is errors.UnknownTopicOrPartitionError


@pytest.mark.parametrize("phase", ["begins", "ends"])
def test_a_fetch_that_is_ended_while_its_wait_begins_or_ends_is_kept_by_no_partition(
    client, monkeypatch, phase
):
    monkeypatch.setattr("dafka.hub.limits.PACE_SECONDS", 0.0)  # a pause after each 64 partitions
    client.create("t", partitions=300)

    def watched_after_the_end() -> int:
        partitions = client.core._topics.get("t").partitions
        wanted = {("t", number): FetchFrom(0, MEGABYTE) for number in range(300)}
        wait = 10.0 if phase == "begins" else 0.2
        fetch = gevent.spawn(client.core.fetch, wanted, max_wait=wait, min_bytes=1, max_bytes=MEGABYTE)
        first, last = partitions[0], partitions[-1]
        watched, free = (first, last) if phase == "begins" else (last, first)
        with gevent.Timeout(100):
            while free.watchers or not watched.watchers:
                next_turn()
        fetch.kill()
        return sum(len(partition.watchers) for partition in partitions)

    assert client.connection.hub.run(watched_after_the_end) == 0
