"""Fetch: damaged values that are passed over."""

from __future__ import annotations

import pytest
from broker.clients import MEGABYTE, Client
from broker.damaged import LARGE, harm_last
from broker.records.fetching import outcome, spawn_fetch
from broker.transactions import transactional
from timing import until

from dafka import Broker, Producer
from dafka.broker.interface.broker import Fetched, FetchFrom
from dafka.protocol.batch import check_batch, read_header
from dafka.protocol.batch_reader import decode_batch
from dafka.testing import TestBroker


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


def test_an_empty_batch_covers_skipped_values_at_the_end(harmed):
    assert [read_header(content).next_offset for content in harmed.fetch("t").batches] == [1]
    for offset in (1, 2, 4):  # also from the midst of a value
        fetched = harmed.fetch("t", offset)
        (content,) = fetched.batches
        header = check_batch(content)
        assert (header.base_offset, header.next_offset, header.count) == (offset, 5, 0)
        assert (fetched.error, fetched.high_watermark) == (None, 5)
    assert harmed.fetch("t", 5) == Fetched(None, 5, 0, (), 5)


def test_a_fetch_waits_for_records_after_skipped_values(harmed):
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


def test_readers_of_committed_records_skip_damage_while_a_transaction_is_open(harmed):
    producer = transactional.Producer(harmed)
    assert producer.send(b"f").base_offset == 5
    (content,) = transactional.fetch(harmed, 1).batches
    assert (read_header(content).next_offset, read_header(content).count) == (5, 0)
    assert transactional.fetch(harmed, 5).batches == ()
    producer.commit()
    assert transactional.visible(transactional.fetch(harmed, 5)) == [b"f"]


def test_skipped_native_messages_leave_an_empty_batch(tmp_path):
    with TestBroker(tmp_path) as broker:
        client = Client(broker)
        with Producer("n", tower=broker.tower) as producer:
            producer.send(LARGE)
            producer.flush(100)
            until(lambda: len(client.partitions("n")) == 2)
    harm_last(tmp_path)
    with Broker(tmp_path, on_damage="skip") as broker:
        (content,) = Client(broker).fetch("n", partition=1).batches
        header = check_batch(content)
        assert (header.base_offset, header.next_offset, header.count) == (0, 1, 0)
