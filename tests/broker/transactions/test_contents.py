"""What is added to transactions: partitions that others ask about, and offsets that add their groups."""

from __future__ import annotations

from typing import Any

import kafka.errors as errors
import pytest
from broker.clients import Client
from broker.transactions.transactional import Producer, offset_of, state_of

from dafka import Broker
from dafka.broker.interface.broker import CommittedOffset
from dafka.broker.interface.transactions import Writes
from dafka.broker.transactions.transaction import State


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


def test_a_group_is_there_with_offsets_of_an_open_transaction(client, producer):
    assert offsets(producer, Writes.ADDING) is None
    assert [one.group for one in client.call("list_groups")] == ["g"]
    assert client.call("describe_groups", ["g"])["g"].state == "Empty"
    assert offsets(producer, Writes.ADDING, generation=4, member_id="nobody") is errors.UnknownMemberIdError
    wanted = {("t", 0): CommittedOffset(3)}
    commit = client.call("commit_offsets", "g", wanted, generation=4, member_id="nobody")
    assert commit == {("t", 0): errors.UnknownMemberIdError}
    producer.abort()
    assert [one.group for one in client.call("list_groups")] == ["g"]  # until old offsets are looked for
    client.connection.hub.run(client.core._offsets.forget_bare)
    assert client.call("list_groups") == []


def test_a_group_whose_transaction_was_committed_stays(client, producer):
    assert offsets(producer, Writes.ADDING) is None
    producer.commit()
    client.connection.hub.run(client.core._offsets.forget_bare)
    assert [one.group for one in client.call("list_groups")] == ["g"]


@pytest.mark.parametrize("how", ["group", "offset"])
def test_offsets_of_an_open_transaction_are_deleted_with_the_others(tmp_path, how):
    """Also after a restart in between."""
    with Broker(tmp_path) as broker:
        client = Client(broker)
        client.create("t", 3)
        producer = Producer(client, raising=True)
        both = {("t", number): CommittedOffset(3) for number in (0, 1)}
        for group in ("g", "other"):
            noted = client.call(
                "commit_transaction_offsets", *producer.who, group, both, writes=Writes.ADDING
            )
            assert set(noted.values()) == {None}
        if how == "group":
            assert client.call("delete_groups", ["g"]) == {"g": None}
            assert client.call("delete_groups", ["g"]) == {"g": errors.GroupIdNotFoundError}
        else:
            assert client.call("delete_offsets", "g", [("t", 1)]) == {("t", 1): None}
        unstable = "other" if how == "group" else "g"
        with pytest.raises(errors.UnstableOffsetCommitError):
            client.call("fetch_offsets", unstable, require_stable=True)
    with Broker(tmp_path) as broker:
        producer.client = client = Client(broker)
        producer.commit()
        left = [] if how == "group" else [("t", 0)]
        assert list(client.call("fetch_offsets", "g")) == left
        assert list(client.call("fetch_offsets", "other")) == list(both)


def test_offsets_of_a_decided_transaction_are_not_taken_back(client, producer):
    assert offsets(producer, Writes.ADDING) is None
    core = client.core
    (transaction,) = core._transactions._table.in_use()
    (key,) = transaction.offsets

    def withdraw():
        transaction.state = State.PREPARE_COMMIT
        decided = core._offsets.withdraw([key])
        transaction.state = State.ONGOING
        return decided, core._offsets.withdraw([key, "another"]), core._offsets.has_group("g")

    decided, rows, there = client.connection.hub.run(withdraw)
    assert (decided, len(rows), there) == ({}, 1, True)
