"""Transactions that last too long are aborted, each at its own time."""

from __future__ import annotations

import time

import kafka.errors as errors
import pytest
from broker.clients import Client, until
from broker.transactional import Producer, committed, fetch


@pytest.fixture
def producer(client: Client) -> Producer:
    client.create("t", 3)
    return Producer(client)


def test_a_transaction_that_lasts_too_long_is_aborted_and_its_producer_fenced(client):
    client.create("t")
    producer = Producer(client, timeout=0.2)
    producer.send(b"a")
    until(lambda: fetch(client).last_stable_offset == 2)
    assert committed(client) == []
    assert producer.write(b"b").error is errors.InvalidProducerEpochError
    assert producer.end(True) is errors.ProducerFencedError
    producer.init()
    producer.send(b"c")
    producer.commit()
    assert committed(client) == [b"c"]


def test_many_short_transactions_leave_one_deadline_and_the_last_one_has_its_own(client):
    client.create("t")
    producer = Producer(client, timeout=0.5)
    timeouts = client.core._transactions._timeouts
    for _ in range(20):
        producer.send(b"a")
        producer.commit()
    assert len(timeouts._due) <= 1
    producer.send(b"b")
    started = client.call("describe_transactions", ["x"])["x"].started
    until(lambda: producer.write(b"?").error is errors.InvalidProducerEpochError)
    assert time.time() - started >= 0.5
