"""``dafka kafka transactions``."""

from __future__ import annotations

import pytest
from kafka.errors import KafkaError

from compat.kafka import KafkaProducer


def test_an_open_transaction_is_found_described_and_aborted(terminal, topic):
    terminal.run("topics", "create", topic)
    producer = KafkaProducer(bootstrap_servers=terminal.servers, transactional_id=topic)
    producer.init_transactions()
    producer.begin_transaction()
    producer.send(topic, b"held").get(60)
    listed = {
        row["transactional_id"]: row for row in terminal.rows("transactions", "list", "--state", "Ongoing")
    }
    (row,) = terminal.rows("transactions", "describe", topic)
    assert (row["state"], row["partitions"]) == ("Ongoing", [f"{topic}-0"])
    assert row["producer_id"] == listed[topic]["producer_id"]
    (known,) = terminal.rows("transactions", "producers", topic)
    assert (known["producer_id"], known["transaction_start"]) == (row["producer_id"], 0)
    assert terminal.run("consume", topic, "--exit", "--uncommitted") == "held\n"
    terminal.run("transactions", "abort", topic)
    (row,) = terminal.rows("transactions", "describe", topic)
    assert row["state"] in ("Empty", "CompleteAbort") and not row["partitions"]
    assert terminal.run("consume", topic, "--exit") == ""
    with pytest.raises(KafkaError):
        producer.commit_transaction()
    producer.close(0)
    said = terminal.refused("transactions", "describe", f"{topic}-none")
    assert "TransactionalIdNotFoundError" in said


def test_a_consumer_that_exits_does_not_wait_for_an_open_transaction(terminal, topic):
    terminal.run("topics", "create", topic)
    terminal.run("produce", topic, stdin="before\n")
    producer = KafkaProducer(bootstrap_servers=terminal.servers, transactional_id=topic)
    producer.init_transactions()
    producer.begin_transaction()
    producer.send(topic, b"held").get(60)
    terminal.run("produce", topic, stdin="behind\n")
    assert terminal.run("consume", topic, "--exit") == "before\n"
    assert terminal.run("consume", topic, "--exit", "--to", "3") == "before\n"
    terminal.run("topics", "copy", topic, f"{topic}-copy")
    assert terminal.run("consume", f"{topic}-copy", "--exit") == "before\n"
    producer.commit_transaction()
    producer.close()
    assert terminal.run("consume", topic, "--exit") == "before\nheld\nbehind\n"
