"""Transactions that hang, through the API. This broker lets none begin: here its coordinator is not asked."""

from __future__ import annotations

from uuid import uuid4

from compat.kafka import KafkaProducer
from dafka.console.api import transactions


def test_hanging_transactions_are_shown_and_ended(client, shared, monkeypatch):
    topic = f"t-{uuid4()}"
    shared.create_topic(topic, 2)
    shared.preload(topic, [b"before"], partition=1)
    producer = KafkaProducer(bootstrap_servers=shared.bootstrap_servers, transactional_id=topic)
    producer.init_transactions()
    producer.begin_transaction()
    producer.send(topic, b"lost", partition=1).get(100)
    shared.preload(topic, [b"behind"], partition=1)
    monkeypatch.setattr(transactions, "_ids", lambda desk, producers: {})
    (row,) = client.get(f"/api/topics/{topic}/transactions")["transactions"]
    assert (row["partition"], row["from"], row["last_stable"], row["end"], row["id"]) == (1, 1, 1, 3, None)
    body = {"partition": 1, "producer_id": row["producer_id"], "epoch": row["epoch"]}
    path = f"/api/topics/{topic}/abort"
    assert client.ask("POST", path, {**body, "partition": 0}).status == 404
    assert client.ask("POST", path, {**body, "partition": 7}).status == 400
    assert client.ask("POST", path, body).status == 200
    assert client.get(f"/api/topics/{topic}/transactions")["transactions"] == []
    found = client.get(f"/api/topics/{topic}")["partitions"][1]
    assert found["last_stable"] == found["end"] == 4
    producer.close()
