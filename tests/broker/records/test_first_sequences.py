"""The lowest sequence that has come for a transaction, and was refused: none overtakes it."""

from __future__ import annotations

from typing import Any

import kafka.errors as errors
import pytest
from broker.clients import Client, batch
from broker.transactions.transactional import Producer

from dafka.broker.interface.broker import TopicSpec
from dafka.broker.interface.transactions import Writes
from dafka.broker.limits import PRODUCER_ID_EXPIRATION
from dafka.broker.records import first_sequences
from dafka.broker.records.first_sequences import First, FirstSequences
from dafka.protocol.batch import BatchHeader, read_header, with_producer
from dafka.protocol.batch_writer import encode_batch

DAY = int(PRODUCER_ID_EXPIRATION * 1000)


def header(sequence: int, epoch: int = 0) -> BatchHeader:
    return read_header(with_producer(batch(b"x"), 7, epoch, sequence, transactional=True))


@pytest.fixture
def first() -> FirstSequences:
    return FirstSequences()


def test_the_lowest_sequence_of_the_latest_epoch_is_remembered(first: FirstSequences) -> None:
    first.note("a", header(5), True, 1)
    assert first.get("a", 2) == First(5, 0, True, 1)
    for sequence, epoch, kept in ((7, 0, (5, 0)), (3, 0, (3, 0)), (9, 1, (9, 1)), (2, 0, (9, 1))):
        first.note("a", header(sequence, epoch), False, 3)
        assert first.get("a", 3) == First(*kept, True, 1)
    assert first.get("b", 3) is None
    first.forget("a")
    first.forget("b")
    assert first.get("a", 3) is None


def test_after_a_day_it_is_as_if_nothing_had_come(first: FirstSequences) -> None:
    first.note("a", header(5), True, 1)
    assert first.get("a", DAY) is not None
    assert first.get("a", DAY + 1) is None
    first.note("a", header(9), False, DAY + 1)
    assert first.get("a", DAY + 2) == First(9, 0, False, DAY + 1)


def test_beyond_their_number_the_longest_remembered_are_forgotten(
    first: FirstSequences, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(first_sequences, "FIRST_SEQUENCES_KEPT", 2)
    for at, key in enumerate("abac"):
        first.note(key, header(5), False, at)
    assert [key for key in "abc" if first.get(key, 9)] == ["b", "c"]


@pytest.fixture
def producer(client: Client) -> Producer:
    client.create("t", 3)
    return Producer(client)


def outcomes(client: Client, producer: Producer, *sequences: int, writes: Writes = Writes.ANNOUNCED) -> Any:
    """The errors of batches with these sequences, in a transaction; None: taken."""
    found = []
    for sequence in sequences:
        content = with_producer(
            batch(b"x"), producer.producer_id, producer.epoch, sequence, transactional=True
        )
        one = {("t", 0): [content]}
        found.append(client.call("produce", one, transactional_id=producer.id, writes=writes)["t", 0].error)
    return found


def test_a_batch_behind_a_refused_one_waits_for_it(client: Client, producer: Producer) -> None:
    assert outcomes(client, producer, 3) == [errors.InvalidTxnStateError]
    producer.add(("t", 0))
    out_of_order = errors.OutOfOrderSequenceNumberError
    assert outcomes(client, producer, 5, 3, 4, 6, 5) == [out_of_order, None, None, out_of_order, None]
    producer.commit()
    producer.add(("t", 0))
    assert outcomes(client, producer, 5, 6) == [None, out_of_order]  # it has come again
    producer.commit()  # whose marker ends that
    producer.add(("t", 0))
    assert outcomes(client, producer, 6) == [None]


def test_a_batch_that_the_topic_refuses_counts_as_well(client: Client, producer: Producer) -> None:
    spec = TopicSpec(1, configs={"cleanup.policy": "compact"})
    assert client.change("create_topics", {"compacted": spec}) == {"compacted": None}
    producer.add(("compacted", 0))

    def send(sequence: int, key: bytes | None) -> object:
        content = encode_batch([(1000, key, b"x", ())])
        content = with_producer(content, producer.producer_id, producer.epoch, sequence, transactional=True)
        one = {("compacted", 0): [content]}
        return client.call("produce", one, transactional_id=producer.id)["compacted", 0].error

    assert send(3, None) is errors.InvalidRecordError
    assert send(4, b"k") is errors.OutOfOrderSequenceNumberError
    assert send(3, b"k") is None


def test_a_newer_clients_batch_that_could_not_be_added_counts(client: Client, producer: Producer) -> None:
    """With what came first it depends whether a producer that is not known has to begin with 0."""
    assert outcomes(client, producer, 3, writes=Writes.ABORTABLE) == [errors.TransactionAbortableError]
    assert outcomes(client, producer, 4, 2, writes=Writes.ADDING) == [
        errors.OutOfOrderSequenceNumberError,
        None,
    ]
