"""Transactional ids: which are kept, and which expire."""

from __future__ import annotations

import time

import gevent
import kafka.errors as errors
import pytest
from broker.clients import Client
from broker.transactions.transactional import Producer

from dafka.broker import limits
from dafka.broker.transactions.transaction import Transaction
from dafka.hub.limits import PACE_ITEMS


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


def test_a_transaction_is_busy_in_the_turn_between_its_many_rows_and_what_is_noted_of_them(
    client, producer, monkeypatch
):
    table = client.core._transactions._table
    seen = []
    monkeypatch.setattr(
        "dafka.broker.transactions.table.next_turn", lambda: seen.append(table.own(*producer.who))
    )
    client.create("wide", 200)
    assert producer.add(*[("wide", one) for one in range(PACE_ITEMS - 2)]) is None
    assert seen == []  # few rows, of which two are the transaction's own, are noted at once
    assert producer.add(*[("wide", one) for one in range(200)]) is None
    assert seen == [errors.ConcurrentTransactionsError]
    assert isinstance(table.own(*producer.who), Transaction)
