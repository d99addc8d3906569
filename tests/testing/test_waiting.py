"""Waiting in tests: for conditions, and for records and groups of a TestBroker."""

from __future__ import annotations

import threading

import pytest

from dafka.testing import NotInTimeError, wait_until


def test_waiting_for_records_returns_them_when_they_are_there(dafka_broker, kafka_producer):
    later = threading.Timer(0.05, lambda: [kafka_producer.send("t", b"%d" % n) for n in range(3)])
    later.start()
    assert [r.value for r in dafka_broker.wait_for_records("t", 3)] == [b"0", b"1", b"2"]
    later.join()


def test_waiting_in_vain_fails_the_test_and_says_what_was_there(dafka_broker):
    dafka_broker.preload("t", [b"a"])
    with pytest.raises(AssertionError, match="3 records in topic 't', there are 1"):
        dafka_broker.wait_for_records("t", 3, timeout=0.02)
    with pytest.raises(NotInTimeError, match="group 'g', there is nothing committed yet"):
        dafka_broker.wait_for_lag("g", timeout=0.02)
    with pytest.raises(NotInTimeError, match=r"not within 0\.01 s: the moon"):
        dafka_broker.wait_until(lambda: False, 0.01, "the moon")


def test_waiting_for_a_group_to_catch_up(dafka_broker, kafka_consumer_factory):
    dafka_broker.preload("t", [b"x"] * 100)

    def consume() -> None:
        consumer = kafka_consumer_factory("t", group_id="g", consumer_timeout_ms=100)
        for _ in consumer:
            pass
        consumer.commit()

    thread = threading.Thread(target=consume)
    thread.start()
    dafka_broker.wait_for_lag("g")
    assert dafka_broker.committed("g") == {("t", 0): 100}
    thread.join()


def test_what_the_condition_raises_comes_through():
    with pytest.raises(KeyError):
        wait_until(lambda: {}["x"], 5)
    assert wait_until(lambda: "found", 0) == "found"
