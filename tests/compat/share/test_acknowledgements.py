"""Acknowledgements of a share consumer, and what has become of them."""

from __future__ import annotations

from typing import Any

import pytest
from kafka.errors import (
    IllegalStateError,
    InvalidRecordStateError,
    KafkaTimeoutError,
    UnknownTopicIdError,
)
from kafka.structs import TopicPartition

from compat.kafka.share import AcknowledgeType
from dafka.broker.interface.broker import TopicSpec
from dafka.testing import TestBroker
from tests.compat.share.scene import Scene, counts, poll, until, values


def test_explicit_acknowledgements(scene: Scene) -> None:
    scene.send(b"a", b"b", b"c", b"d")
    consumer = scene.consumer(share_acknowledgement_mode="explicit")
    (records,) = poll(consumer).values()
    with pytest.raises(IllegalStateError, match="must be acknowledged"):
        consumer.poll()
    consumer.acknowledge(records[0], AcknowledgeType.REJECT)
    types = (AcknowledgeType.ACCEPT, AcknowledgeType.RELEASE, AcknowledgeType.REJECT, AcknowledgeType.RENEW)
    for record, type_ in zip(records, types, strict=True):
        consumer.acknowledge(record, type_)
    with pytest.raises(ValueError, match="REJECT"):
        consumer.acknowledge(records[3], 7)
    assert list(consumer.commit().values()) == [None]
    with pytest.raises(IllegalStateError, match="cannot be acknowledged"):
        consumer.acknowledge(records[0])
    assert poll(consumer) == {TopicPartition("jobs", 0): [records[3]]}
    consumer.acknowledge(records[3])
    again = poll(consumer)
    assert (values(again), counts(again)) == ([b"b"], [2])
    assert scene.lag() == 1


def test_records_that_are_renewed_are_returned_by_the_next_poll_until_they_are_acknowledged(
    scene: Scene,
) -> None:
    scene.send(b"a", b"b")
    consumer = scene.consumer(share_acknowledgement_mode="explicit")
    found = poll(consumer)
    assert values(found) == [b"a", b"b"]
    for _ in range(3):
        ((partition, (one, *others)),) = found.items()
        consumer.acknowledge(one, AcknowledgeType.RENEW)
        for other in others:
            consumer.acknowledge(other)
        found = poll(consumer)
        assert found == {partition: [one]}
    assert scene.lag() == 1
    consumer.acknowledge(one)
    assert consumer.poll(0) == {}
    assert scene.lag() == 0


def test_a_record_that_could_not_be_renewed_is_another_members(scene: Scene) -> None:
    scene.configure("g", share_record_lock_duration_ms="30")
    scene.send(b"a")
    told: list[Any] = []
    slow = scene.consumer(share_acknowledgement_mode="explicit")
    slow.set_acknowledgement_commit_callback(lambda offsets, error: told.append(type(error)))
    ((record,),) = poll(slow).values()
    scene.configure("g", share_record_lock_duration_ms="60000")
    other = scene.consumer()
    assert counts(poll(other)) == [2]
    slow.acknowledge(record, AcknowledgeType.RENEW)
    assert slow.poll(20) == {}
    until(lambda: slow.poll(20) == {} and told)
    assert told == [InvalidRecordStateError]


def test_records_of_a_topic_that_was_made_again_are_acknowledged_under_the_id_of_the_old_one(
    scene: Scene,
) -> None:
    scene.send(b"old")
    consumer = scene.consumer(share_acknowledgement_mode="explicit")
    ((partition, (old,)),) = poll(consumer).items()
    scene.connection.call("delete_topics", ["jobs"])
    scene.connection.call("create_topics", {"jobs": TopicSpec(1)})
    scene.send(b"new")
    consumer.subscribe(["jobs", "others"])  # so that there is a heartbeat at once
    until(lambda: len(consumer._member._names) == 2)
    consumer.acknowledge(old)
    assert [type(error) for error in consumer.commit().values()] == [UnknownTopicIdError]
    ((partition, (new,)),) = poll(consumer).items()
    assert (new.value, new.delivery_count) == (b"new", 1)
    consumer.acknowledge(new)
    assert consumer.commit() == {partition: None}
    assert scene.lag() == 0


def test_outcomes_of_acknowledgements_reach_the_callback(scene: Scene) -> None:
    scene.configure("g", share_record_lock_duration_ms="30")
    scene.send(b"a")
    told: list[Any] = []
    slow = scene.consumer()
    slow.set_acknowledgement_commit_callback(lambda offsets, error: told.append((offsets, error)))
    poll(slow)
    other = scene.consumer()
    assert counts(poll(other)) == [2]
    (error,) = slow.commit().values()
    assert isinstance(error, InvalidRecordStateError)
    ((offsets, failed),) = told
    assert (list(offsets.values()), type(failed)) == ([{0}], InvalidRecordStateError)


def test_a_callback_that_fails_costs_no_records(scene: Scene, caplog: pytest.LogCaptureFixture) -> None:
    scene.send(b"a")
    consumer = scene.consumer()
    poll(consumer)

    def fail(*outcome: object) -> None:
        raise ZeroDivisionError

    consumer.set_acknowledgement_commit_callback(fail)
    scene.send(b"b")
    assert values(poll(consumer)) == [b"b"]
    assert "callback of acknowledgements has failed" in caplog.text


def test_a_commit_without_waiting(scene: Scene) -> None:
    scene.send(b"a")
    consumer = scene.consumer()
    poll(consumer)
    consumer.commit_async()
    until(lambda: scene.lag() == 0)


def test_a_commit_that_is_not_answered_is_an_error_and_its_outcome_told_later(remote: bool) -> None:
    with TestBroker() as broker:
        scene = Scene(broker, remote)
        scene.send(b"a")
        consumer = scene.consumer()
        poll(consumer)
        told: list[Any] = []
        consumer.set_acknowledgement_commit_callback(lambda *outcome: told.append(outcome))
        late = pytest.raises(KafkaTimeoutError, match="did not answer ShareAcknowledge within 50 ms")
        with broker.hang(), late:
            consumer.commit(50)
        until(lambda: consumer.poll(20) == {} and told)
        assert told == [({TopicPartition("jobs", 0): {0}}, None)]
        consumer.close()


def test_the_duration_of_locks_is_known_after_a_fetch(scene: Scene) -> None:
    scene.configure("g", share_record_lock_duration_ms="20000")
    scene.send(b"a")
    consumer = scene.consumer()
    assert consumer.acquisition_lock_timeout_ms() is None
    poll(consumer)
    assert consumer.acquisition_lock_timeout_ms() == 20_000
