"""Transactions whose calls the broker answers with errors: those that can be aborted, and calls that are
repeated."""

from __future__ import annotations

import pytest
from kafka.errors import (
    CoordinatorNotAvailableError,
    KafkaError,
    TransactionAbortableError,
    UnknownProducerIdError,
)

from compat.kafka import TopicPartition
from compat.kafka.structs import OffsetAndMetadata
from dafka.broker.interface.broker import Produced
from dafka.broker.interface.transactions import ProducerIdentity

T0 = TopicPartition("t", 0)


class Refusing:
    """The broker of a producer, except that it answers calls with the errors that are ordered."""

    def __init__(self, producer) -> None:
        self._broker = producer._client._broker
        self.errors: dict[str, list[type[KafkaError]]] = {}
        producer._client._broker = self

    def __getattr__(self, name):
        real = getattr(self._broker, name)
        if not self.errors.get(name):
            return real

        def refuse(*args, **options):
            error = self.errors[name].pop()
            if name == "produce":
                return {partition: Produced(error) for partition in args[0]}
            if name == "commit_transaction_offsets":
                return dict.fromkeys(args[4], error)
            if name == "add_partitions_to_transaction":
                return dict.fromkeys(args[3], error)
            return error if name != "end_transaction_with_epoch" else ProducerIdentity(error)

        return refuse


@pytest.mark.parametrize(
    "level, where",
    [
        (1, "add_partitions_to_transaction"),
        (1, "produce"),
        (1, "commit_transaction_offsets"),
        (2, "produce"),
        (2, "commit_transaction_offsets"),
    ],
    indirect=["level"],
)
def test_an_abortable_error_leaves_the_producer_usable(transactional, committed, level, where):
    broker = Refusing(transactional)
    transactional.begin_transaction()
    transactional.send("t", b"a", partition=0).get(100)
    broker.errors[where] = [TransactionAbortableError]
    with pytest.raises(TransactionAbortableError):
        if where == "commit_transaction_offsets":
            transactional.send_offsets_to_transaction({T0: OffsetAndMetadata(5, "", -1)}, "g")
        else:
            transactional.send("t", b"b", partition=1).get(100)
    with pytest.raises(KafkaError, match="in an error state"):
        transactional.commit_transaction()
    transactional.abort_transaction()
    transactional.begin_transaction()
    transactional.send("t", b"c")
    transactional.commit_transaction()
    assert committed() == [b"c"]


def test_a_commit_with_an_abortable_error_is_aborted_instead(transactional, committed, level):
    broker = Refusing(transactional)
    transactional.begin_transaction()
    transactional.send("t", b"a")
    name = "end_transaction" if level == 1 else "end_transaction_with_epoch"
    broker.errors[name] = [TransactionAbortableError]
    with pytest.raises(TransactionAbortableError):
        transactional.commit_transaction()
    transactional.abort_transaction()
    transactional.begin_transaction()
    transactional.send("t", b"b")
    transactional.commit_transaction()
    assert committed() == [b"b"]


def test_a_lost_answer_to_an_end_is_asked_for_again(transactional, committed, level, state):
    broker = Refusing(transactional)
    name = "end_transaction" if level == 1 else "end_transaction_with_epoch"
    for commit in (True, False):
        transactional.begin_transaction()
        transactional.send("t", b"a")
        transactional.flush()
        identity = transactional._transactions._identity
        broker.errors[name] = [CoordinatorNotAvailableError, CoordinatorNotAvailableError]
        ended = transactional._client.call(getattr(broker._broker, name), "mine", *identity, commit)
        assert ended is None or ended.error is None  # and its answer does not arrive
        transactional.commit_transaction() if commit else transactional.abort_transaction()
        if level == 1:
            break  # Apache Kafka refuses to abort again what is aborted, too
    assert state() == (("CompleteCommit", 0) if level == 1 else ("CompleteAbort", 2))
    assert committed() == [b"a"]


@pytest.mark.parametrize("level", [2], indirect=True)
def test_an_error_in_the_sequence_is_over_with_the_abort(transactional, committed, level, state):
    broker = Refusing(transactional)
    transactional.begin_transaction()
    transactional.send("t", b"a").get(100)
    broker.errors["produce"] = [UnknownProducerIdError]
    with pytest.raises(UnknownProducerIdError):
        transactional.send("t", b"b").get(100)
    with pytest.raises(KafkaError, match="in an error state"):
        transactional.commit_transaction()
    transactional.abort_transaction()
    assert state() == ("CompleteAbort", 1)
    transactional.begin_transaction()
    transactional.send("t", b"c")
    transactional.commit_transaction()
    assert committed() == [b"c"]
