"""InitProducerId: producer ids, epochs, fencing."""

from __future__ import annotations

import kafka.errors as errors
import pytest
from broker.clients import Client
from broker.transactions.transactional import Producer, committed, fetch

from dafka.broker import limits
from dafka.broker.interface.transactions import ProducerIdentity
from dafka.broker.transactions.transaction import LAST_EPOCH


@pytest.fixture
def producer(client: Client) -> Producer:
    client.create("t", 3)
    return Producer(client)


def test_each_producer_without_a_transactional_id_gets_a_new_producer_id(client):
    given = [client.call("init_producer_id", None, 60.0) for _ in range(5)]
    assert len({identity.producer_id for identity in given}) == 5
    assert {(identity.error, identity.epoch) for identity in given} == {(None, 0)}


def test_the_next_producer_gets_the_same_id_with_the_next_epoch_and_fences_the_previous_one(client, producer):
    producer.send(b"a")
    newer = Producer(client)
    assert newer.producer_id == producer.producer_id
    assert newer.epoch > producer.epoch
    assert committed(client) == []
    assert fetch(client).last_stable_offset == 2  # the open transaction of the older producer was aborted
    assert producer.write(b"zombie").error is errors.InvalidProducerEpochError
    assert producer.add(("t", 1)) is errors.ProducerFencedError
    assert producer.end(True) is errors.ProducerFencedError
    assert client.call("add_offsets_to_transaction", *producer.who, "g") is errors.ProducerFencedError
    newer.send(b"b")
    newer.commit()
    assert committed(client) == [b"b"]


def test_a_producer_may_bump_its_own_epoch_and_repeat_the_call(client, producer):
    def ask(epoch: int, producer_id: int = producer.producer_id) -> ProducerIdentity:
        return client.call("init_producer_id", "x", 60.0, producer_id, epoch)

    bumped = ask(0)
    assert bumped == ProducerIdentity(None, producer.producer_id, 1)
    assert ask(0) == bumped  # the answer was lost
    assert ask(1).epoch == 2
    assert ask(0).error is errors.ProducerFencedError
    assert ask(2, producer.producer_id + 1).error is errors.ProducerFencedError


def test_init_producer_id_aborts_an_open_transaction(client, producer):
    producer.send(b"a")
    identity = client.call("init_producer_id", "x", 60.0, producer.producer_id, producer.epoch)
    assert identity.error is None
    assert identity.epoch > producer.epoch
    client.produce("t", b"b")
    assert committed(client) == [b"b"]


def test_a_producer_with_another_epoch_is_refused_and_the_open_transaction_aborted(client, producer):
    for epoch in (producer.epoch + 5, producer.epoch):  # the second time it is the epoch before
        producer.send(b"a")
        fenced = client.call("init_producer_id", "x", 60.0, producer.producer_id, epoch)
        assert fenced == ProducerIdentity(errors.ProducerFencedError)
        assert producer.write(b"zombie").error is errors.InvalidProducerEpochError
        assert producer.end(True) is errors.ProducerFencedError
        identity = client.call("init_producer_id", "x", 60.0, producer.producer_id, producer.epoch)
        assert identity == ProducerIdentity(None, producer.producer_id, producer.epoch + 1)
        producer.epoch, producer.sequences = identity.epoch, {}
    client.produce("t", b"b")
    assert committed(client) == [b"b"]


def test_a_producer_with_another_id_leaves_the_open_transaction_alone(client, producer):
    producer.send(b"a")
    other = client.call("init_producer_id", "x", 60.0, producer.producer_id + 1, producer.epoch)
    assert other.error is errors.ProducerFencedError
    producer.commit()
    assert committed(client) == [b"a"]


def test_a_new_producer_id_follows_the_last_epoch(client, producer):
    transaction = client.core._transactions._table.get("x")
    transaction.epoch = producer.epoch = LAST_EPOCH
    producer.send(b"a")
    newer = Producer(client)
    assert newer.epoch == 0
    assert newer.producer_id != producer.producer_id
    assert producer.write(b"zombie").error is errors.InvalidProducerEpochError
    newer.send(b"b")
    newer.commit()
    assert committed(client) == [b"b"]


@pytest.mark.parametrize(
    "transactional_id, timeout, producer_id, epoch, error",
    [
        ("", 60.0, -1, -1, errors.InvalidRequestError),
        ("x", 60.0, 5, -1, errors.InvalidRequestError),
        ("x", 60.0, -1, 5, errors.InvalidRequestError),
        ("x", 0.0, -1, -1, errors.InvalidTransactionTimeoutError),
        ("x", limits.TRANSACTION_TIMEOUT_MAX + 1, -1, -1, errors.InvalidTransactionTimeoutError),
    ],
)
def test_invalid_init_producer_id_calls_are_refused(
    client, transactional_id, timeout, producer_id, epoch, error
):
    assert client.call("init_producer_id", transactional_id, timeout, producer_id, epoch).error is error
