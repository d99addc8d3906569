"""Transactional ids: which are kept, and which expire."""

from __future__ import annotations

import time

import gevent
import kafka.errors as errors
import pytest
from broker.clients import Client
from broker.transactions.transactional import Producer

from dafka.broker import limits


@pytest.fixture
def producer(client: Client) -> Producer:
    client.create("t", 3)
    return Producer(client)


def test_unused_transactional_ids_expire(client, producer, monkeypatch):
    producer.send(b"a")
    Producer(client, "idle")
    coordinator = client.core._transactions
    later = time.time() + limits.TRANSACTIONAL_ID_EXPIRATION + 60
    monkeypatch.setattr(coordinator, "_clock", lambda: later)
    assert client.connection.hub.run(coordinator.forget_old, lambda: gevent.sleep(0)) == 1
    assert [found.transactional_id for found in client.call("list_transactions")] == ["x"]
    assert client.call("end_transaction", "idle", 1, 0, True) is errors.InvalidProducerIdMappingError


def test_beyond_the_limit_the_longest_unused_ids_expire(client, producer, monkeypatch):
    for name in "abc":
        Producer(client, name)
    coordinator = client.core._transactions
    assert not coordinator.crowded
    monkeypatch.setattr("dafka.broker.transactions.coordinator.TRANSACTIONAL_IDS_KEPT", 2)
    monkeypatch.setattr("dafka.broker.transactions.table.TRANSACTIONAL_IDS_KEPT", 2)
    assert coordinator.crowded
    producer.send(b"a")
    client.connection.hub.run(coordinator.forget_old, lambda: gevent.sleep(0))
    assert [found.transactional_id for found in client.call("list_transactions")] == ["c", "x"]
