"""Transactions as a kafka-python program has them: states, errors, and exactly-once processing with kills."""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap
import threading

import forking
import pytest
from kafka.errors import (
    CommitFailedError,
    CoordinatorNotAvailableError,
    IllegalStateError,
    InvalidProducerEpochError,
    InvalidTxnStateError,
    KafkaError,
    KafkaTimeoutError,
    MessageSizeTooLargeError,
    ProducerFencedError,
    TransactionAbortableError,
    TransactionAbortedError,
    UnknownProducerIdError,
)

from compat.kafka import KafkaConsumer, KafkaProducer, TopicPartition
from compat.kafka.structs import ConsumerGroupMetadata, OffsetAndMetadata
from dafka.broker import connect
from dafka.broker.interface.broker import Produced
from dafka.broker.interface.features import FeatureUpdate, UpgradeType
from dafka.broker.interface.transactions import ProducerIdentity
from dafka.testing import TestBroker
from tests.compat.patient import PatientConsumer

T0 = TopicPartition("t", 0)


@pytest.fixture(params=[1, 2], ids=["announced", "raising"])
def level(request, broker):
    """Either protocol of transactions: that of the level of transaction.version."""
    connection = connect(broker.bootstrap_servers, 100.0)
    update = FeatureUpdate(request.param, UpgradeType.SAFE_DOWNGRADE)
    if request.param != connection.call("features").levels["transaction.version"]:
        assert connection.call("update_features", {"transaction.version": update}).error is None
    return request.param


@pytest.fixture
def state(broker):
    """State and epoch of a transactional id."""
    connection = connect(broker.bootstrap_servers, 100.0)

    def look(name: str = "mine") -> tuple[str, int]:
        found = connection.call("describe_transactions", [name])[name]
        return found.state, found.epoch

    return look


@pytest.fixture
def transactional(new_producer, broker, level):
    broker.create_topic("t", 2)
    producer = new_producer(transactional_id="mine")
    producer.init_transactions()
    return producer


@pytest.fixture
def committed(new_consumer):
    """The values that a reader of committed records gets from the beginning."""

    def read(**config: object) -> list[bytes]:
        consumer = new_consumer("t", isolation_level="read_committed", **config)
        return sorted(record.value for record in consumer)

    return read


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
    broker.wait_until(
        lambda: connection.call("describe_transactions", ["slow"])["slow"].state == "CompleteAbort", 100
    )
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


def test_no_offsets_are_nothing_to_commit(transactional, state):
    transactional.begin_transaction()
    transactional.send_offsets_to_transaction({}, "g")
    assert state() == ("Empty", 0)
    transactional.commit_transaction()


# -- offsets ------------------------------------------------------------------------------------


def test_offsets_are_the_groups_when_the_transaction_commits(transactional, new_consumer, broker):
    offsets = {T0: OffsetAndMetadata(5, "note", -1)}
    transactional.begin_transaction()
    transactional.send_offsets_to_transaction(offsets, "g")
    assert broker.committed("g") == {}
    transactional.abort_transaction()
    assert broker.committed("g") == {}
    transactional.begin_transaction()
    transactional.send_offsets_to_transaction(offsets, ConsumerGroupMetadata("g", -1, "", None))
    transactional.commit_transaction()
    assert new_consumer(group_id="g").committed(T0) == 5


def test_a_reader_of_committed_records_waits_for_offsets_that_a_transaction_commits(
    transactional, new_consumer
):
    transactional.begin_transaction()
    transactional.send_offsets_to_transaction({T0: OffsetAndMetadata(5, "", -1)}, "g")
    reader = new_consumer(group_id="g", isolation_level="read_committed")
    with pytest.raises(KafkaTimeoutError):
        reader.committed(T0, timeout_ms=300)
    waiting = threading.Timer(0.2, transactional.commit_transaction)
    waiting.start()
    assert reader.committed(T0, timeout_ms=100_000) == 5
    waiting.join()


def test_offsets_of_a_consumer_that_the_group_has_lost_abort_the_transaction(transactional):
    transactional.begin_transaction()
    gone = ConsumerGroupMetadata("g", 3, "gone", None)
    with pytest.raises(CommitFailedError):
        transactional.send_offsets_to_transaction({T0: OffsetAndMetadata(5, "", -1)}, gone)
    with pytest.raises(KafkaError, match="in an error state"):
        transactional.commit_transaction()
    transactional.abort_transaction()


@pytest.mark.parametrize(
    "group, error", [(5, TypeError), (ConsumerGroupMetadata("g", 3, "", None), ValueError)]
)
def test_groups_that_are_none(transactional, group, error):
    transactional.begin_transaction()
    with pytest.raises(error):
        transactional.send_offsets_to_transaction({}, group)


# -- exactly once -------------------------------------------------------------------------------

PROCESSOR = """
    import sys
    from compat.kafka import KafkaConsumer, KafkaProducer, TopicPartition
    from compat.kafka.structs import OffsetAndMetadata
    from dafka import Broker

    with Broker(sys.argv[1]) as broker:
        consumer = KafkaConsumer(
            "in", bootstrap_servers=broker.bootstrap_servers, group_id="g", enable_auto_commit=False,
            auto_offset_reset="earliest", isolation_level="read_committed", max_poll_records=7,
        )
        producer = KafkaProducer(bootstrap_servers=broker.bootstrap_servers, transactional_id="processor")
        producer.init_transactions()
        while True:
            for partition, records in consumer.poll(1000).items():
                producer.begin_transaction()
                for record in records:
                    producer.send("out", b"done " + record.value, partition=partition.partition)
                    print("sent", flush=True)
                end = OffsetAndMetadata(records[-1].offset + 1, "", -1)
                producer.send_offsets_to_transaction({partition: end}, consumer.group_metadata())
                producer.commit_transaction()
                print("committed", flush=True)
"""


def test_each_record_is_processed_once_although_the_process_is_killed_again_and_again(tmp_path):
    count, kills = 300, 4
    with TestBroker(tmp_path) as broker:
        broker.create_topic("in", 2)
        broker.create_topic("out", 2)
        with KafkaProducer(bootstrap_servers=broker.bootstrap_servers) as producer:
            for number in range(count):
                producer.send("in", b"%d" % number, partition=number % 2)
    for attempt in range(kills):
        child = forking.Popen(
            [sys.executable, "-c", textwrap.dedent(PROCESSOR), str(tmp_path)],
            stdout=subprocess.PIPE,
            text=True,
            env={"PYTHONPATH": ":".join(sys.path)},
        )
        assert child.stdout is not None
        with child.stdout as lines:
            for number, _ in enumerate(lines):
                if number == 23 + 5 * attempt:  # in the middle of a transaction, or at its end
                    break
            child.send_signal(signal.SIGKILL)
        assert child.wait() == -signal.SIGKILL
    # The rest without a kill, in this process.
    with TestBroker(tmp_path) as broker:
        servers = broker.bootstrap_servers
        consumer = KafkaConsumer(
            "in",
            bootstrap_servers=servers,
            group_id="g",
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            isolation_level="read_committed",
        )
        producer = KafkaProducer(bootstrap_servers=servers, transactional_id="processor")
        producer.init_transactions()
        while sum(broker.lag("g", "in").values()):
            for partition, records in consumer.poll(2000).items():
                producer.begin_transaction()
                for record in records:
                    producer.send("out", b"done " + record.value, partition=partition.partition)
                end = OffsetAndMetadata(records[-1].offset + 1, "", -1)
                producer.send_offsets_to_transaction({partition: end}, consumer.group_metadata())
                producer.commit_transaction()
        producer.close()
        consumer.close()
        reader = PatientConsumer(
            "out",
            bootstrap_servers=servers,
            auto_offset_reset="earliest",
            isolation_level="read_committed",
            consumer_timeout_ms=500,
        )
        values = [record.value for record in reader]
        reader.close()
    assert sorted(values) == sorted(b"done %d" % number for number in range(count))
