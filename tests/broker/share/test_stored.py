"""The stored form of a share partition, and reading it again."""

from __future__ import annotations

import struct

import pytest
from broker.share.taking import acquire

from dafka.broker.share.acquisition import Terms
from dafka.broker.share.partition import Acknowledged, LogBatch, SharePartition
from dafka.broker.share.runs import RecordState
from dafka.broker.share.stored import NO_START, Stored, change, is_stored, restored, snapshot

TERMS = Terms()
AVAILABLE, ACKNOWLEDGED = RecordState.AVAILABLE, RecordState.ACKNOWLEDGED


def acquired() -> SharePartition:
    partition = SharePartition(100)
    acquire(partition, 0.0, "a", 100, [LogBatch(100, 119)], TERMS, records=20)
    return partition


def test_a_partition_that_nobody_has_read_has_no_start() -> None:
    assert restored([snapshot(3, None)]) == Stored(3, NO_START, [])
    assert restored([]) is None
    assert restored([change(3, acquired(), [])]) is None  # without the snapshot before it


def test_acquired_records_are_stored_as_if_they_had_not_been() -> None:
    assert restored([snapshot(0, acquired())]) == Stored(0, 100, [(100, 119, AVAILABLE, 0)])


def test_changes_take_the_place_of_what_was_there() -> None:
    partition = acquired()
    values = [snapshot(1, partition)]
    for first in (105, 103, 100):
        partition.acknowledge(1.0, "a", [Acknowledged(first, first, [1])], TERMS)
        values.append(change(1, partition, partition.changed))
        partition.changed = []
    found = restored(values)
    assert found is not None
    assert (found.state_epoch, found.start) == (1, 100)  # that tools see, before the last change
    again = SharePartition(0)
    again.restore(found.start, found.runs)
    assert [(run.first, run.last, run.state) for run in again.runs] == [
        (101, 102, AVAILABLE),
        (103, 103, ACKNOWLEDGED),
        (104, 104, AVAILABLE),
        (105, 105, ACKNOWLEDGED),
        (106, 119, AVAILABLE),
    ]
    assert restored([*values, snapshot(1, partition)]) == restored([snapshot(1, partition)])


def test_a_change_of_few_records_is_small() -> None:
    partition = acquired()
    partition.acknowledge(1.0, "a", [Acknowledged(110, 110, [1])], TERMS)
    assert len(change(0, partition, partition.changed)) < 40


def test_a_start_that_nobody_has_settled_is_stored_and_not_told() -> None:
    partition = acquired()
    partition.told = None
    values = [snapshot(1, partition)]
    found = restored(values)
    assert found is not None
    assert (found.start, found.told, found.settled) == (100, NO_START, False)
    assert found.revived().told is None
    partition.acknowledge(1.0, "a", [Acknowledged(100, 100, [1])], TERMS)
    found = restored([*values, change(1, partition, partition.changed)])
    assert found is not None
    assert (found.start, found.told, found.revived().start) == (100, 100, 101)


@pytest.mark.parametrize(
    "value",
    [
        b"",
        "text",
        snapshot(0, None) + b"1",
        struct.pack(">?iq", True, -1, 0),
        struct.pack(">?iqqqbh", True, 0, 0, 5, 4, 0, 1),
        struct.pack(">?iqqqbh", True, 0, 0, -5, 4, 0, 1),
        struct.pack(">?iqqqbh", True, 0, 0, 4, 4, 1, 1),
        struct.pack(">?iqqqbh", True, 0, 0, 4, 4, 0, -1),
    ],
)
def test_other_values_are_not_rows_of_it(value: object) -> None:
    assert not is_stored(value)
