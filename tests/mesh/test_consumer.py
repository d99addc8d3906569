"""Taking records from a Consumer: next(), loops that are left and poll() go on where the one before ended."""

from __future__ import annotations

from contextlib import ExitStack, suppress
from itertools import count

import pytest
from timing import SECONDS, until

from dafka import Consumer, Producer, Store, Tower
from dafka.mesh import consumer as consumer_module
from dafka.mesh import inbox, limits, pieces
from dafka.mesh import record as record_module
from tests.compat.interrupting import InterruptedCall

VALUES = [b"%d" % number for number in range(40)]


@pytest.fixture(params=[False, True], ids=["raw", "batch"])
def consumer(request, tmp_path):
    """A consumer that everything has come to."""
    with Tower() as tower, Store(tmp_path / "db", tower=tower):
        with Producer("hello", tower=tower, batch=request.param) as producer:
            for value in VALUES:
                producer.send(value)
        with Consumer(["hello"], tower=tower, offset_reset="earliest") as consumer:
            until(lambda: consumer.metrics()["records_in"] and consumer.metrics()["lag"] == 0)
            yield consumer


def left_at(consumer, count):
    """The values of a loop that ends after some records."""
    values = []
    for record in consumer:
        values.append(record.value)
        if len(values) == count:
            break
    return values


def test_a_loop_begins_behind_what_next_has_taken(consumer):
    assert next(consumer).value == VALUES[0]
    assert left_at(consumer, 39) == VALUES[1:]


def test_a_loop_goes_on_where_the_one_before_was_left(consumer):
    assert left_at(consumer, 7) == VALUES[:7]
    assert left_at(consumer, 8) == VALUES[7:15]
    assert left_at(consumer, 25) == VALUES[15:]


def test_polls_loops_and_next_follow_each_other(consumer):
    assert [record.value for record in consumer.poll(max_records=3)] == VALUES[:3]
    assert left_at(consumer, 5) == VALUES[3:8]
    assert next(iter(consumer)).value == VALUES[8]
    assert next(consumer).value == VALUES[9]
    assert left_at(consumer, 5) == VALUES[10:15]
    assert [record.value for record in consumer.poll()] == VALUES[15:]


def test_a_poll_in_a_loop_leaves_what_it_did_not_take_to_the_loop():
    with (
        Tower() as tower,
        Producer("hello", tower=tower, min_stores=0) as producer,
        Consumer(["hello"], tower=tower, offset_reset="earliest") as consumer,
    ):
        for number, value in enumerate(VALUES, 1):
            producer.send(value)
            if not number % 4:  # the end of a run
                producer.flush(SECONDS)
                until(lambda number=number: consumer.metrics()["records_in"] == number)
        values = []
        for record in consumer:
            values.append(record.value)
            values += [one.value for one in consumer.poll(max_records=4)]
            if len(values) == len(VALUES):
                break
    assert values == VALUES


def loops(consumer, seen, total):
    while len(seen) < total:
        for record in consumer:
            seen.append(record.value)
            if len(seen) == total:
                break


def takes_the_next(consumer, seen, total):
    while len(seen) < total:
        record = next(consumer)
        seen.append(record.value)


def polls(consumer, seen, total):
    while len(seen) < total:
        records = consumer.poll(SECONDS, max_records=4)
        seen += [record.value for record in records]


@pytest.mark.parametrize("read", [loops, takes_the_next, polls])
@pytest.mark.parametrize("batch", [False, True], ids=["raw", "batch"])
def test_whichever_call_ctrl_c_ends_each_record_is_handed_out_once_and_none_is_committed_before(
    tmp_path, read, batch
):
    """And read on, as in a notebook; or committed at the program's end, and read by the next one."""
    handing_out = tuple(method.__code__ for method in (Consumer.__iter__, Consumer.__next__, Consumer.poll))
    modules = (consumer_module, inbox, pieces, record_module)
    with (
        Tower() as tower,
        Producer("hello", tower=tower, min_stores=0, batch=batch, linger=60 if batch else None) as producer,
        Consumer(["hello"], tower=tower, offset_reset="earliest", positions=tmp_path / "p") as consumer,
    ):
        sent: list[bytes] = []
        seen: list[bytes] = []
        each = 3 if batch else 1  # records of a message
        for number in count(1):
            for _ in range(3):
                for _ in range(3):
                    sent.append(b"%d" % len(sent))
                    producer.send(sent[-1])
                producer.flush(SECONDS)
                until(lambda: consumer.metrics()["records_in"] == len(sent) // each)
            interruption = InterruptedCall(number, *modules, handing_out=handing_out)
            with suppress(KeyboardInterrupt), interruption:
                read(consumer, seen, len(sent))
            consumer.commit()
            assert consumer._file.positions.get(producer.address, 0) == len(seen) // each
            read(consumer, seen, len(sent))
            assert seen == sent
            if not interruption.interrupted:
                break
        assert number > 10


def test_a_poll_for_what_is_no_number_of_records_is_refused(consumer):
    for wrong in (None, 0, -1, "5", float("nan"), float("inf"), 1.5):
        with pytest.raises(ValueError, match="max_records is a number of records"):
            consumer.poll(max_records=wrong)


def test_a_loop_over_a_closed_consumer_is_over(consumer):
    assert left_at(consumer, 1) == VALUES[:1]
    consumer.close()
    assert left_at(consumer, 1) == []


@pytest.mark.parametrize("batch", [False, True], ids=["raw", "batch"])
def test_a_consumer_of_the_latest_only_is_handed_the_newest_of_each_producer(tmp_path, batch):
    with Tower() as tower, Store(tmp_path / "db", tower=tower), ExitStack() as nodes:
        producers = [nodes.enter_context(Producer("pose", tower=tower, batch=batch)) for _ in range(2)]
        positions = tmp_path / "positions"
        options = {"tower": tower, "offset_reset": "earliest", "latest_only": True}
        with Consumer(["pose"], positions=positions, **options) as consumer:
            for round_ in range(2):
                for number in range(500):
                    for name, producer in enumerate(producers):
                        producer.send(b"%d %d" % (name, 500 * round_ + number))
                for producer in producers:
                    producer.flush(SECONDS)
                values: set[bytes] = set()
                newest = {b"%d %d" % (name, 500 * round_ + 499) for name in range(2)}
                while not newest <= values:
                    records = consumer.poll(SECONDS)
                    assert records and len({one.partition for one in records}) == len(records)
                    values.update(one.value for one in records)
                assert consumer.poll() == [], "nothing older comes behind the newest"
            consumer.commit()
        with Consumer(["pose"], positions=positions, **options) as consumer:
            producers[1].send(b"later")
            assert next(consumer).value == b"later"


def test_a_slow_consumer_of_the_latest_only_holds_nothing_up(tmp_path, monkeypatch):
    monkeypatch.setattr(limits, "ROOM_RECORDS", 10)
    with Tower() as tower, Store(tmp_path / "db", tower=tower), Producer("pose", tower=tower) as producer:
        consumer = Consumer(["pose"], tower=tower, offset_reset="earliest", latest_only=True)
        for value in range(1000):
            producer.send(b"%d" % value)
        producer.flush(SECONDS)
        until(lambda: consumer.metrics()["records_in"] == 1000)
        metrics = consumer.metrics()
        assert (metrics["inbox_records"], metrics["records_replaced"]) == (1, 999)
        assert [one.value for one in consumer.poll(SECONDS)] == [b"999"]
        consumer.close()


@pytest.mark.parametrize("room", [1, 2, 4, 9])
def test_a_consumer_of_little_room_gets_everything(tmp_path, monkeypatch, room):
    monkeypatch.setattr(limits, "ROOM_RECORDS", room)
    with (
        Tower() as tower,
        Store(tmp_path / "db", tower=tower),
        Producer("hello", tower=tower) as producer,
        Consumer(["hello"], tower=tower, offset_reset="earliest") as consumer,
    ):
        for value in VALUES:
            producer.send(value)
        assert left_at(consumer, len(VALUES)) == VALUES


def test_the_room_of_a_lone_record_is_given_back_without_waking_the_hub():
    with (
        Tower() as tower,
        Producer("hello", tower=tower, min_stores=0) as producer,
        Consumer(["hello"], tower=tower, offset_reset="earliest") as consumer,
    ):
        node, posted = consumer._node, []
        node._hub = type(
            "Hub", (), {"post": lambda self, *call: posted.append(call), "check": node._hub.check}
        )()
        producer.send(b"lone")
        assert next(consumer).value == b"lone"
        assert not consumer.poll(0.0) and not posted
        until(lambda: node._records == 0)


def test_room_that_was_half_counted_is_given_back_whole():
    """The user's thread counts records, and then their octets; the hub may tick between the two."""
    with (
        Tower() as tower,
        Producer("hello", tower=tower, min_stores=0) as producer,
        Consumer(["hello"], tower=tower, offset_reset="earliest") as consumer,
    ):
        node = consumer._node
        producer.send(b"lone")
        until(lambda: node._inbox)
        node._inbox.taken_records += 1
        until(lambda: node._records == 0)
        assert node._bytes
        node._inbox.taken_octets += len(b"lone")
        until(lambda: node._bytes == 0)
