"""Consumers of a group whose assignment the broker computes: ``group_protocol="consumer"``."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
from kafka.errors import IncompatibleBrokerVersion
from timing import until

from compat.kafka import KafkaConsumer, KafkaProducer, TopicPartition
from compat.kafka.errors import (
    CommitFailedError,
    KafkaConfigurationError,
    UnreleasedInstanceIdError,
    UnsupportedAssignorError,
)
from compat.kafka.structs import OffsetAndMetadata
from dafka.broker.interface.consumer_groups import ConsumerHeartbeat
from tests.compat.consumer.members import PARTITIONS, Members, T, join, produce
from tests.compat.consumer.readers import Reader, Recorder, settled

NEW = {"group_protocol": "consumer"}


def group_state(consumer: KafkaConsumer) -> str:
    described = consumer._client.call(consumer._client.broker.describe_consumer_groups, ["g"])["g"]
    return described.state


def test_every_record_is_read_once_whatever_the_members_do(
    producer: KafkaProducer, new_reader: Callable[..., Reader]
) -> None:
    readers: list[Reader] = []
    expected: set[int] = set()

    def numbers() -> list[int]:
        return sorted(number for reader in readers for number in reader.read)

    def step(*members: Reader) -> None:
        until(lambda: settled([one.consumer for one in members], PARTITIONS))
        expected.update(produce(producer, len(expected), 240))
        until(lambda: len(numbers()) >= len(expected))

    readers += [new_reader(**NEW) for _ in range(2)]
    step(*readers)
    expected.update(produce(producer, len(expected), 600))
    readers.append(new_reader(**NEW))
    step(*readers)
    readers[0].leave()
    step(*readers[1:])
    assert set(numbers()) == expected
    assert len(numbers()) == len(expected)


def test_a_member_that_keeps_partitions_goes_on_reading_and_hears_of_the_others_only(
    new_member: Members,
) -> None:
    first, second = Recorder(name="first"), Recorder(name="second")
    one = new_member(listener=first, **NEW)
    join(one)
    other = new_member(listener=second, **NEW)
    join(one, other)
    assert first.told()[0] == ("assigned", set(range(PARTITIONS)))
    revoked = set().union(*(some for what, some in first.told() if what == "revoked"))
    assert len(revoked) == 6 and {"assigned", "revoked"} == {what for what, _ in first.told()}
    assert set().union(*(some for _, some in second.told())) == revoked
    other.close()
    join(one)
    assert second.told()[-1] == ("revoked", revoked)


def test_offsets_are_committed_before_partitions_are_given_up(
    producer: KafkaProducer, new_member: Members
) -> None:
    produce(producer, 0, 120)
    one = new_member(enable_auto_commit=True, auto_commit_interval_ms=100_000, **NEW)
    read = 0
    while read < 120:
        read += sum(map(len, one.poll(500).values()))
    other = new_member(**NEW)
    join(one, other)
    assert all(other.committed(partition) == 10 for partition in other.assignment())


def test_commits_carry_the_members_epoch_and_metadata_tells_it(
    producer: KafkaProducer, new_member: Members
) -> None:
    consumer = new_member(**NEW)
    with pytest.raises(CommitFailedError):
        consumer.commit({T[0]: OffsetAndMetadata(3, "", -1)})
    join(consumer)
    consumer.commit({T[0]: OffsetAndMetadata(3, "", -1)})
    assert consumer.committed(T[0]) == 3
    metadata = consumer.group_metadata()
    assert (metadata.group_id, metadata.generation_id) == ("g", 2) and metadata.member_id


def test_a_member_that_was_removed_loses_its_partitions_and_joins_again(new_member: Members) -> None:
    recorder = Recorder()
    consumer = new_member(listener=recorder, **NEW)
    join(consumer)
    member = consumer.group_metadata().member_id
    client = consumer._client
    client.call(client.broker.consumer_group_heartbeat, "g", ConsumerHeartbeat(member, -1))
    until(lambda: consumer.poll(10) is not None and ("lost", set(range(PARTITIONS))) in recorder.told())
    join(consumer)
    assert recorder.told()[-1] == ("assigned", set(range(PARTITIONS)))


def test_a_program_that_does_not_poll_is_taken_out_and_comes_back(new_member: Members) -> None:
    consumer = new_member(max_poll_interval_ms=300, **NEW)
    join(consumer)
    until(lambda: group_state(consumer) == "Empty")
    with pytest.raises(CommitFailedError):
        consumer.commit({T[0]: OffsetAndMetadata(3, "", -1)})
    join(consumer)


def test_subscriptions_change_and_patterns_find_topics_that_come_later(
    producer: KafkaProducer, new_member: Members
) -> None:
    consumer = new_member(subscribe=False, **NEW)
    consumer.subscribe(pattern="^(t|later)$")
    join(consumer)
    producer.send("later", b"x")
    producer.flush(30)
    until(lambda: consumer.poll(20) is not None and TopicPartition("later", 0) in consumer.assignment())
    consumer.unsubscribe()
    assert consumer.assignment() == set() and group_state(consumer) == "Empty"
    consumer.subscribe(["later"])
    until(lambda: consumer.poll(20) is not None and consumer.assignment() == {TopicPartition("later", 0)})
    consumer.subscribe(["t"])
    join(consumer)


def test_seek_and_pause_work_as_ever(producer: KafkaProducer, new_member: Members) -> None:
    produce(producer, 0, 24)
    consumer = new_member(**NEW)
    join(consumer)
    consumer.pause(*T[1:])
    consumer.seek(T[0], 1)
    (records,) = until(lambda: consumer.poll(100)).values()
    assert [int(one.value) for one in records] == [12]


def test_a_static_member_finds_its_partitions_again(new_member: Members) -> None:
    one = new_member(group_instance_id="i", **NEW)
    other = new_member(**NEW)
    join(one, other)
    mine = one.assignment()
    with pytest.raises(UnreleasedInstanceIdError):
        rival = new_member(group_instance_id="i", **NEW)
        until(lambda: rival.poll(100) is None)
    one.close(autocommit=False)
    back = new_member(group_instance_id="i", **NEW)
    until(lambda: back.poll(50) is not None and back.assignment() == mine)


@pytest.mark.parametrize(
    ("config", "error"),
    [
        ({"group_protocol": "newest"}, KafkaConfigurationError),
        ({"group_remote_assignor": "range"}, KafkaConfigurationError),
    ],
)
def test_settings_that_make_no_sense_are_refused(new_member: Members, config: Any, error: Any) -> None:
    with pytest.raises(error):
        new_member(**config)


def test_the_brokers_assignor_may_be_chosen(new_member: Members) -> None:
    one, other = (new_member(group_remote_assignor="range", **NEW) for _ in range(2))
    join(one, other)
    assert sorted(one.assignment()) in (T[:6], T[6:])
    with pytest.raises(UnsupportedAssignorError, match="sticky"):
        until(lambda: new_member(group_remote_assignor="sticky", **NEW).poll(100) is None)


def test_a_cluster_without_such_groups_says_so(new_member: Members, monkeypatch: Any) -> None:
    consumer = new_member(**NEW)

    def unknown(*args: Any) -> Any:
        raise IncompatibleBrokerVersion("no ConsumerGroupHeartbeat")

    monkeypatch.setattr(consumer._client.broker, "consumer_group_heartbeat", unknown, raising=False)
    began = time.monotonic()
    with pytest.raises(IncompatibleBrokerVersion):
        while time.monotonic() < began + 10:
            consumer.poll(100)
