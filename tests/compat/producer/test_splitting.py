"""A batch that the broker finds too large is split in two."""

from __future__ import annotations

from compat.kafka.errors import (
    MessageSizeTooLargeError,
    NotEnoughReplicasError,
    RecordListTooLargeError,
)
from compat.kafka.producer._batches import PartitionQueue
from compat.kafka.producer._splitting import can_split, split
from dafka.protocol.batch_reader import decode_batch
from tests.compat.producer.queues import filled


def test_records_of_a_split_batch_are_those_of_its_parts(queue: PartitionQueue) -> None:
    batch = filled(queue, 3)
    first, second = split(batch)
    assert [batch.part(index) for index in range(3)] == [(first, 0), (first, 1), (second, 0)]
    first.resolve(5, -1, None)
    assert not batch.done
    second.resolve(-1, -1, MessageSizeTooLargeError())
    assert batch.done
    assert [type(batch.error_of(index)) for index in range(3)] == [
        type(None),
        type(None),
        MessageSizeTooLargeError,
    ]


def test_batches_that_are_too_large_are_split_unless_they_have_one_record(queue: PartitionQueue) -> None:
    several, one = filled(queue, 2), filled(queue, 1)
    for error in (MessageSizeTooLargeError(), RecordListTooLargeError()):
        assert can_split(several, error)
        assert not can_split(one, error)
    assert not can_split(several, NotEnoughReplicasError())


def test_the_parts_have_the_records_in_their_order_and_the_age_of_the_batch(queue: PartitionQueue) -> None:
    batch = filled(queue, 3)
    whole = decode_batch(batch.content)
    parts = split(batch)
    assert [part.count for part in parts] == [2, 1]
    assert {part.created for part in parts} == {batch.created}
    assert [part.size for part in parts] == [len(part.content) for part in parts]
    columns = [decode_batch(part.content) for part in parts]
    assert [value for one in columns for value in one.values] == whole.values
    assert [time for one in columns for time in one.timestamps] == whole.timestamps


def test_a_part_that_is_still_too_large_is_split_again(queue: PartitionQueue) -> None:
    batch = filled(queue, 3)
    first, second = split(batch)
    parts = [*split(first), second]
    for offset, part in enumerate(parts):
        part.resolve(offset, -1, None)
    assert batch.done
    assert (batch.base_offset, batch.error) == (0, None)
