"""Consumers of both protocols in one group, which changes its own with them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from timing import until

from compat.kafka import KafkaConsumer, KafkaProducer
from compat.kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from compat.kafka.coordinator.assignors.range import RangePartitionAssignor
from tests.compat.consumer.members import PARTITIONS, Members, join, produce
from tests.compat.consumer.readers import Reader, settled

NEW = {"group_protocol": "consumer"}
OFTEN = {"heartbeat_interval_ms": 50}


def type_of(consumer: KafkaConsumer) -> str:
    (listed,) = consumer._client.call(consumer._client.broker.list_groups)
    return str(listed.type.value)


@pytest.mark.parametrize(
    "assignor", [RangePartitionAssignor, CooperativeStickyAssignor], ids=lambda one: one.name
)
def test_every_record_is_read_once_while_a_group_goes_there_and_back(
    producer: KafkaProducer, new_reader: Callable[..., Reader], assignor: Any
) -> None:
    classic = {"partition_assignment_strategy": [assignor], **OFTEN}
    readers: list[Reader] = []
    expected: set[int] = set()

    def numbers() -> list[int]:
        return sorted(number for reader in readers for number in reader.read)

    def step(kind: str, *members: Reader) -> None:
        until(lambda: settled([one.consumer for one in members], PARTITIONS), 60)
        assert type_of(members[0].consumer) == kind
        expected.update(produce(producer, len(expected), 120))
        until(lambda: len(numbers()) >= len(expected), 60)

    readers += [new_reader(**classic), new_reader(**classic)]
    step("classic", *readers)
    readers.append(new_reader(**NEW))
    step("consumer", *readers)
    readers.append(new_reader(**classic))  # it joins a group that has changed
    step("consumer", *readers)
    readers[0].leave()
    step("consumer", *readers[1:])
    readers[2].leave()  # the last one with the newer protocol
    step("classic", readers[1], readers[3])
    readers.append(new_reader(**NEW))
    step("consumer", readers[1], readers[3], readers[4])
    readers[1].leave()
    readers[3].leave()
    step("consumer", readers[4])
    assert set(numbers()) == expected and len(numbers()) == len(expected)


def test_a_classic_member_that_dies_is_removed_and_others_read_its_partitions(new_member: Members) -> None:
    classic = new_member(session_timeout_ms=400, **OFTEN)
    one = new_member(**NEW)
    join(classic, one)
    classic._client.hub.run(classic._member.session._stop_heart)
    until(lambda: one.poll(20) is not None and len(one.assignment()) == PARTITIONS)
