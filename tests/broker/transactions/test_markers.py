"""Markers that somebody asks for by hand."""

from __future__ import annotations

import kafka.errors as errors
import pytest
from broker.clients import Client
from broker.transactions.transactional import Producer, committed, fetch, state_of

from dafka.broker.records import producer_state
from dafka.log import LogWriteError

HERE, NOWHERE = ("t", 0), ("t", 9)


@pytest.fixture
def producer(client: Client) -> Producer:
    client.create("t", 3)
    return Producer(client, raising=True)


def mark(producer, commit, *partitions, epoch=None, producer_id=None, version=0):
    who = producer.producer_id if producer_id is None else producer_id
    at = producer.epoch if epoch is None else epoch
    return producer.client.call("write_markers", who, at, commit, partitions or [HERE], version)


def test_a_marker_ends_what_a_producer_has_open_in_a_partition(client, producer):
    producer.send(b"a")
    producer.send(b"b", ("t", 1))
    assert fetch(client).last_stable_offset == 0
    assert mark(producer, False, HERE, NOWHERE, ("none", 0)) == {
        HERE: None,
        NOWHERE: errors.UnknownTopicOrPartitionError,
        ("none", 0): errors.UnknownTopicOrPartitionError,
    }
    assert fetch(client).last_stable_offset == fetch(client).high_watermark == 2
    assert committed(client) == []
    assert fetch(client, partition=1).last_stable_offset == 0
    assert state_of(client) == "Ongoing"
    producer.commit()
    assert committed(client) == []
    assert fetch(client, partition=1).last_stable_offset == 2


def test_a_marker_may_commit(client, producer):
    producer.send(b"a")
    assert mark(producer, True) == {HERE: None}
    assert committed(client) == [b"a"]


def test_a_marker_of_an_earlier_epoch_is_refused(client, producer):
    producer.send(b"a")
    producer.commit()
    assert mark(producer, False, epoch=0) == {HERE: errors.InvalidProducerEpochError}
    assert mark(producer, False, epoch=-2, producer_id=9999) == {HERE: errors.InvalidProducerEpochError}
    assert mark(producer, False, epoch=1) == {HERE: None}


@pytest.mark.parametrize("nobodys", [{"epoch": -1}, {"producer_id": -1}, {"version": -1}])
def test_a_marker_that_is_nobodys_is_an_unknown_error_where_it_would_be_written(client, producer, nobodys):
    assert mark(producer, False, HERE, NOWHERE, **nobodys) == {
        HERE: errors.UnknownError,
        NOWHERE: errors.UnknownTopicOrPartitionError,
    }
    assert fetch(client).high_watermark == 0


def test_a_marker_of_version_2_is_above_the_records_unless_it_comes_again(producer):
    late = {HERE: errors.InvalidProducerEpochError}
    producer.send(b"a")
    assert mark(producer, False, version=2) == late
    for _ in range(2):
        assert mark(producer, False, epoch=1, version=2) == {HERE: None}
    assert mark(producer, False, epoch=0, version=2) == late


def test_a_marker_fences_the_epochs_before_its_own(client, producer):
    assert mark(producer, False, epoch=3) == {HERE: None}
    producer.epoch = 2
    assert producer.write(b"late").error is errors.InvalidProducerEpochError


def test_unknown_producers_are_not_taken_without_end(client, producer, monkeypatch):
    assert mark(producer, False, producer_id=9998) == {HERE: None}
    monkeypatch.setattr(producer_state, "PRODUCERS_MAX", 1)
    assert mark(producer, False, producer_id=9999) == {HERE: errors.PolicyViolationError}
    assert mark(producer, False, producer_id=9998) == {HERE: None}


def test_a_marker_that_cannot_be_written_is_an_error(client, producer, monkeypatch):
    def fail(*args):
        raise LogWriteError(client.core.log.path, "no space")

    producer.send(b"a")
    with monkeypatch.context() as patch:
        patch.setattr(client.core.log._storage, "commit", fail)
        assert mark(producer, False) == {HERE: errors.KafkaStorageError}
    producer.commit()
    assert committed(client) == [b"a"]
