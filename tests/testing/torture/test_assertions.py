"""Each assertion holds where it should, and fails where it should."""

from __future__ import annotations

import pytest
from kafka.structs import OffsetAndMetadata, TopicPartition

from compat.kafka import KafkaConsumer, KafkaProducer
from dafka.testing import chaos
from dafka.testing.torture.history import History

IN = TopicPartition("in", 0)


@pytest.fixture
def broker():
    with chaos.plan([]) as one:
        one.preload("in", [b"a", b"b", b"c"])
        yield one


@pytest.fixture
def write(broker):
    with KafkaProducer(bootstrap_servers=broker.bootstrap_servers) as producer:
        yield lambda *keys: [producer.send("out", key=key).get(60) for key in keys]


@pytest.fixture
def commit(broker):
    consumer = KafkaConsumer(
        bootstrap_servers=broker.bootstrap_servers, group_id="g", enable_auto_commit=False
    )
    consumer.assign([IN])
    yield lambda offset: consumer.commit({IN: OffsetAndMetadata(offset, "", -1)})
    consumer.close()


def test_at_least_once(broker, write):
    write(b"a", b"c", b"c")
    with pytest.raises(AssertionError, match=r"record 1 of in-0 \(b'b'\) was not processed"):
        broker.assert_processed_at_least_once("in", "out")
    broker.assert_processed_at_least_once("in", "out", lambda one: None if one.value == b"b" else one.value,
                                          lambda one: one.key)  # fmt: skip
    write(b"b")
    broker.assert_processed_at_least_once("in", "out")


def test_exactly_once(broker, write):
    write(b"a", b"b", b"c")
    broker.assert_processed_exactly_once("in", "out")
    write(b"b")
    with pytest.raises(
        AssertionError, match=r"(?s)record 3 of out-0 \(b'b'\) is one too many.*produce out-0 #4 \[3\]"
    ):
        broker.assert_processed_exactly_once("in", "out")


def test_aborted_records_are_not_there(broker):
    with KafkaProducer(bootstrap_servers=broker.bootstrap_servers, transactional_id="tx") as producer:
        producer.init_transactions()
        for end in (producer.abort_transaction, producer.commit_transaction):
            producer.begin_transaction()
            for key in (b"a", b"b", b"c"):
                producer.send("out", key=key)
            producer.flush()
            if end == producer.abort_transaction:
                end()
                with pytest.raises(AssertionError, match="was not processed"):
                    broker.assert_processed_at_least_once("in", "out")
            else:
                end()
    broker.assert_processed_exactly_once("in", "out")


def test_order(broker, write):
    write(b"a", b"b", b"a", b"b", b"c")
    broker.assert_in_order("in", "out")


def test_another_order(broker, write):
    write(b"a", b"c", b"b")
    with pytest.raises(AssertionError, match=r"\(b'c'\) was processed before record 1 of in-0 \(b'b'\)"):
        broker.assert_in_order("in", "out")
    broker.assert_in_order("in", "out", by=lambda record: record.value)


def test_commits_behind_what_was_processed(broker, write, commit):
    write(b"a")
    commit(1)
    write(b"b", b"c")
    commit(3)
    broker.assert_no_commit_before_processing("g", "out")
    broker.assert_nothing_left_behind("g", "in")


def test_a_commit_before_processing(broker, write, commit):
    write(b"a")
    commit(2)
    write(b"b")
    with pytest.raises(
        AssertionError, match=r"(?s)\(b'b'\) was committed before it was processed.*commit g #1 in-0@2"
    ):
        broker.assert_no_commit_before_processing("g", "out")
    broker.assert_no_commit_before_processing("another", "out")
    with pytest.raises(AssertionError, match="1 of in-0"):
        broker.assert_nothing_left_behind("g", "in")


def test_a_history_without_its_beginning_proves_nothing(broker, write):
    broker._chaos.history = History(kept=1)
    write(b"a", b"b")
    with pytest.raises(AssertionError, match="too long"):
        broker.assert_no_commit_before_processing("g", "out")
