"""A test of a program that uses confluent-kafka, with a Kafka of its own: a broker that listens.

    pytest examples/test_with_confluent.py
"""

import pytest
from confluent_kafka import Consumer, Producer

from dafka.testing import TestBroker


@pytest.fixture
def broker():
    with TestBroker(listen="127.0.0.1:0") as broker:  # a free port; every Kafka client reaches it
        yield broker


def confirm_orders(servers, count):
    """The program under test: it answers each order with a confirmation."""
    groups = {"group.id": "confirming", "auto.offset.reset": "earliest"}
    consumer = Consumer({"bootstrap.servers": servers, **groups})
    producer = Producer({"bootstrap.servers": servers})
    consumer.subscribe(["orders"])
    for _ in range(count):
        order = consumer.poll(10)
        producer.produce("confirmations", key=order.key(), value=b"confirmed: " + order.value())
    producer.flush(10)
    consumer.close()  # commits what it has read


def test_every_order_is_confirmed(broker):
    broker.preload("orders", [(b"anna", b"one book"), (b"ben", b"two pens")])
    confirm_orders(broker.bootstrap_servers, count=2)
    confirmations = {record.key: record.value for record in broker.wait_for_records("confirmations", 2)}
    assert confirmations == {b"anna": b"confirmed: one book", b"ben": b"confirmed: two pens"}
    assert broker.committed("confirming") == {("orders", 0): 2}
