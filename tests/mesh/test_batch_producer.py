"""Producer(batch=True): records gather in batches, and every promise of a producer holds for each record."""

from __future__ import annotations

import os
import sys
import threading
import time

import pytest
from timing import until

from dafka import Consumer, Producer, Store, Tower
from dafka.hub.hub import ForkedError, get_hub
from dafka.mesh import limits
from dafka.mesh.batch_producer import Batch
from dafka.mesh.consumer_node import ConsumerNode
from dafka.mesh.producer import (
    AddressInUseError,
    MessageKindError,
    ProducerClosedError,
    RecordTooLargeError,
    SendTimeoutError,
    UnacknowledgedError,
)
from dafka.protocol.batch import HEADERS_LIMIT, read_header
from dafka.protocol.batch_writer import encode_batch

ADDRESS = "0123456789ABCDEF0123456789ABCDEF"


@pytest.fixture
def tower():
    with Tower() as tower:
        yield tower


@pytest.fixture
def stored(tower, tmp_path):
    """A tower with a store."""
    with Store(tmp_path / "db", tower=tower):
        yield tower


def test_a_record_has_its_key_headers_timestamp_and_offset(stored):
    with (
        Consumer(["hello"], tower=stored, offset_reset="earliest") as consumer,
        Producer("hello", tower=stored, batch=True) as producer,
    ):
        before = int(time.time() * 1000)
        offsets = [
            producer.send(b"one", key=b"k", headers=[("a", b"1"), ("b", None)], timestamp=123_000),
            producer.send(None, key=b""),
            producer.send(b"three"),
        ]
        producer.flush(100)
        one, two, three = (next(consumer) for _ in range(3))
    assert offsets == [0, 1, 2] == [one.offset, two.offset, three.offset]
    assert (one.key, one.value, list(one.headers), one.timestamp) == (
        b"k",
        b"one",
        [("a", b"1"), ("b", None)],
        123_000,
    )
    assert (two.key, two.value, list(two.headers)) == (b"", None, [])
    assert before <= two.timestamp <= three.timestamp <= int(time.time() * 1000)
    assert one.partition == producer.address and one.topic == "hello" and one.sequence == 0


def test_offsets_go_on_from_batch_to_batch(stored):
    with (
        Consumer(["hello"], tower=stored, offset_reset="earliest") as consumer,
        Producer("hello", tower=stored, batch=True, linger=60) as producer,
    ):
        count = 2 * limits.BATCH_RECORDS + 10
        assert [producer.send(b"%d" % number) for number in range(count)] == list(range(count))
        producer.flush(100)
        records = [next(consumer) for _ in range(count)]
    assert [(record.offset, int(record.value)) for record in records] == [(n, n) for n in range(count)]
    assert {record.sequence for record in records} == {0, 1, 2}


def test_a_thread_that_fills_batches_gives_way_to_the_hub_that_has_not_published_the_last(tower, monkeypatch):
    monkeypatch.setattr(limits, "BATCH_RECORDS", 4)
    hub = get_hub()
    given: list[int] = []
    go_on = threading.Event()
    with Producer("ways", tower=tower, batch=True, linger=60.0, min_stores=0) as producer:
        assert producer._batches is not None
        waiting = producer._batches.pending
        monkeypatch.setattr(hub, "give_way", lambda: given.append(len(waiting)))
        hub.post(go_on.wait, 60)
        try:
            for _ in range(13):
                producer.send(b"one of many")
        finally:
            go_on.set()
    assert given == [2, 3]


def test_a_lone_record_leaves_when_it_has_lingered(stored):
    with (
        Consumer(["hello"], tower=stored, offset_reset="earliest") as consumer,
        Producer("hello", tower=stored, batch=True, linger=0) as producer,
    ):
        producer.send(b"now")
        assert consumer.poll(timeout=200)[0].value == b"now"


def test_records_that_linger_share_a_batch(stored):
    with (
        Consumer(["hello"], tower=stored, offset_reset="earliest") as consumer,
        Producer("hello", tower=stored, batch=True, linger=60) as producer,
    ):
        for number in range(3):
            producer.send(b"%d" % number)
        assert consumer.poll(timeout=0.1) == []
        assert producer.unacknowledged == 3
        producer.flush(100)
        assert [record.sequence for record in consumer.poll(timeout=200)] == [0, 0, 0]
        assert producer.unacknowledged == 0


def test_closing_sends_what_lingers(stored):
    with Consumer(["hello"], tower=stored, offset_reset="earliest") as consumer:
        with Producer("hello", tower=stored, batch=True, linger=60) as producer:
            producer.send(b"last")
        assert consumer.poll(timeout=200)[0].value == b"last"
        with pytest.raises(ProducerClosedError):
            producer.send(b"later")


@pytest.mark.parametrize("compression", ["gzip", "snappy", "lz4", "zstd"])
def test_batches_are_compressed(stored, compression):
    with (
        Consumer(["hello"], tower=stored, offset_reset="earliest") as consumer,
        Producer("hello", tower=stored, batch=True, compression=compression, linger=60) as producer,
    ):
        for _ in range(1000):
            producer.send(b"x" * 100)
        producer.flush(100)
        assert producer.metrics()["endpoint_bytes_out"] < 20_000
        assert [next(consumer).value for _ in range(1000)] == [b"x" * 100] * 1000


@pytest.mark.parametrize(
    ("codec", "library"), [("snappy", "python-snappy"), ("lz4", "lz4"), ("zstd", "zstandard")]
)
def test_a_compression_that_is_not_there_is_refused_with_its_library(tower, codec, library, monkeypatch):
    monkeypatch.setattr("dafka.mesh.producer.is_available", lambda name: False)
    with pytest.raises(ValueError, match=f"{codec}' is not installed: pip install {library}$"):
        Producer("hello", tower=tower, batch=True, compression=codec)


@pytest.mark.parametrize(
    ("field", "wrong", "error"),
    [
        ("value", "text", TypeError),
        ("key", 1, TypeError),
        ("headers", [("a", "text")], TypeError),
        ("headers", [["a", b"1"]], TypeError),
        ("headers", [(b"a", b"1")], TypeError),
        ("timestamp", 1.5, TypeError),
        ("timestamp", -1, ValueError),
        ("timestamp", 2**63, ValueError),
    ],
)
def test_records_that_cannot_be_encoded_are_refused_by_send(stored, field, wrong, error):
    with (
        Consumer(["hello"], tower=stored, offset_reset="earliest") as consumer,
        Producer("hello", tower=stored, batch=True) as producer,
    ):
        with pytest.raises(error, match=field.rstrip("s")):
            producer.send(**{"value": b"", field: wrong})
        assert producer.send(b"good") == 0
        assert next(consumer).value == b"good"


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"compression": "gzip"}, "batch=True"),
        ({"linger": 1}, "batch=True"),
        ({"batch": True, "compression": "zip"}, "gzip, snappy, lz4, zstd"),
        ({"batch": True, "linger": -1}, "linger"),
    ],
)
def test_options_that_cannot_be_are_named(tower, options, says):
    with pytest.raises(ValueError, match=says):
        Producer("hello", tower=tower, **options)


def test_a_record_larger_than_nodes_accept_is_refused(tower, monkeypatch):
    monkeypatch.setattr(limits, "RECORD_OCTETS", 1000)
    with (
        Producer("hello", tower=tower, batch=True, min_stores=0) as producer,
        pytest.raises(RecordTooLargeError, match="at most 1000 octets"),
    ):
        producer.send(b"x" * 500, key=b"x" * 500)


def test_a_record_with_more_headers_than_nodes_read_is_refused(tower):
    with (
        Producer("hello", tower=tower, batch=True, min_stores=0) as producer,
        pytest.raises(RecordTooLargeError, match=f"at most {HEADERS_LIMIT} headers"),
    ):
        producer.send(b"", headers=[("", None)] * (HEADERS_LIMIT + 1))


def test_a_producer_of_raw_records_sends_nothing_else(tower):
    with Producer("hello", tower=tower, min_stores=0) as producer:
        for field in ({"key": b"k"}, {"headers": [("a", b"")]}, {"timestamp": 0}):
            with pytest.raises(MessageKindError, match="batch=True"):
                producer.send(b"value", **field)
        with pytest.raises(MessageKindError, match="record batches"):
            producer.send(encode_batch([(0, None, b"value", ())]))
        assert producer.send(b"value") == 0


def test_an_address_has_one_producer_at_a_time(tower):
    with (
        Producer("hello", tower=tower, address=ADDRESS, min_stores=0),
        pytest.raises(AddressInUseError, match=ADDRESS),
    ):
        Producer("hello", tower=tower, address=ADDRESS, batch=True)
    Producer("hello", tower=tower, address=ADDRESS, min_stores=0).close()


def test_unacknowledged_records_are_told_by_offsets(tower):
    producer = Producer("hello", tower=tower, batch=True)
    for _ in range(5):
        producer.send(b"x")
    with pytest.raises(UnacknowledgedError, match=r"5 records of topic 'hello'.* 0 to 4") as caught:
        producer.flush(0.1)
    assert (caught.value.first, caught.value.last) == (0, 4)
    producer.send(b"x")
    with pytest.raises(UnacknowledgedError) as caught:
        producer.close(0.1)
    assert (caught.value.first, caught.value.last) == (0, 5)
    assert producer.unacknowledged == 6


def test_a_producer_that_no_store_hears_stops_taking_records_and_goes_on_when_one_comes(
    tower, tmp_path, monkeypatch
):
    monkeypatch.setattr(limits, "RETAINED_BYTES", 100_000)
    monkeypatch.setattr(limits, "PENDING_BYTES", 50_000)
    monkeypatch.setattr(limits, "BATCH_BYTES", 10_000)
    taken = 0
    with Producer("hello", tower=tower, batch=True) as producer:
        with pytest.raises(SendTimeoutError):
            for taken in range(10_000):  # noqa: B007 - looked at below
                producer.send(b"x" * 1000, timeout=0.2)
        metrics = producer.metrics()
        assert metrics["retained_bytes"] <= 100_000 + 50_000 + 20_000
        assert metrics["pending_bytes"] <= 50_000 + 20_000
        assert metrics["unacknowledged"] == taken
        assert metrics["pending_records"] + metrics["retained_records"] == taken
        with Store(tmp_path / "db", tower=tower):
            for _ in range(500):
                producer.send(b"x" * 1000, timeout=200)
            producer.flush(100)
        assert producer.metrics()["retained_records"] == 0


def test_a_producer_for_consumers_only_keeps_the_newest_batches(tower, monkeypatch):
    monkeypatch.setattr(limits, "RETAINED_BYTES", 500_000)
    with Producer("hello", tower=tower, batch=True, min_stores=0) as producer:
        for _ in range(30_000):
            producer.send(b"x" * 100)
        producer.flush(100)
        metrics = producer.metrics()
        assert metrics["records_out"] == 30_000
        assert metrics["retained_bytes"] <= 500_000 + limits.RUN_BYTES
        assert metrics["unacknowledged"] == 0


def test_threads_share_a_producer_and_each_keeps_its_order(stored):
    with (
        Consumer(["hello"], tower=stored, offset_reset="earliest") as consumer,
        Producer("hello", tower=stored, batch=True) as producer,
    ):
        offsets: dict[bytes, int] = {}

        def send(name):
            for number in range(3000):
                value = b"%s %d" % (name, number)
                offsets[value] = producer.send(value)

        threads = [threading.Thread(target=send, args=(name,)) for name in (b"a", b"b", b"c")]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(100)
        producer.flush(100)
        records = [next(consumer) for _ in range(9000)]
    assert [record.offset for record in records] == list(range(9000))
    assert {record.value: record.offset for record in records} == offsets
    for name in (b"a", b"b", b"c"):
        numbers = [int(record.value.split()[1]) for record in records if record.value.startswith(name)]
        assert numbers == list(range(3000))


def test_a_thread_interrupted_while_it_encodes_loses_nothing(stored, monkeypatch):
    encode, interrupted = Batch.encode, []

    def once(self, compression):
        if threading.current_thread() is threading.main_thread() and not interrupted:
            interrupted.append(self)
            raise KeyboardInterrupt
        encode(self, compression)

    monkeypatch.setattr(Batch, "encode", once)
    with (
        Consumer(["hello"], tower=stored, offset_reset="earliest") as consumer,
        Producer("hello", tower=stored, batch=True, linger=60) as producer,  # or the hub encodes it
    ):
        for number in range(2):
            producer.send(b"%d" % number)
        with pytest.raises(KeyboardInterrupt):
            producer.flush(100)
        producer.send(b"2")
        producer.flush(100)
        assert [int(next(consumer).value) for _ in range(3)] == [0, 1, 2]
    assert interrupted


def test_records_behind_one_that_was_interrupted_leave_when_their_batch_has_lingered(stored):
    before, interrupted = sys.gettrace(), []

    def interrupt(frame, event, _):
        if frame.f_code.co_name != "_append_otherwise":
            return None
        if event == "line" and not interrupted and producer._node._open.records:
            interrupted.append(frame.f_lineno)  # the record is in the batch, and its call not over
            raise KeyboardInterrupt
        return interrupt

    with (
        Consumer(["hello"], tower=stored, offset_reset="earliest") as consumer,
        Producer("hello", tower=stored, batch=True) as producer,
    ):
        sys.settrace(interrupt)
        try:
            with pytest.raises(KeyboardInterrupt):
                producer.send(b"0")
        finally:
            sys.settrace(before)
        assert interrupted
        producer.send(b"1")
        assert [record.value for record in consumer.poll(100, max_records=2)] == [b"0", b"1"]


def test_a_child_after_fork_is_told(tower):
    with Producer("hello", tower=tower, batch=True, min_stores=0, linger=60) as producer:
        producer.send(b"the parent's")
        pid = os.fork()
        if not pid:
            try:
                producer.send(b"the child's")
            except ForkedError:
                os._exit(7)
            os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
        assert producer.send(b"the parent's again") == 1


def test_a_message_that_is_not_a_batch_among_batches_is_handed_out_as_it_is(tower, monkeypatch):
    """Not from a producer of ours; all of it is there all the same."""
    with (
        Consumer(["hello"], tower=tower, offset_reset="earliest") as consumer,
        Producer("hello", tower=tower, min_stores=0) as producer,
    ):
        contents = [
            encode_batch([(0, b"k", b"in a batch", ())]),
            b"raw",
            encode_batch([(0, None, b"again", ())]),
        ]
        producer._node.pending.extend(contents)
        producer._node.sent_bytes += sum(map(len, contents))
        producer._node.signal()
        assert [next(consumer).value for _ in range(3)] == [b"in a batch", b"raw", b"again"]


def test_a_message_is_a_batch_as_kafka_has_it(stored, monkeypatch):
    seen = []
    on_run = ConsumerNode.on_run
    monkeypatch.setattr(ConsumerNode, "on_run", lambda self, run: seen.append(run) or on_run(self, run))
    with (
        Consumer(["hello"], tower=stored, offset_reset="earliest"),
        Producer("hello", tower=stored, batch=True, linger=60.0) as producer,
    ):
        for _ in range(limits.BATCH_RECORDS + 3):
            producer.send(b"x")
        producer.flush(100)
        until(lambda: {run.first + len(run.contents) for run in seen} >= {2})
    headers = {run.first + index: read_header(c) for run in seen for index, c in enumerate(run.contents)}
    assert headers[0].base_offset == 0 and headers[0].count == limits.BATCH_RECORDS
    assert headers[1].base_offset == limits.BATCH_RECORDS and headers[1].count == 3
