"""The future that ``send`` returns.

It is kafka-python's ``FutureRecordMetadata`` by type and by interface, but it has no lock, no event and
no lists: it points at its batch (``_produce_future``) and knows its record's place and sizes (``args``,
the same six values as in kafka-python). Everything else is computed from the batch when asked for.
Making one is a large part of ``send``, so there is no constructor.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from kafka.errors import IllegalStateError, KafkaTimeoutError
from kafka.producer.future import FutureRecordMetadata, RecordMetadata
from kafka.structs import TopicPartition

from compat.kafka.producer._batches import NANOSECONDS, Batch, PartitionQueue, run_callback


def _nothing(outcome: Any) -> None:
    return None


class RecordFuture(FutureRecordMetadata):
    """The result of one ``send``: a ``RecordMetadata``, or the exception that became of it."""

    __slots__ = ()
    _produce_future: Batch
    # kafka-python's six values, in its own field, but with the timestamp in nanoseconds, or None.
    _place: tuple[int, int | None, None, int, int, int] = FutureRecordMetadata.args

    # Whoever makes one sets the two fields: a constructor in Python takes as long as half of ``send``.
    __init__ = object.__init__

    @property
    def args(self) -> tuple[int, int | None, None, int, int, int]:
        """Its place in the batch, its timestamp in ms, its checksum, which nobody computes any more, and the
        octets of its key, its value and its headers."""
        index, timestamp, checksum, key_size, value_size, header_size = self._place
        milliseconds = None if timestamp is None else timestamp // NANOSECONDS
        return index, milliseconds, checksum, key_size, value_size, header_size

    @property
    def is_done(self) -> bool:
        """Whether the record was acknowledged, or failed."""
        return self._produce_future.done

    @property
    def exception(self) -> BaseException | None:
        """Why it failed, or None."""
        batch = self._produce_future
        return batch.error_of(self._place[0]) if batch.done else None

    @property
    def value(self) -> RecordMetadata | None:
        """The ``RecordMetadata``, or None if the record failed or is still under way."""
        batch = self._produce_future
        index, timestamp, checksum, key_size, value_size, header_size = self.args
        if batch.parts is not None and batch.done:
            batch, index = batch.part(index)
        if not batch.done or batch.error is not None:
            return None
        partition = batch.queue.partition
        return RecordMetadata(
            partition[0],
            partition[1],
            partition,
            batch.base_offset + index if batch.base_offset != -1 else -1,
            timestamp if batch.timestamp == -1 else batch.timestamp,
            checksum,
            key_size,
            value_size,
            header_size,
        )

    def get(self, timeout: float | None = None) -> RecordMetadata:
        """Wait for the record's acknowledgement, at most ``timeout`` seconds, and return its metadata.

        Raises:
            KafkaTimeoutError: it did not come in time.
            IllegalStateError: called from a callback for a record that is still under way.
        """
        batch = self._produce_future
        if not batch.done and not batch.wait(timeout):
            raise KafkaTimeoutError(f"Timeout after waiting for {timeout} secs.")
        if batch.error is not None or batch.parts is not None:
            error = batch.error_of(self._place[0])
            if error is not None:
                raise error
        return self.value

    def add_callback(self, f: Callable[..., Any], *args: Any, **kwargs: Any) -> RecordFuture:
        """Call ``f(*args, metadata, **kwargs)`` when the record is acknowledged; at once if it is."""
        return self._add_cb_eb(functools.partial(f, *args, **kwargs) if args or kwargs else f, _nothing)

    def add_errback(self, f: Callable[..., Any], *args: Any, **kwargs: Any) -> RecordFuture:
        """Call ``f(*args, exception, **kwargs)`` when the record fails; at once if it has."""
        return self._add_cb_eb(_nothing, functools.partial(f, *args, **kwargs) if args or kwargs else f)

    def _add_cb_eb(self, cb: Callable[[Any], Any], eb: Callable[[Any], Any]) -> RecordFuture:
        batch = self._produce_future
        if not batch.call_back(self._place[0], self, cb, eb):
            error = self.exception
            if error is None:
                raised = run_callback(cb, self.value, "callback")
            else:
                raised = run_callback(eb, error, "errback")
            if raised is not None and self.error_on_callbacks:
                raise raised
        return self

    def success(self, value: Any) -> Any:
        raise IllegalStateError("only the producer decides what becomes of a record")

    def failure(self, e: Any) -> Any:
        raise IllegalStateError("only the producer decides what becomes of a record")

    def rebind(self, new_produce_future: Any, new_batch_index: int) -> None:
        raise IllegalStateError("a record stays in its batch")


def failed_future(
    topic: str, partition: int | None, error: Exception, sizes: tuple[int, int, int]
) -> RecordFuture:
    """A future that has failed before there was a partition to send to."""
    batch = Batch(PartitionQueue(None, TopicPartition(topic, partition), 0, None, None), 0)  # type: ignore[arg-type]
    batch.error = error
    batch.done = True
    future: RecordFuture = RecordFuture()
    future._produce_future = batch
    future._place = (-1, None, None, *sizes)
    return future
