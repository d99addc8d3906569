"""A test of a program that uses confluent-kafka, with the broker of the pytest plugin, which listens.

pytest examples/test_with_confluent.py
"""

from confluent_kafka import Consumer, Producer


def confirm_orders(servers, count):
    """The program under test: it answers each order with a confirmation."""
    groups = {"group.id": "confirming", "auto.offset.reset": "earliest"}
    consumer = Consumer({"bootstrap.servers": servers, **groups})
    producer = Producer({"bootstrap.servers": servers})
    consumer.subscribe(["orders"])
    for _ in range(count):
        order = consumer.poll(60)
        producer.produce("confirmations", key=order.key(), value=b"confirmed: " + order.value())
    producer.flush(60)
    consumer.close()  # commits what it has read


def test_every_order_is_confirmed(dafka_broker):
    dafka_broker.preload("orders", [(b"anna", b"one book"), (b"ben", b"two pens")])
    confirm_orders(dafka_broker.bootstrap_servers, count=2)
    confirmations = {record.key: record.value for record in dafka_broker.wait_for_records("confirmations", 2)}
    assert confirmations == {b"anna": b"confirmed: one book", b"ben": b"confirmed: two pens"}
    assert dafka_broker.committed("confirming") == {("orders", 0): 2}
