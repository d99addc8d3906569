"""Transactions as a kafka-python program has them: records, states, and both protocols."""

from __future__ import annotations

from uuid import UUID

import pytest
from kafka.errors import (
    IllegalStateError,
    InvalidProducerEpochError,
    InvalidTxnStateError,
    KafkaError,
    MessageSizeTooLargeError,
    ProducerFencedError,
    TransactionAbortedError,
)
from timing import until

from compat.kafka import OffsetAndMetadata, TopicPartition
from dafka.broker import connect
from dafka.broker.interface.features import FeatureUpdate, UpgradeType

T0 = TopicPartition("t", 0)


def test_committed_records_are_read_and_aborted_ones_are_not(transactional, committed, new_consumer):
    for number in range(4):
        transactional.begin_transaction()
        futures = [transactional.send("t", b"%d.%d" % (number, i), partition=i % 2) for i in range(10)]
        if number % 2:
            transactional.commit_transaction()
            assert all(future.is_done and future.exception is None for future in futures)
        else:
            transactional.flush()
            transactional.abort_transaction()
    expected = sorted(b"%d.%d" % (number, i) for number in (1, 3) for i in range(10))
    assert committed() == expected
    assert len(list(new_consumer("t"))) == 40


def test_records_of_an_open_transaction_are_not_read(transactional, committed, new_consumer):
    transactional.begin_transaction()
    transactional.send("t", b"a", partition=0).get(100)
    assert committed() == []
    reader = new_consumer(isolation_level="read_committed")
    reader.assign([T0])
    assert reader.end_offsets([T0]) == {T0: 0}
    assert new_consumer().end_offsets([T0]) == {T0: 1}
    transactional.commit_transaction()
    assert committed() == [b"a"]
    assert reader.end_offsets([T0]) == {T0: 2}


def test_a_reader_goes_on_behind_markers_and_aborted_records(transactional, new_consumer):
    reader = new_consumer(isolation_level="read_committed")
    reader.assign([T0])
    transactional.begin_transaction()
    transactional.send("t", b"a", partition=0)
    transactional.flush()
    transactional.abort_transaction()
    assert list(reader) == []
    assert reader.position(T0) == 2
    transactional.begin_transaction()
    transactional.send("t", b"b", partition=0)
    transactional.commit_transaction()
    assert [record.value for record in reader] == [b"b"]


def test_records_not_sent_yet_fail_when_the_transaction_is_aborted(broker, new_producer, committed):
    broker.create_topic("t", 2)
    producer = new_producer(transactional_id="mine", linger_ms=60_000, delivery_timeout_ms=200_000)
    producer.init_transactions()
    producer.begin_transaction()
    future = producer.send("t", b"a")
    producer.abort_transaction()
    assert isinstance(future.exception, TransactionAbortedError)
    producer.begin_transaction()
    producer.send("t", b"b")
    producer.commit_transaction()
    assert committed() == [b"b"]


def test_a_transactional_id_that_is_no_text_is_written_as_text(broker, new_producer, state):
    broker.create_topic("t")
    producer = new_producer(transactional_id=UUID(int=5))
    producer.init_transactions()
    producer.begin_transaction()
    producer.send("t", b"a").get(60)
    producer.commit_transaction()
    assert state(str(UUID(int=5)))[0] == "CompleteCommit"


def test_an_empty_transaction_may_be_committed_and_aborted(transactional):
    transactional.begin_transaction()
    transactional.commit_transaction()
    transactional.begin_transaction()
    transactional.abort_transaction()


# -- states -------------------------------------------------------------------------------------


def test_transactional_calls_in_the_wrong_order_say_so(broker, new_producer):
    producer = new_producer(transactional_id="mine")
    with pytest.raises(IllegalStateError, match="before completing a call to init_transactions"):
        producer.send("t", b"a")
    for call in (producer.begin_transaction, producer.commit_transaction, producer.abort_transaction):
        with pytest.raises(KafkaError, match="Invalid transition attempted from state UNINITIALIZED"):
            call()
    producer.init_transactions()
    producer.init_transactions()
    with pytest.raises(IllegalStateError, match="Cannot call send in state READY"):
        producer.send("t", b"a")
    with pytest.raises(KafkaError, match="not in an active transaction"):
        producer.send_offsets_to_transaction({}, "g")
    producer.begin_transaction()
    with pytest.raises(KafkaError, match="IN_TRANSACTION to state IN_TRANSACTION"):
        producer.begin_transaction()


@pytest.mark.parametrize(
    "offsets, error, words",
    [
        (None, TypeError, "not NoneType"),
        ([T0], TypeError, "not list"),
        ({T0: "x"}, TypeError, "partition=0.*: 'x'"),
        ({T0: 5}, TypeError, "partition=0.*: 5"),
        ({("t", 0): OffsetAndMetadata(1, "", -1)}, TypeError, "not {.'t', 0.: Offset"),
        ({T0: OffsetAndMetadata(1, 5, -1)}, TypeError, "metadata of .* is a str, not 5"),
        ({T0: OffsetAndMetadata("x", "", -1)}, ValueError, "offset='x'.* cannot be committed"),
        ({T0: OffsetAndMetadata(2**63, "", -1)}, ValueError, "cannot be committed"),
        ({T0: OffsetAndMetadata(1, "", 2**31)}, ValueError, "cannot be committed"),
    ],
)
def test_offsets_of_another_kind_are_named_and_leave_the_transaction_open(
    transactional, committed, offsets, error, words
):
    transactional.begin_transaction()
    transactional.send("t", b"a")
    with pytest.raises(error, match=words):
        transactional.send_offsets_to_transaction(offsets, "g")
    transactional.commit_transaction()
    assert committed() == [b"a"]


@pytest.mark.parametrize("idempotence", [True, False])
def test_a_producer_without_transactional_id_has_no_transactions(new_producer, idempotence):
    producer = new_producer(enable_idempotence=idempotence)
    for call in (
        producer.init_transactions,
        producer.begin_transaction,
        producer.commit_transaction,
        producer.abort_transaction,
        lambda: producer.send_offsets_to_transaction({}, "g"),
    ):
        with pytest.raises(IllegalStateError):
            call()


def test_the_next_instance_fences_the_one_before(transactional, new_producer, committed):
    transactional.begin_transaction()
    transactional.send("t", b"old").get(100)
    newer = new_producer(transactional_id="mine")
    newer.init_transactions()
    with pytest.raises(ProducerFencedError):
        transactional.commit_transaction()
    with pytest.raises(KafkaError, match="in an error state"):
        transactional.abort_transaction()
    with pytest.raises(KafkaError, match="previous transactional or"):
        transactional.send("t", b"zombie")
    newer.begin_transaction()
    newer.send("t", b"new")
    newer.commit_transaction()
    assert committed() == [b"new"]


def test_a_fenced_producers_records_fail(transactional, new_producer, level):
    new_producer(transactional_id="mine").init_transactions()
    transactional.begin_transaction()
    with pytest.raises(ProducerFencedError if level == 1 else InvalidProducerEpochError):
        transactional.send("t", b"zombie").get(100)
    with pytest.raises(KafkaError, match="in an error state"):
        transactional.commit_transaction()
    with pytest.raises(ProducerFencedError if level == 2 else KafkaError):
        transactional.abort_transaction()


def test_a_transaction_that_lasts_too_long_is_aborted_by_the_broker(broker, new_producer, committed, level):
    broker.create_topic("t", 1)
    producer = new_producer(transactional_id="slow", transaction_timeout_ms=2000)
    producer.init_transactions()
    producer.begin_transaction()
    producer.send("t", b"a").get(100)
    connection = connect(broker.bootstrap_servers, 100.0)
    until(lambda: connection.call("describe_transactions", ["slow"])["slow"].state == "CompleteAbort")
    with pytest.raises(ProducerFencedError if level == 1 else InvalidTxnStateError):  # as Kafka's clients
        producer.commit_transaction()
    assert committed() == []


def test_a_record_that_is_refused_has_to_be_answered_with_an_abort(broker, new_producer, committed):
    broker.create_topic("t", 1, {"max.message.bytes": "1000"})
    producer = new_producer(transactional_id="mine")
    producer.init_transactions()
    producer.begin_transaction()
    producer.send("t", b"a").get(100)
    with pytest.raises(MessageSizeTooLargeError):
        producer.send("t", b"x" * 2000).get(100)
    with pytest.raises(KafkaError, match="previous transactional or"):
        producer.send("t", b"b")
    with pytest.raises(KafkaError, match="in an error state"):
        producer.commit_transaction()
    producer.abort_transaction()
    producer.begin_transaction()
    producer.send("t", b"c")
    producer.commit_transaction()
    assert committed() == [b"c"]


def test_each_end_raises_the_epoch_and_no_partition_is_announced(
    broker, new_producer, committed, state, level, monkeypatch
):
    broker.create_topic("t", 2)
    producer = new_producer(transactional_id="mine")
    producer.init_transactions()
    asked = []
    monkeypatch.setattr(
        producer._client.broker,
        "add_partitions_to_transaction",
        lambda *args, real=producer._client.broker.add_partitions_to_transaction: (
            asked.append(args) or real(*args)
        ),
    )
    epochs = []
    for number in range(3):
        producer.begin_transaction()
        producer.send("t", b"%d" % number, partition=number % 2)
        producer.commit_transaction() if number != 1 else (producer.flush(), producer.abort_transaction())
        epochs.append(state())
    words = ["CompleteCommit", "CompleteAbort", "CompleteCommit"]
    assert epochs == list(zip(words, [0, 0, 0] if level == 1 else [1, 2, 3], strict=True))
    assert len(asked) == (3 if level == 1 else 0)
    assert committed() == [b"0", b"2"]


def test_a_producer_keeps_its_protocol_until_it_takes_over_its_id_again(
    transactional, new_producer, broker, committed, state, level
):
    other = FeatureUpdate(3 - level, UpgradeType.UPGRADE if level == 1 else UpgradeType.SAFE_DOWNGRADE)
    connection = connect(broker.bootstrap_servers, 100.0)
    assert connection.call("update_features", {"transaction.version": other}).error is None
    transactional.begin_transaction()
    transactional.send("t", b"old")
    transactional.commit_transaction()
    assert state() == ("CompleteCommit", level - 1)
    newer = new_producer(transactional_id="mine")
    newer.init_transactions()
    _, epoch = state()
    newer.begin_transaction()
    newer.send("t", b"new")
    newer.commit_transaction()
    assert state() == ("CompleteCommit", epoch + (level == 1))
    assert committed() == [b"new", b"old"]
