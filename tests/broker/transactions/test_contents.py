"""What is added to transactions: partitions that others ask about, and offsets that add their groups."""

from __future__ import annotations

from typing import Any

import kafka.errors as errors
import pytest
from broker.clients import Client
from broker.transactions.transactional import Producer, offset_of, state_of

from dafka.broker.interface.broker import CommittedOffset
from dafka.broker.interface.transactions import Writes


@pytest.fixture
def producer(client: Client) -> Producer:
    client.create("t", 3)
    return Producer(client, raising=True)


def verified(producer, *partitions):
    return producer.client.call("add_partitions_to_transaction", *producer.who, partitions, verify_only=True)


def offsets(producer, writes, group="g", **member):
    wanted = {("t", 0): CommittedOffset(3)}
    answers = producer.client.call(
        "commit_transaction_offsets", *producer.who, group, wanted, writes=writes, **member
    )
    return answers["t", 0]


def test_verify_only_tells_whether_partitions_are_in_a_transaction_without_adding_them(client, producer):
    missing = errors.TransactionAbortableError
    assert verified(producer, ("t", 0)) == {("t", 0): missing}
    assert state_of(client) == "Empty"
    producer.add(("t", 1))
    assert verified(producer, ("t", 0), ("t", 1)) == {("t", 0): missing, ("t", 1): None}
    producer.epoch += 1
    assert verified(producer, ("t", 1)) == {("t", 1): errors.ProducerFencedError}


def test_offsets_add_their_group_and_begin_the_transaction(client, producer):
    assert offsets(producer, Writes.ADDING) is None
    assert state_of(client) == "Ongoing"
    producer.commit()
    assert offset_of(client) == 3


def test_offsets_of_a_group_that_was_not_added_are_refused_as_the_client_knows_it(client, producer):
    assert offsets(producer, Writes.ANNOUNCED) is errors.InvalidTxnStateError
    assert offsets(producer, Writes.ABORTABLE) is errors.TransactionAbortableError
    assert state_of(client) == "Empty"


def test_offsets_of_no_member_of_the_group_add_it_and_are_refused(client, producer):
    refused = offsets(producer, Writes.ADDING, generation=4, member_id="nobody")
    assert refused is errors.IllegalGenerationError
    assert state_of(client) == "Ongoing"
    producer.commit()
    assert offset_of(client) is None


def test_offsets_of_an_earlier_epoch_are_refused(client, producer):
    assert offsets(producer, Writes.ADDING) is None
    late = producer.epoch
    producer.commit()
    producer.epoch = late
    assert offsets(producer, Writes.ADDING) is errors.InvalidProducerEpochError
    producer.producer_id += 100
    assert offsets(producer, Writes.ADDING) is errors.InvalidProducerIdMappingError


def test_further_offsets_of_a_transaction_are_not_compared_with_all_that_it_has(client, producer):
    """Of a hundred thousand that took seconds, and a third of each turn."""

    class Unlooked(dict[str, Any]):
        def keys(self) -> Any:
            raise AssertionError("all offsets are looked at")

        __iter__ = items = keys

    def commit(number: int, offset: int) -> None:
        wanted = {("t", number): CommittedOffset(offset)}
        answers = client.call("commit_transaction_offsets", *producer.who, "g", wanted, writes=Writes.ADDING)
        assert answers == {("t", number): None}

    commit(0, 3)
    transaction = client.core._transactions._table.get("x")
    transaction.offsets = Unlooked(transaction.offsets)
    commit(1, 4)
    commit(0, 5)
    held = client.core._offsets._held
    assert (len(held), len(client.core._offsets._held_again)) == (2, 0)
    transaction.offsets = dict(dict.items(transaction.offsets))
    producer.commit()
    assert not held
    assert offset_of(client) == 5
