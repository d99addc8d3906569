"""Ends that raise the epoch, as Apache Kafka 4.3 answers them."""

from __future__ import annotations

import kafka.errors as errors
import pytest
from broker.clients import Client
from broker.transactions.transactional import Producer, committed, everything, fetch, state_of

from dafka import Broker
from dafka.broker.interface.features import FeatureUpdate, UpgradeType
from dafka.broker.interface.transactions import ProducerIdentity
from dafka.broker.transactions.transaction import LAST_EPOCH
from dafka.log import LogWriteError


@pytest.fixture
def producer(client: Client) -> Producer:
    client.create("t", 3)
    return Producer(client, raising=True)


def end(producer, epoch, commit=True, producer_id=None):
    who = producer.id, producer.producer_id if producer_id is None else producer_id, epoch
    return producer.client.call("end_transaction_with_epoch", *who, commit)


def test_each_end_gives_the_producer_the_next_epoch(client, producer):
    producer.send(b"a")
    producer.commit()
    producer.send(b"b")
    producer.abort()
    producer.send(b"c")
    producer.commit()
    assert producer.epoch == 3
    assert committed(client) == [b"a", b"c"]


def test_a_retry_gets_the_first_answer_and_the_other_end_an_error(client, producer):
    producer.send(b"a")
    raised = ProducerIdentity(None, producer.producer_id, 1)
    assert end(producer, 0) == end(producer, 0) == raised
    assert end(producer, 0, commit=False).error is errors.InvalidTxnStateError
    assert end(producer, 7).error is errors.ProducerFencedError
    assert (
        end(producer, 1, producer_id=producer.producer_id + 9).error is errors.InvalidProducerIdMappingError
    )


def test_without_a_transaction_an_abort_raises_the_epoch_and_a_commit_is_an_error(client, producer):
    assert end(producer, 0).error is errors.InvalidTxnStateError
    assert end(producer, 0, commit=False).epoch == 1
    assert end(producer, 0, commit=False).epoch == 1
    assert end(producer, 1, commit=False).epoch == 2
    assert end(producer, 2).error is errors.InvalidTxnStateError
    assert state_of(client) == "CompleteAbort"


def test_unknown_and_empty_transactional_ids_are_errors(producer):
    for name, error in (("", errors.InvalidRequestError), ("y", errors.InvalidProducerIdMappingError)):
        producer.id = name
        assert end(producer, 0).error is error


def test_a_late_batch_of_an_ended_transaction_is_refused_and_leaves_none_hanging(client, producer):
    producer.send(b"a")
    late, producer.sequences["t", 0] = producer.who, 1
    producer.commit()
    producer.send(b"b")
    now = producer.who
    _, producer.producer_id, producer.epoch = late
    assert producer.write(b"late").error is errors.InvalidProducerEpochError
    assert producer.write(b"late", ("t", 2)).error is errors.InvalidProducerEpochError  # where it was not yet
    _, producer.producer_id, producer.epoch = now
    producer.commit()
    assert everything(client) == [b"a", b"b"]
    assert fetch(client).last_stable_offset == fetch(client).high_watermark


def test_without_raised_epochs_a_late_batch_gets_into_the_next_transaction(client):
    """The purpose of this protocol: before it, nothing tells a late batch from one of the next
    transaction."""
    client.create("t")
    producer = Producer(client)
    producer.send(b"a")
    producer.commit()
    producer.add(("t", 0))
    assert producer.write(b"late").error is None
    producer.commit()
    assert committed(client) == [b"a", b"late"]


def test_behind_the_last_epoch_there_is_a_new_producer_id(client, producer):
    transaction = client.core._transactions._table.get("x")
    transaction.epoch = producer.epoch = LAST_EPOCH
    producer.send(b"a")
    old = producer.producer_id
    given = end(producer, LAST_EPOCH)
    assert (given.error, given.epoch) == (None, 0)
    assert given.producer_id != old
    assert end(producer, LAST_EPOCH) == given
    assert client.call("init_producer_id", "x", 60.0, old, LAST_EPOCH) == given
    assert producer.write(b"late").error is errors.InvalidProducerEpochError
    assert producer.write(b"late", ("t", 1)).error is errors.InvalidProducerIdMappingError
    _, producer.producer_id, producer.epoch = given
    producer.sequences = {}
    producer.send(b"b")
    assert end(producer, LAST_EPOCH, producer_id=old).error is errors.InvalidProducerIdMappingError
    producer.commit()
    assert committed(client) == [b"a", b"b"]


def test_an_abort_of_nothing_may_give_a_new_producer_id_too(client, producer):
    client.core._transactions._table.get("x").epoch = LAST_EPOCH
    given = end(producer, LAST_EPOCH, commit=False)
    assert given.producer_id != producer.producer_id
    assert end(producer, LAST_EPOCH, commit=False) == given


def test_clients_of_both_kinds_take_turns(client, producer):
    producer.send(b"a")
    producer.commit()
    producer.raising = False
    assert producer.end(True) is None  # the older kind takes the last end for its own
    producer.send(b"b")
    producer.commit()
    assert producer.epoch == 1
    assert end(producer, 0).error is errors.ProducerFencedError
    producer.raising = True
    assert end(producer, 1).error is errors.InvalidTxnStateError  # a new one, of nothing
    producer.send(b"c")
    producer.commit()
    assert producer.epoch == 2
    assert committed(client) == [b"a", b"b", b"c"]


def test_epochs_and_retries_are_known_after_a_restart(tmp_path):
    with Broker(tmp_path) as broker:
        client = Client(broker)
        client.create("t")
        producer = Producer(client, raising=True)
        producer.send(b"a")
        first = end(producer, 0)
    with Broker(tmp_path) as broker:
        producer.client = client = Client(broker)
        assert end(producer, 0) == first
        assert producer.write(b"late").error is errors.InvalidProducerEpochError
        producer.epoch, producer.sequences = 1, {}
        producer.send(b"b")
        producer.commit()
        assert committed(client) == [b"a", b"b"]


def test_an_end_that_cannot_be_written_raises_nothing(client, producer, monkeypatch):
    def fail(*args):
        raise LogWriteError(client.core.log.path, "no space")

    producer.send(b"a")
    with monkeypatch.context() as patch:
        patch.setattr(client.core.log._storage, "commit", fail)
        assert end(producer, 0).error is errors.KafkaStorageError
        client.core._transactions._table.get("x").epoch = LAST_EPOCH
        patch.setattr("dafka.broker.transactions.producer_ids.PRODUCER_IDS", 1)
        ids = client.core._transactions._identities._ids
        ids._end = ids._next
        assert end(producer, LAST_EPOCH).error is errors.KafkaStorageError
        client.core._transactions._table.get("x").epoch = 0
    producer.write(b"b")
    producer.commit()
    assert producer.epoch == 1
    assert committed(client) == [b"a", b"b"]


def test_a_producer_that_was_too_slow_may_abort_and_goes_on(broker, client):
    client.create("t")
    producer = Producer(client, timeout=600, raising=True)
    producer.send(b"a")
    broker.clock.advance(minutes=10)
    assert state_of(client) == "CompleteAbort"
    assert producer.write(b"b").error is errors.InvalidProducerEpochError
    assert producer.end(True) is errors.InvalidTxnStateError
    assert client.call("init_producer_id", "x", 60.0, producer.producer_id, 0).epoch == 1
    assert end(producer, 1, commit=False).epoch == 2


def test_at_level_1_a_producer_that_was_too_slow_is_fenced(broker, client):
    client.create("t")
    down = {"transaction.version": FeatureUpdate(1, UpgradeType.SAFE_DOWNGRADE)}
    assert client.call("update_features", down).error is None
    producer = Producer(client, timeout=600)
    producer.send(b"a")
    broker.clock.advance(minutes=10)
    assert state_of(client) == "CompleteAbort"
    assert (
        client.call("init_producer_id", "x", 60.0, producer.producer_id, 0).error
        is errors.ProducerFencedError
    )
