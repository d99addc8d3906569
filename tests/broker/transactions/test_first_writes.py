"""First writes: they add their partitions, and those behind them wait their turn."""

from __future__ import annotations

import gevent
import kafka.errors as errors
import pytest
from broker.clients import Client, batch
from broker.transactions.transactional import Producer, committed

from dafka.broker.interface.broker import CommittedOffset
from dafka.broker.interface.transactions import Writes
from dafka.hub import limits as hub_limits
from dafka.log import LogWriteError
from dafka.protocol.batch import with_producer


@pytest.fixture
def producer(client: Client) -> Producer:
    client.create("t", 3)
    return Producer(client, raising=True)


def content(producer, value, sequence):
    return with_producer(batch(value), producer.producer_id, producer.epoch, sequence, transactional=True)


def produce(client, batches):
    return client.call("produce", batches, transactional_id="x", writes=Writes.ADDING)


def partitions_of(client):
    return client.call("describe_transactions", ["x"])["x"].partitions


def test_the_first_batch_begins_the_transaction_and_adds_its_partition(client, producer):
    assert producer.write(b"a").error is None
    assert partitions_of(client) == [("t", 0)]
    both = {("t", number): [content(producer, b"b", 0)] for number in (1, 2)}
    assert {one.error for one in produce(client, both).values()} == {None}
    assert partitions_of(client) == [("t", 0), ("t", 1), ("t", 2)]
    producer.commit()
    assert committed(client) == [b"a"]


def test_batches_outside_of_transactions_add_nothing(client, producer):
    identity = client.call("init_producer_id", None, 60.0)
    plain = batch(b"a", producer_id=identity.producer_id, producer_epoch=0, base_sequence=0)
    assert produce(client, {("t", 0): [plain]})["t", 0].error is None
    assert partitions_of(client) == []


def test_many_batches_in_a_row_keep_their_order_while_the_first_adds_the_partition(client, producer):
    def send(number):
        one = {("t", 0): [content(producer, b"%d" % number, number)]}
        return client.core.produce(one, transactional_id="x", writes=Writes.ADDING)["t", 0]

    def all_at_once():
        greens = [gevent.spawn(send, number) for number in range(50)]
        return [green.get().error for green in greens]

    assert client.connection.hub.run(all_at_once) == [None] * 50
    assert not client.core._transactions.contents.lines._lines
    producer.commit()
    assert committed(client) == [b"%d" % number for number in range(50)]


def test_batches_of_many_partitions_are_not_overtaken_by_those_behind_them(client, producer, monkeypatch):
    client.create("wide", 200)
    monkeypatch.setattr(hub_limits, "PACE_SECONDS", 0.0)  # whoever may pause does

    def send(sequence, numbers):
        some = {("wide", number): [content(producer, b"%d" % sequence, sequence)] for number in numbers}
        answers = client.core.produce(some, transactional_id="x", writes=Writes.ADDING)
        return {one.error for one in answers.values()}

    def all_at_once():
        greens = [gevent.spawn(send, 0, range(200)), gevent.spawn(send, 1, [199])]
        return [green.get() for green in greens]

    assert client.connection.hub.run(all_at_once) == [{None}, {None}]


def test_offsets_and_batches_of_the_same_producer_wait_for_each_other(client, producer):
    def batches(number):
        one = {("t", number): [content(producer, b"a", 0)]}
        return client.core.produce(one, transactional_id="x", writes=Writes.ADDING)["t", number].error

    def offsets(group):
        wanted = {("t", 0): CommittedOffset(1)}
        return client.core.commit_transaction_offsets(*producer.who, group, wanted, writes=Writes.ADDING)[
            "t", 0
        ]

    def all_at_once():
        greens = [gevent.spawn(batches, number) for number in range(3)]
        greens += [gevent.spawn(offsets, group) for group in "gh"]
        return [green.get() for green in greens]

    assert client.connection.hub.run(all_at_once) == [None] * 5


def test_a_producer_begins_with_sequence_0_in_each_partition(client, producer):
    producer.sequences["t", 0] = 3
    assert producer.write(b"a").error is errors.OutOfOrderSequenceNumberError
    producer.sequences = {}
    assert producer.write(b"a").error is None


@pytest.mark.parametrize(
    ("name", "producer_id", "epoch", "error"),
    [
        ("y", 0, 0, errors.InvalidProducerIdMappingError),
        ("", 0, 0, errors.InvalidProducerIdMappingError),
        ("x", 900, 0, errors.InvalidProducerIdMappingError),
        ("x", 0, 1, errors.InvalidProducerEpochError),
    ],
)
def test_writes_outside_the_producers_transaction_are_refused(
    client, producer, name, producer_id, epoch, error
):
    producer.id = name
    producer.producer_id += producer_id
    producer.epoch += epoch
    assert producer.write(b"a").error is error
    assert partitions_of(client) == []


def test_a_partition_that_cannot_be_added_refuses_its_batch(client, producer, monkeypatch):
    def fail(*args):
        raise LogWriteError(client.core.log.path, "no space")

    with monkeypatch.context() as patch:
        patch.setattr(client.core.log._storage, "commit", fail)
        refused = producer.write(b"a")
    assert refused.error is errors.KafkaStorageError
    assert "partition 0 of 't' was not added" in refused.detail
    client.core._transactions._table.get("x").busy = True
    assert producer.write(b"a").error is errors.ConcurrentTransactionsError
    client.core._transactions._table.get("x").busy = False
    assert producer.write(b"a").error is None
