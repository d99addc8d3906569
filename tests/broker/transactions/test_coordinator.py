"""Transactions: readers of committed records get all of a transaction or nothing."""

from __future__ import annotations

import threading
import time

import gevent
import kafka.errors as errors
import pytest
from broker.clients import Client, batch
from broker.transactions.transactional import Producer, committed, everything, fetch, offset_of, visible
from timing import until

from dafka import Consumer
from dafka.broker.interface.broker import CommittedOffset, Fetched, ListedOffset
from dafka.broker.interface.transactions import ListedTransaction
from dafka.broker.transactions.transaction import TRANSACTIONS
from dafka.protocol.batch import with_producer


@pytest.fixture
def producer(client: Client) -> Producer:
    client.create("t", 3)
    return Producer(client)


# -- visibility --------------------------------------------------------------------------------


def test_records_of_an_open_transaction_are_visible_to_read_uncommitted_only(client, producer):
    producer.send(b"a")
    assert committed(client) == []
    assert everything(client) == [b"a"]
    producer.commit()
    assert committed(client) == [b"a"]


def test_records_of_an_aborted_transaction_are_filtered_out(client, producer):
    client.produce("t", b"before")
    producer.send(b"a")
    producer.abort()
    client.produce("t", b"after")
    assert committed(client) == [b"before", b"after"]
    assert fetch(client).aborted == ((producer.producer_id, 1),)
    assert everything(client) == [b"before", b"a", b"after"]


def test_an_open_transaction_holds_back_later_records(client, producer):
    client.produce("t", b"before")
    producer.send(b"a")
    client.produce("t", b"after")
    fetched = fetch(client)
    assert (fetched.high_watermark, fetched.last_stable_offset) == (3, 1)
    assert visible(fetched) == [b"before"]
    producer.commit()
    assert fetch(client).last_stable_offset == 4
    assert committed(client) == [b"before", b"a", b"after"]


def test_the_oldest_of_several_transactions_holds_back_the_others(client, producer):
    other = Producer(client, "y")
    producer.send(b"a")
    other.send(b"b")
    other.commit()
    assert committed(client) == []
    producer.abort()
    assert committed(client) == [b"b"]


def test_a_transaction_covers_all_its_partitions(client, producer):
    assert producer.add(("t", 0), ("t", 1), ("t", 2)) is None
    for number in (0, 1):
        assert producer.write(b"%d" % number, ("t", number)).error is None
    assert [committed(client, number) for number in range(3)] == [[], [], []]
    producer.commit()
    assert [committed(client, number) for number in range(3)] == [[b"0"], [b"1"], []]


def test_a_fetch_that_waits_is_woken_when_the_transaction_ends(client, producer):
    producer.send(b"a")
    got: list[Fetched] = []
    reader = threading.Thread(target=lambda: got.append(fetch(client, wait=100.0)))
    reader.start()
    until(lambda: client.core._record_calls._fetches)
    began = time.monotonic()
    producer.commit()
    reader.join(100.0)
    assert visible(got[0]) == [b"a"]
    assert time.monotonic() - began < 50


def test_the_latest_committed_offset_is_the_last_stable_one(client, producer):
    client.produce("t", b"before", timestamp=1000)
    producer.send(b"a")
    latest = {("t", 0): -1}
    assert client.call("list_offsets", latest)["t", 0] == ListedOffset(None, 2, leader_epoch=0)
    assert client.call("list_offsets", latest, read_committed=True)["t", 0] == ListedOffset(
        None, 1, leader_epoch=0
    )
    producer.commit()
    assert client.call("list_offsets", latest, read_committed=True)["t", 0] == ListedOffset(
        None, 3, leader_epoch=0
    )


def test_the_last_stable_offset_is_never_above_the_high_watermark(client, producer, monkeypatch):
    """A transaction begins after an uncommitted batch of the same round."""
    assert producer.add(("t", 0)) is None
    seen = []
    storage = client.core.log._storage
    commit = storage.commit

    def look(*rows: object) -> None:
        partition = client.core._topics.partition("t", 0)
        seen.append(client.core._record_calls._list_offset(partition, -1, True).offset)
        commit(*rows)

    first = with_producer(batch(b"b"), producer.producer_id, producer.epoch, 0, transactional=True)

    def together() -> None:
        calls = [gevent.spawn(client.core.produce, {("t", 0): [content]}) for content in (batch(b"a"), first)]
        gevent.joinall(calls, raise_error=True)

    monkeypatch.setattr(storage, "commit", look)
    client.connection.hub.run(together)
    monkeypatch.undo()
    assert seen == [0]
    assert fetch(client).last_stable_offset == 1


def test_a_fetch_from_inside_an_aborted_transaction_lists_it(client, producer):
    producer.send(b"a")
    producer.send(b"b")
    producer.send(b"c")
    producer.abort()
    client.produce("t", b"d")
    assert visible(fetch(client, 1)) == [b"d"]
    assert fetch(client, 4).aborted == ()
    first = fetch(client, 0, max_bytes=1)
    assert (len(first.batches), first.aborted) == (1, ((producer.producer_id, 0),))


def test_a_native_consumer_gets_no_markers(broker, client, producer):
    with Consumer(["t"], tower=broker.tower, offset_reset="earliest") as consumer:
        producer.send(b"a")
        producer.commit()
        client.produce("t", b"b")
        values: list[bytes | None] = []
        until(lambda: values.extend(r.value for r in consumer.poll(0.1)) or len(values) >= 2)
    assert values == [b"a", b"b"]


# -- refusals -----------------------------------------------------------------------------------


def test_with_an_unknown_partition_the_others_are_not_attempted(client, producer):
    wanted = [("t", 0), ("t", 9), ("no", 0)]
    assert client.call("add_partitions_to_transaction", *producer.who, wanted) == {
        ("t", 0): errors.OperationNotAttemptedError,
        ("t", 9): errors.UnknownTopicOrPartitionError,
        ("no", 0): errors.UnknownTopicOrPartitionError,
    }


def test_calls_with_an_unknown_identity_are_refused(client, producer):
    for stranger in (("z", 0, 0), ("x", producer.producer_id + 1, 0)):
        answers = client.call("add_partitions_to_transaction", *stranger, [("t", 0)])
        assert answers["t", 0] is errors.InvalidProducerIdMappingError
        assert client.call("end_transaction", *stranger, True) is errors.InvalidProducerIdMappingError
    assert client.call("end_transaction", "", 0, 0, True) is errors.InvalidRequestError


def test_a_repeated_end_succeeds_and_the_opposite_one_is_refused(client, producer):
    assert producer.end(True) is errors.InvalidTxnStateError
    producer.send(b"a")
    producer.commit()
    producer.commit()
    assert producer.end(False) is errors.InvalidTxnStateError
    producer.send(b"b")
    producer.abort()
    producer.abort()
    assert producer.end(True) is errors.InvalidTxnStateError


# -- offsets ------------------------------------------------------------------------------------


def test_offsets_are_committed_with_their_transaction(client, producer):
    assert producer.send_offset(5) is None
    assert offset_of(client) is None
    producer.commit()
    assert offset_of(client) == 5


def test_offsets_of_an_aborted_transaction_are_dropped(client, producer):
    client.call("commit_offsets", "g", {("t", 0): CommittedOffset(3)})
    assert producer.send_offset(5) is None
    producer.abort()
    assert offset_of(client) == 3
    assert offset_of(client, require_stable=True) == 3


def test_stable_offsets_are_refused_until_the_transaction_ends(client, producer):
    producer.send_offset(5)
    with pytest.raises(errors.UnstableOffsetCommitError):
        offset_of(client, require_stable=True)
    with pytest.raises(errors.UnstableOffsetCommitError):
        client.call("fetch_offsets", "g", None, require_stable=True)
    assert client.call("fetch_offsets", "g", [("t", 1)], require_stable=True) == {}
    assert offset_of(client, "other", require_stable=True) is None
    producer.send_offset(6)
    producer.commit()
    assert offset_of(client, require_stable=True) == 6


def test_offsets_are_refused_unless_their_group_was_added(client, producer):
    assert producer.commit_offset(5) is errors.InvalidTxnStateError
    producer.add(("t", 0))
    assert producer.commit_offset(5) is errors.InvalidTxnStateError
    assert client.call("add_offsets_to_transaction", "t", 99, 0, "") is errors.InvalidProducerIdMappingError
    assert client.call("add_offsets_to_transaction", *producer.who, "") is None
    offsets = {("t", 0): CommittedOffset(5), ("t", 99): CommittedOffset(5)}
    assert client.call("commit_transaction_offsets", *producer.who, "", offsets) == {
        ("t", 0): errors.InvalidGroupIdError,  # a group that has offsets has a name
        ("t", 99): errors.UnknownTopicOrPartitionError,
    }


def test_committed_offsets_have_their_transaction_checked_before_their_group(client, producer):
    assert producer.commit_offset(5, generation=3, member_id="gone") is errors.InvalidTxnStateError


def test_offsets_of_an_unknown_member_are_refused(client, producer):
    assert producer.send_offset(5, generation=3, member_id="gone") is errors.IllegalGenerationError
    producer.commit()
    assert offset_of(client) is None


def test_offsets_of_unknown_partitions_are_refused(client, producer):
    assert client.call("add_offsets_to_transaction", *producer.who, "g") is None
    offsets = {("t", 9): CommittedOffset(1), ("t", 0): CommittedOffset(2)}
    answers = client.call("commit_transaction_offsets", *producer.who, "g", offsets)
    assert answers == {("t", 9): errors.UnknownTopicOrPartitionError, ("t", 0): None}


def test_the_groups_of_a_transaction_are_limited(client, producer, monkeypatch):
    monkeypatch.setattr("dafka.broker.transactions.contents.TRANSACTION_GROUPS", 2)
    for group, error in [("a", None), ("b", None), ("c", errors.PolicyViolationError), ("a", None)]:
        assert client.call("add_offsets_to_transaction", *producer.who, group) is error


# -- describing ---------------------------------------------------------------------------------


def test_transactions_are_described_and_listed(client, producer):
    producer.send(b"a")
    producer.send(b"b", ("t", 2))
    other = Producer(client, "y")
    found = client.call("describe_transactions", ["x", "y", "z"])
    assert found["z"].error is errors.TransactionalIdNotFoundError
    assert found["y"].state == "Empty"
    described = found["x"]
    assert (described.error, described.state, described.timeout) == (None, "Ongoing", 60.0)
    assert (described.producer_id, described.epoch) == (producer.producer_id, producer.epoch)
    assert described.partitions == [("t", 0), ("t", 2)]
    assert 0 <= time.time() - described.started < 600
    listed = ListedTransaction("x", producer.producer_id, "Ongoing")
    assert client.call("list_transactions")[0] == listed
    assert client.call("list_transactions", ["Ongoing"]) == [listed]
    assert client.call("list_transactions", [], [other.producer_id])[0].transactional_id == "y"
    (active,) = client.call("describe_producers", [("t", 2)])["t", 2].producers
    assert (active.transaction_start, active.last_sequence) == (0, 0)
    producer.commit()
    assert client.call("describe_transactions", ["x"])["x"].state == "CompleteCommit"


def test_listing_many_transactions_lets_other_green_threads_run(client, producer):
    known = client.core._transactions._table.get("x")
    rows = {
        (TRANSACTIONS, f"id {number}"): next(iter(known.row(producer_id=1000 + number).values()))
        for number in range(2000)
    }
    turns = []

    def together() -> list[ListedTransaction]:
        client.core._writer.put_and_wait(rows)
        listing = gevent.spawn(client.core.list_transactions, (), (1500, 2500))
        while not listing.ready():
            turns.append(1)
            gevent.sleep(0)
        return listing.get()

    found = client.connection.hub.run(together)
    assert found == [ListedTransaction(f"id {number}", 1000 + number, "Empty") for number in (1500, 500)]
    assert len(turns) > 3
