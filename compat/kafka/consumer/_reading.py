"""Handing out a consumer's records: what its ``poll`` and its iteration do.

Iterating hands out a *chunk*, the rows of (part of) one batch, through a C iterator; what happens for
every record is to note it as the last one. The partition's position follows from that record when
somebody wants to know it (:meth:`Reading._settle`), so every method that reads or changes positions
settles first, and every method that changes what is consumed drops the rest of the chunk: it is still in
the buffer, and comes again if the position still leads there.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from time import monotonic
from typing import TYPE_CHECKING, Any

from kafka.consumer.fetcher import ConsumerRecord
from kafka.consumer.subscription_state import SubscriptionState
from kafka.structs import OffsetAndMetadata, TopicPartition

from compat.kafka._client import Client
from compat.kafka.consumer._fetches import Fetches
from compat.kafka.consumer._group_member import GroupMember
from compat.kafka.consumer._membership import Sole
from compat.kafka.consumer._offsets import Positions

if TYPE_CHECKING:
    from typing_extensions import Self

log = logging.getLogger(__name__)

IDLE_PAUSE = 0.05  # seconds between looks when there is no partition to wait for


class Reading:
    """The part of a KafkaConsumer that hands out records; in the program's thread."""

    config: dict[str, Any]
    _closed: bool
    _client: Client
    _subscription: SubscriptionState
    _fetches: Fetches
    _member: GroupMember | Sole
    _positions: Positions

    def _begin_reading(self) -> None:
        """Have nothing at hand."""
        self._chunk: Iterator[ConsumerRecord] = iter(())
        self._chunk_state: Any = None  # the state of the chunk's partition
        self._last: ConsumerRecord | None = None  # the chunk's last record that was handed out

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> ConsumerRecord:
        for record in self._chunk:  # the quickest way to take one, or to find that there is none
            self._last = record
            return record
        self._begin_next_chunk()
        # Once more, and without a call: Ctrl-C is noticed after calls, and would lose what one has taken.
        for record in self._chunk:
            self._last = record
            return record
        raise AssertionError("a chunk without records")

    def _begin_next_chunk(self) -> None:
        """Have records at hand; raises StopIteration if there are none in time."""
        self._settle()
        if self._closed:
            self._client.hub.check()  # in a forked child: an error, and not the end of the records
            raise StopIteration("KafkaConsumer closed")
        timeout_ms = self.config["consumer_timeout_ms"]
        deadline = monotonic() + timeout_ms / 1000 if timeout_ms >= 0 else float("inf")
        while True:
            taken = self._round(deadline, self.config["max_poll_records"])
            if taken is not None:
                partition, records = taken
                self._chunk_state = self._subscription.assignment[partition]
                self._chunk = iter(records)
                return
            if self._closed or monotonic() >= deadline:
                raise StopIteration()

    def poll(
        self, timeout_ms: float = 0, max_records: int | None = None, update_offsets: bool = True
    ) -> dict[TopicPartition, list[ConsumerRecord]]:
        """Records by partition, at most ``max_records`` (``max_poll_records``) of them.

        Waits up to ``timeout_ms`` for the first one. ``update_offsets=False`` leaves the positions.

        Raises:
            ValueError: a negative timeout, or ``max_records`` below 1.
            TypeError: ``max_records`` is no int.
            IllegalStateError: the consumer is closed.
            NoOffsetForPartitionError, OffsetOutOfRangeError: with ``auto_offset_reset="none"``.
        """
        if timeout_ms < 0:
            raise ValueError("Timeout must not be negative")
        if max_records is None:
            max_records = self.config["max_poll_records"]
        if not isinstance(max_records, int):
            raise TypeError("max_records must be an integer")
        if max_records <= 0:
            raise ValueError("max_records must be positive")
        if self._closed:
            raise self._client.closed_error("KafkaConsumer is closed")
        self._drop_chunk()
        deadline = monotonic() + timeout_ms / 1000
        records: dict[TopicPartition, list[ConsumerRecord]] = {}
        before: dict[TopicPartition, OffsetAndMetadata] = {}
        returned = False
        try:
            while not self._closed:
                taken = self._round(deadline, max_records)
                while taken is not None:
                    partition, rows = taken
                    state = self._subscription.assignment[partition]
                    before.setdefault(partition, state.position)
                    state.position = _behind(rows[-1])
                    records.setdefault(partition, []).extend(rows)
                    max_records -= len(rows)
                    taken = self._take_more(max_records)
                if records or monotonic() >= deadline:
                    break
            returned = update_offsets
            return records
        finally:
            if not returned:  # nor after an interruption (Ctrl-C): these records come again
                for partition, position in before.items():
                    self._subscription.assignment[partition].position = position

    def _take_more(self, limit: int) -> Any:
        """Buffered records for a poll that has some; an error waits for the next poll."""
        if limit <= 0:
            return None
        try:
            return self._fetches.take(limit)
        except Exception:
            log.debug("left to the next poll", exc_info=True)
            return None

    def _round(self, deadline: float, limit: int) -> tuple[TopicPartition, list[ConsumerRecord]] | None:
        """One round of what a poll does: membership, commits, positions, and records of one partition."""
        self._positions.call_back()
        if self._fetches.stale_metadata:
            self._fetches.stale_metadata = False
            self._member.changed()
        if not self._member.poll(deadline, self._positions.auto_commit_and_wait):
            return None
        if self._positions.commit_is_due():
            self._positions.auto_commit_now()
        taken = self._fetches.take(limit)
        if taken is not None:
            return taken
        self._positions.resolve(deadline)
        seconds = max(deadline - monotonic(), 0.0)
        if self._fetches.fetch(min(seconds, self._member.wait_slice)):
            return self._fetches.take(limit)
        if seconds > 0 and not self._closed:
            self._client.pause(min(seconds, IDLE_PAUSE))
        return None

    def _settle(self) -> None:
        """Bring the position of the partition that is being iterated up to date."""
        last = self._last
        if last is not None:
            if self._chunk_state.has_valid_position:
                self._chunk_state.position = _behind(last)
            self._last = None

    def _drop_chunk(self) -> None:
        self._settle()
        self._chunk = iter(())


def _behind(record: ConsumerRecord) -> OffsetAndMetadata:
    return OffsetAndMetadata(record.offset + 1, "", record.leader_epoch)
