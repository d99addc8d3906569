"""Fetch: what is read, in which bounds, and waiting for more."""

from __future__ import annotations

import time

import gevent
import kafka.errors as errors
import pytest
from broker.clients import MEGABYTE, Client, batch, until
from broker.damaged import LARGE, harm_last
from broker.transactions import transactional

from dafka import Broker, Producer
from dafka.broker.interface.broker import Fetched, FetchFrom
from dafka.broker.limits import YIELD_BYTES
from dafka.broker.records import fetch as fetching
from dafka.log import DamagedError, LogReadError
from dafka.protocol.batch import check_batch, read_header
from dafka.protocol.batch_reader import decode_batch
from dafka.testing import TestBroker


def spawn_fetch(client, wanted, *, max_wait=10.0, min_bytes=1, max_bytes=50 * MEGABYTE, **options):
    """A fetch under way as a green thread of the hub, parked if there is nothing; ``get()`` it in the hub."""

    def start():
        green = gevent.spawn(
            client.core.fetch,
            wanted,
            max_wait=max_wait,
            min_bytes=min_bytes,
            max_bytes=max_bytes,
            **options,
        )
        gevent.sleep(0)
        return green

    return client.connection.hub.run(start)


def outcome(client, green):
    return client.connection.hub.run(green.get, timeout=5)


# -- reading ------------------------------------------------------------------------------------


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
    assert client.fetch("t", partition=1, wait=10).error is errors.UnknownTopicOrPartitionError
    assert client.fetch("u", wait=10).error is errors.UnknownTopicOrPartitionError
    assert time.monotonic() - started < 5


def test_a_partitions_limit_ends_its_batches_but_one_always_comes(client):
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


def test_a_fetch_that_has_no_room_for_the_next_partition_does_not_wait_for_more(client):
    client.create("t", 2)
    content = batch(b"x" * 1000)
    client.call("produce", {("t", number): [content] for number in range(2)})
    wanted = {("t", number): FetchFrom(0, MEGABYTE) for number in range(2)}
    enough = len(content) + 1
    began = time.monotonic()
    answers = client.call("fetch", wanted, max_wait=20.0, min_bytes=enough, max_bytes=enough)
    assert time.monotonic() - began < 10
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
def test_what_cannot_be_read_is_the_error_of_its_partition(client, monkeypatch, failure, error):
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


# -- waiting ------------------------------------------------------------------------------------


def test_a_fetch_waits_until_something_is_committed(client):
    client.create("t", 2)
    green = spawn_fetch(client, {("t", 0): FetchFrom(0, MEGABYTE), ("t", 1): FetchFrom(0, MEGABYTE)})
    assert not green.ready()
    client.produce("t", b"a", partition=1)
    answers = outcome(client, green)
    assert list(answers) == [("t", 1)]
    assert decode_batch(answers["t", 1].batches[0]).values == [b"a"]


def test_a_fetch_that_finds_nothing_answers_all_its_partitions_when_the_time_is_over(client):
    client.create("t", 2)
    wanted = {("t", number): FetchFrom(0, MEGABYTE) for number in range(2)}
    started = time.monotonic()
    answers = client.call("fetch", wanted, max_wait=0.1, min_bytes=1, max_bytes=MEGABYTE)
    assert 0.1 <= time.monotonic() - started < 5
    assert answers == {key: Fetched(None, 0, 0, (), 0) for key in wanted}


def test_min_bytes_0_does_not_wait(client):
    client.create("t")
    started = time.monotonic()
    wanted = {("t", 0): FetchFrom(0, MEGABYTE)}
    assert client.call("fetch", wanted, max_wait=10, min_bytes=0, max_bytes=MEGABYTE)
    assert time.monotonic() - started < 5


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

    def pause():
        """It has read the empty partition and a part of the other one."""
        client.core.produce({("t", 1): [batch(bytes(1000))]})

    monkeypatch.setattr("dafka.hub.turns._rest", pause)
    began = time.monotonic()
    answers = client.call("fetch", wanted, max_wait=20.0, min_bytes=least, max_bytes=50 * MEGABYTE)
    assert time.monotonic() - began < 15
    assert [len(answers["t", number].batches) for number in range(2)] == [2, 1]


def test_what_was_gathered_is_answered_when_the_time_is_over(client):
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


def test_what_a_waiting_fetch_has_read_stays_aborted_when_the_records_are_deleted(client, monkeypatch):
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


# -- native producers ---------------------------------------------------------------------------


def test_messages_of_a_native_producer_are_served_as_batches(broker, client):
    before = time.time() * 1000
    with Producer("n", tower=broker.tower) as producer:
        for number in range(2500):
            producer.send(b"%d" % number)
        producer.flush(10)
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
        producer.flush(10)
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
            producer.flush(10)
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
                producer.flush(10)
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
        producer.flush(10)
        until(lambda: len(client.partitions("n")) == 2)
        green = spawn_fetch(client, {("n", 1): FetchFrom(1, MEGABYTE)})
        producer.send(b"second")
        answers = outcome(client, green)
    assert decode_batch(answers["n", 1].batches[0]).values == [b"second"]


# -- damaged values that are passed over -----------------------------------------------------------


@pytest.fixture(params=[LARGE, LARGE[:1000]], ids=["files", "rows"])
def harmed(tmp_path, request):
    """A broker whose topic t has lost the last two of its three values, with the offsets 1 to 4."""
    value = request.param
    with Broker(tmp_path) as broker:
        client = Client(broker)
        client.create("t")
        client.produce("t", b"a" + value)
        client.produce("t", b"b", b"c" + value)
        client.produce("t", b"d", b"e" + value)
    harm_last(tmp_path, 2)
    with Broker(tmp_path, on_damage="skip") as broker:
        yield Client(broker)


def test_an_empty_batch_stands_for_what_is_passed_over_at_the_end(harmed):
    assert [read_header(content).next_offset for content in harmed.fetch("t").batches] == [1]
    for offset in (1, 2, 4):  # also from the midst of a value
        fetched = harmed.fetch("t", offset)
        (content,) = fetched.batches
        header = check_batch(content)
        assert (header.base_offset, header.next_offset, header.count) == (offset, 5, 0)
        assert (fetched.error, fetched.high_watermark) == (None, 5)
    assert harmed.fetch("t", 5) == Fetched(None, 5, 0, (), 5)


def test_behind_what_is_passed_over_a_fetch_waits_for_more(harmed):
    green = spawn_fetch(harmed, {("t", 0): FetchFrom(5, MEGABYTE)})
    harmed.produce("t", b"f")
    (content,) = outcome(harmed, green)["t", 0].batches
    assert (read_header(content).base_offset, decode_batch(content).values) == (5, [b"f"])
    assert harmed.fetch("t", 2).batches == [content]


def test_a_fetch_that_wants_much_reads_up_to_the_end_and_on(harmed):
    wanted = {("t", 0): FetchFrom(0, MEGABYTE)}
    green = spawn_fetch(harmed, wanted, min_bytes=MEGABYTE // 2)
    harmed.produce("t", b"f" + bytes(MEGABYTE // 2))
    batches = outcome(harmed, green)["t", 0].batches
    values = [value[:1] for content in batches for value in decode_batch(content).values]
    assert values == [b"a", b"f"]


def test_readers_of_committed_records_pass_over_it_while_a_transaction_is_open(harmed):
    producer = transactional.Producer(harmed)
    assert producer.send(b"f").base_offset == 5
    (content,) = transactional.fetch(harmed, 1).batches
    assert (read_header(content).next_offset, read_header(content).count) == (5, 0)
    assert transactional.fetch(harmed, 5).batches == ()
    producer.commit()
    assert transactional.visible(transactional.fetch(harmed, 5)) == [b"f"]


def test_native_messages_that_are_passed_over_leave_an_empty_batch_too(tmp_path):
    with TestBroker(tmp_path) as broker:
        client = Client(broker)
        with Producer("n", tower=broker.tower) as producer:
            producer.send(LARGE)
            producer.flush(10)
            until(lambda: len(client.partitions("n")) == 2)
    harm_last(tmp_path)
    with Broker(tmp_path, on_damage="skip") as broker:
        (content,) = Client(broker).fetch("n", partition=1).batches
        header = check_batch(content)
        assert (header.base_offset, header.next_offset, header.count) == (0, 1, 0)


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
        with gevent.Timeout(10):
            while free.watchers or not watched.watchers:
                gevent.sleep(0)
        fetch.kill()
        return sum(len(partition.watchers) for partition in partitions)

    assert client.connection.hub.run(watched_after_the_end) == 0
