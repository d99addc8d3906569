"""Splitting a batch that the broker finds too large, as kafka-python does: in two, by the number of records.

The original stays what the futures of its records refer to; it is done when its parts are. A part that is
still too large is split again, until a single record is.
"""

from __future__ import annotations

from kafka.errors import MessageSizeTooLargeError, RecordListTooLargeError

from compat.kafka.producer._batches import Batch
from dafka.protocol.batch_reader import Columns, decode_batch
from dafka.protocol.batch_writer import encode_columns


def can_split(batch: Batch, error: Exception) -> bool:
    """Whether an error is one that smaller batches may not have."""
    return batch.count > 1 and isinstance(error, (MessageSizeTooLargeError, RecordListTooLargeError))


def split(batch: Batch) -> list[Batch]:
    """Two batches that stand for one; their outcomes become its outcome."""
    assert batch.content is not None
    columns = decode_batch(batch.content)
    middle = (batch.count + 1) // 2
    batch.parts = [
        _part(batch, columns.part(0, middle)),
        _part(batch, columns.part(middle, batch.count)),
    ]
    return batch.parts


def _part(batch: Batch, columns: Columns) -> Batch:
    queue = batch.queue
    part = Part(batch)
    part.count = len(columns.offsets)
    part.created = batch.created
    part.content = encode_columns(
        columns.timestamps, columns.keys, columns.values, columns.headers, compression=queue.compression
    )
    part.size = len(part.content)
    return part


class Part(Batch):
    """Some of the records of a batch."""

    __slots__ = ("_whole",)

    def __init__(self, whole: Batch) -> None:
        super().__init__(whole.queue, 0)
        self._whole = whole

    def resolve(self, base_offset: int, timestamp: int, error: BaseException | None) -> None:
        """Publish the outcome; the last part publishes that of the whole."""
        super().resolve(base_offset, timestamp, error)
        parts = self._whole.parts or []
        if all(part.done for part in parts):
            first = parts[0]
            failed = next((part.error for part in parts if part.error is not None), None)
            self._whole.resolve(first.base_offset, first.timestamp, failed)
