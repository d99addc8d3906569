"""Getting batches from the broker, and handing out their records partition by partition.

A fetch asks for every partition that can be fetched and has nothing buffered, in one crossing to the
hub; it waits there for as long as the caller may wait. Partitions are handed out in turn, (part of) a
batch from each, so that none starves.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress
from time import monotonic
from typing import Any

import gevent
from kafka.consumer.fetcher import ConsumerRecord
from kafka.consumer.subscription_state import SubscriptionState
from kafka.errors import (
    LogTruncationError,
    OffsetOutOfRangeError,
    RetriableError,
    TopicAuthorizationFailedError,
)
from kafka.protocol.consumer import IsolationLevel
from kafka.structs import OffsetAndMetadata, TopicPartition

from compat.kafka._calls import GRACE, Calls, NotYetError
from compat.kafka._client import Client
from compat.kafka._metrics import ConsumerMetrics
from compat.kafka.consumer._records import PartitionBuffer
from dafka.broker.interface.broker import Fetched, FetchFrom
from dafka.protocol.batch import BatchError, read_header

log = logging.getLogger(__name__)


def reads_committed(config: dict[str, Any]) -> bool:
    """Whether the ``isolation_level`` is ``read_committed``."""
    return IsolationLevel.build_from(config["isolation_level"]) is IsolationLevel.READ_COMMITTED


class Fetches:
    """The batches that a consumer has fetched and not handed out yet."""

    def __init__(
        self,
        client: Client,
        calls: Calls,
        subscription: SubscriptionState,
        config: dict[str, Any],
        metrics: ConsumerMetrics | None = None,
    ) -> None:
        self._client = client
        self._calls = calls
        self._metrics = metrics
        self._subscription = subscription
        self._config = config
        self._buffers: dict[TopicPartition, PartitionBuffer] = {}
        self._fetching: gevent.Greenlet | None = None
        self._retry_at = 0.0
        # Asked in the hub before a fetch: whether the program's thread has other things to do.
        self.needed_elsewhere: Callable[[], bool] = lambda: False
        self.stale_metadata = False  # a fetch has found a partition gone
        self.records_taken = 0
        self.bytes_fetched = 0
        self.fetches = 0

    # -- handing out -----------------------------------------------------------------------------

    def take(self, limit: int) -> tuple[TopicPartition, list[ConsumerRecord]] | None:
        """Up to ``limit`` records of one partition from its position on, which is left as it is.

        Raises what :meth:`PartitionBuffer.take` raises.
        """
        assignment = self._subscription.assignment
        finished = []
        try:
            for partition, buffer in self._buffers.items():
                state = assignment.get(partition)
                if state is None or state.position is None:
                    finished.append(partition)
                    continue
                if not state.is_fetchable():
                    continue
                config = self._config
                position = state.position.offset
                rows, end = buffer.take(
                    position, limit, config["key_deserializer"], config["value_deserializer"]
                )
                if rows:
                    self.records_taken += len(rows)
                    if self._metrics is not None and state.highwater is not None:
                        self._metrics.lagged(max(state.highwater - end, 0))
                    self._buffers[partition] = self._buffers.pop(partition)
                    return partition, rows
                if end != position:
                    state.position = OffsetAndMetadata(end, "", -1)
                finished.append(partition)
                self._subscription.move_partition_to_end(partition)
        finally:
            for partition in finished:
                self._buffers.pop(partition, None)
        return None

    # -- fetching --------------------------------------------------------------------------------

    def fetch(self, seconds: float) -> bool:
        """Fetch, waiting up to ``seconds`` for data; False if there is no partition to fetch from.

        An answer that comes later is kept for the next fetch.

        Raises:
            OffsetOutOfRangeError: a position outside of the partition, and no reset policy.
            LogTruncationError: a position behind records that were lost, and no reset policy.
            TopicAuthorizationFailedError, KafkaError: the broker's error for a partition.
        """
        if monotonic() < self._retry_at:
            return False
        config = self._config
        wanted = {}
        for partition in self._subscription.fetchable_partitions():
            if partition not in self._buffers:
                position = self._subscription.position(partition)
                wanted[tuple(partition)] = FetchFrom(
                    position.offset, config["max_partition_fetch_bytes"], last_epoch=position.leader_epoch
                )
        if not wanted:
            return False
        try:
            # The broker's own wait ends first, and its answer takes a moment.
            began, wanted, answers = self._calls.resume(
                "fetch",
                seconds + GRACE,
                self._fetch_in_hub,
                wanted,
                min(seconds, config["fetch_max_wait_ms"] / 1000),
                config["fetch_min_bytes"],
                config["fetch_max_bytes"],
            )
        except NotYetError:
            return True
        self.fetches += 1
        failure = None
        for key, answer in answers.items():
            try:
                self._accept(TopicPartition(*key), wanted[key].offset, answer)
            except Exception as error:
                failure = failure or error  # the other partitions' data is not lost for it
        if self._metrics is not None:
            self._metrics.fetched(began, _sizes(answers))
        if failure is not None:
            raise failure
        return True

    def _fetch_in_hub(self, wanted: Any, seconds: float, min_bytes: int, max_bytes: int) -> Any:
        """When the fetch began, the positions it asked for, and the broker's answers."""
        began = monotonic()
        if self.needed_elsewhere():
            return began, wanted, {}
        self._fetching = gevent.getcurrent()
        try:
            return (
                began,
                wanted,
                self._client.broker.fetch(
                    wanted,
                    max_wait=seconds,
                    min_bytes=min_bytes,
                    max_bytes=max_bytes,
                    read_committed=reads_committed(self._config),
                ),
            )
        except gevent.GreenletExit:
            return began, wanted, {}
        finally:
            self._fetching = None

    def interrupt(self) -> None:
        """End a fetch that waits; for any thread."""
        self._client.hub.post(self.interrupt_here)

    def interrupt_here(self) -> None:
        """The same, in the hub."""
        if self._fetching is not None:
            self._fetching.kill(block=False)

    def _accept(self, partition: TopicPartition, offset: int, answer: Fetched) -> None:
        state = self._subscription.assignment.get(partition)
        if state is None or state.position is None or state.position.offset != offset:
            return
        error = answer.error
        if answer.diverging is not None:
            self._truncated(partition, offset, *answer.diverging)
            return
        if error is None:
            if answer.high_watermark >= 0:
                state.highwater = answer.high_watermark
            if answer.batches:
                self.bytes_fetched += sum(map(len, answer.batches))
                self._buffers[partition] = PartitionBuffer(partition, offset, answer.batches, answer.aborted)
            return
        self._subscription.move_partition_to_end(partition)
        if error is OffsetOutOfRangeError:
            if not self._subscription.has_default_offset_reset_policy():
                raise OffsetOutOfRangeError({partition: offset})
            log.info("offset %d is out of range for %s; resetting", offset, partition)
            self._subscription.request_offset_reset(partition)
        elif error is TopicAuthorizationFailedError:
            raise TopicAuthorizationFailedError({partition.topic})
        elif issubclass(error, RetriableError):
            log.debug("fetching %s: %s", partition, error.__name__)
            self._retry_at = monotonic() + self._config["retry_backoff_ms"] / 1000
            self.stale_metadata = True
        else:
            raise error("Unexpected error while fetching data")

    def _truncated(self, partition: TopicPartition, offset: int, epoch: int, end: int) -> None:
        """Go back: the broker has lost records that were read, and has others at their offsets."""
        diverging = OffsetAndMetadata(end, "", epoch)
        if not self._subscription.has_default_offset_reset_policy():
            raise LogTruncationError({partition: diverging})
        log.warning(
            "the log of %s was cut at %d, before the position %d; going on there", partition, end, offset
        )
        self._subscription.seek(partition, diverging)


def _sizes(answers: dict[Any, Any]) -> dict[str, tuple[int, int]]:
    """How much was fetched of each topic: bytes and records."""
    sizes: dict[str, tuple[int, int]] = {}
    for (topic, _), answer in answers.items():
        octets, records = sizes.get(topic, (0, 0))
        for batch in answer.batches:
            octets += len(batch)
            with suppress(BatchError):  # decoding it will raise
                records += read_header(batch).count
        if answer.batches:
            sizes[topic] = octets, records
    return sizes
