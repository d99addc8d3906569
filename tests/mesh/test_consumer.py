"""Taking records from a Consumer: next(), loops that are left and poll() go on where the one before ended."""

from __future__ import annotations

import pytest
from timing import until

from dafka import Consumer, Producer, Store, Tower

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


def test_a_loop_over_a_closed_consumer_is_over(consumer):
    assert left_at(consumer, 1) == VALUES[:1]
    consumer.close()
    assert left_at(consumer, 1) == []
