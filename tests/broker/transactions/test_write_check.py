"""Which batches a transaction allows."""

from __future__ import annotations

import kafka.errors as errors
import pytest
from broker.clients import Client, batch
from broker.transactions.transactional import Producer, committed, everything

from dafka import Broker
from dafka.broker.interface.transactions import Writes
from dafka.protocol.batch import with_producer


@pytest.fixture
def producer(client: Client) -> Producer:
    client.create("t", 3)
    return Producer(client)


def test_a_batch_for_a_partition_that_was_not_added_is_refused(client, producer):
    assert producer.write(b"a").error is errors.InvalidTxnStateError
    producer.add(("t", 1))
    refused = producer.write(b"a")
    assert refused.error is errors.InvalidTxnStateError
    assert "was not added" in refused.detail
    assert everything(client) == []


def test_a_batch_outside_of_the_open_transaction_of_its_producer_is_refused(client, producer):
    producer.send(b"a")
    content = batch(b"b", producer_id=producer.producer_id, producer_epoch=producer.epoch, base_sequence=1)
    answer = client.call("produce", {("t", 0): [content]})["t", 0]
    assert answer.error is errors.InvalidTxnStateError


def test_a_batch_of_another_transactional_id_is_refused(client, producer):
    producer.add(("t", 0))
    producer.id = "somebody"
    assert producer.write(b"a").error is errors.InvalidProducerIdMappingError


def test_batches_after_the_end_are_refused(client, producer):
    producer.send(b"a")
    producer.commit()
    assert producer.write(b"b").error is errors.InvalidTxnStateError
    producer.send(b"c")
    producer.abort()
    assert committed(client) == [b"a"]


def test_a_batch_of_an_earlier_epoch_is_refused(client, producer):
    producer.add(("t", 0))
    newer = Producer(client)  # with the same transactional id
    refused = producer.write(b"a")
    assert refused.error is errors.InvalidProducerEpochError
    assert refused.detail == (
        f"producer {producer.producer_id} with epoch {producer.epoch} is fenced by epoch {newer.epoch}"
    )
    assert everything(client) == []


def test_a_transactional_batch_of_an_unknown_producer_is_refused(client, producer):
    producer.producer_id += 1000
    refused = producer.write(b"a")
    assert refused.error is errors.InvalidProducerIdMappingError
    assert "does not belong to 'x'" in refused.detail
    producer.id = None
    refused = producer.write(b"a")
    assert refused.error is errors.InvalidTxnStateError
    assert "has no open transaction" in refused.detail


def test_a_late_batch_is_refused_in_the_same_way_after_a_restart(tmp_path):
    def write_late(broker):
        producer.client = Client(broker)
        return producer.write(b"b")

    with Broker(tmp_path / "data") as broker:
        client = Client(broker)
        client.create("t", 1)
        producer = Producer(client)
        producer.send(b"a")
        producer.commit()
        before = write_late(broker)
    with Broker(tmp_path / "data") as broker:
        assert (before.error, write_late(broker)) == (errors.InvalidTxnStateError, before)


def test_an_idempotent_producer_without_a_transactional_id_needs_no_transaction(client, producer):
    producer.send(b"a")
    identity = client.call("init_producer_id", None, 60.0)
    content = batch(b"b", producer_id=identity.producer_id, producer_epoch=identity.epoch, base_sequence=0)
    assert client.call("produce", {("t", 0): [content]})["t", 0].error is None


def test_clients_that_know_it_get_an_error_after_which_they_can_abort(client, producer):
    def write(writes):
        content = with_producer(batch(b"a"), producer.producer_id, producer.epoch, 0, transactional=True)
        produced = client.call("produce", {("t", 0): [content]}, transactional_id="x", writes=writes)
        return produced["t", 0].error

    assert write(Writes.ABORTABLE) is errors.TransactionAbortableError
    producer.add(("t", 1))
    assert write(Writes.ABORTABLE) is errors.TransactionAbortableError
    assert write(Writes.ANNOUNCED) is errors.InvalidTxnStateError


def test_a_batch_of_an_epoch_that_is_still_to_come_is_refused(client, producer):
    producer.add(("t", 0))
    producer.epoch += 1
    assert producer.write(b"a").error is errors.InvalidProducerEpochError
