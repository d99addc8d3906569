"""Transactions that exceed their timeout are aborted."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import gevent
import kafka.errors as errors
import pytest
from broker.clients import Client
from broker.transactions.transactional import Producer, committed, fetch, state_of
from timing import until

from dafka import Broker
from dafka.broker.transactions.timeouts import FAILED_PAUSE, Timeouts
from dafka.broker.transactions.transaction import State, Transaction
from dafka.hub.hub import get_hub
from dafka.log import LogWriteError
from dafka.testing import TestBroker


@pytest.fixture
def producer(client: Client) -> Producer:
    client.create("t", 3)
    return Producer(client)


def test_a_transaction_that_lasts_too_long_is_aborted_and_its_producer_fenced(broker, client):
    client.create("t")
    producer = Producer(client, timeout=600)
    producer.send(b"a")
    broker.clock.advance(minutes=5)
    assert fetch(client).last_stable_offset == 0
    broker.clock.advance(minutes=5)
    assert fetch(client).last_stable_offset == 2
    assert committed(client) == []
    assert producer.write(b"b").error is errors.InvalidProducerEpochError
    assert producer.end(True) is errors.ProducerFencedError
    producer.init()
    producer.send(b"c")
    producer.commit()
    assert committed(client) == [b"c"]


def test_many_short_transactions_leave_one_deadline_and_the_last_one_is_respected(broker, client):
    client.create("t")
    producer = Producer(client, timeout=600)
    timeouts = client.core._transactions._timeouts
    for _ in range(20):
        producer.send(b"a")
        producer.commit()
    assert len(timeouts._deadlines._heap) <= 1
    broker.clock.advance(minutes=5)
    producer.send(b"b")
    broker.clock.advance(minutes=5)  # the deadline of the first one
    assert producer.write(b"c").error is None
    broker.clock.advance(minutes=5)
    assert producer.write(b"?").error is errors.InvalidProducerEpochError


def test_a_transaction_whose_only_topic_was_deleted_times_out_after_a_restart(tmp_path):
    with Broker(tmp_path) as broker:
        client = Client(broker)
        client.create("t")
        producer = Producer(client, timeout=600)
        producer.send(b"a")
        client.call("delete_topics", ["t"])
    with TestBroker(tmp_path) as broker:
        producer.client = client = Client(broker)
        assert state_of(client) == "Ongoing"
        broker.clock.advance(minutes=10)
        assert state_of(client) == "CompleteAbort"
        assert producer.end(True) is errors.ProducerFencedError
        assert len(client.core.log.table("transactions.open")) == 0


@pytest.mark.parametrize("again", [False, True], ids=["EndTxn", "InitProducerId"])
def test_a_transaction_whose_deadline_passes_during_a_failing_end_is_aborted(
    broker, client, monkeypatch, again
):
    client.create("t")
    producer = Producer(client, timeout=600)
    producer.send(b"a")
    storage = client.core.log._storage
    begun, passed = threading.Event(), threading.Event()

    def fail_late(*rows: object) -> None:
        begun.set()
        while not passed.is_set():
            gevent.sleep(0.01)
        raise LogWriteError(client.core.log.path, "no space")

    def end() -> object:
        if again:
            return client.call("init_producer_id", "x", 600).error
        return producer.end(True)

    with monkeypatch.context() as patch, ThreadPoolExecutor(1) as pool:
        patch.setattr(storage, "commit", fail_late)
        ended = pool.submit(end)
        try:
            assert begun.wait(100)
            broker.clock.advance(minutes=10)
        finally:
            passed.set()
        assert ended.result() is errors.KafkaStorageError
    until(lambda: state_of(client) == "CompleteAbort")
    assert fetch(client).last_stable_offset == 2
    assert committed(client) == []


def test_a_transaction_that_cannot_be_aborted_is_retried_after_a_pause():
    hub = get_hub()
    now = 100.0
    tried: list[str] = []

    def abort(transaction: Transaction) -> bool:
        tried.append(transaction.transactional_id)
        transaction.busy = False
        return False

    def begin(name: str) -> None:
        transaction = Transaction(name)
        transaction.state, transaction.started = State.ONGOING, now - 1.0
        hub.run(timeouts.watch, transaction)
        until(lambda: name in tried)

    timeouts = hub.run(Timeouts, hub, abort, lambda: now)
    try:
        begin("a")
        now += FAILED_PAUSE - 1.0
        begin("b")
        assert tried == ["a", "b"]
        now += 1.0
        begin("c")
        until(lambda: sorted(tried) == ["a", "a", "b", "c"])
    finally:
        hub.run(timeouts.close)
