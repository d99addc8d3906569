"""Where a producer's records go: topics that are not known yet, and partitions that are not the default's."""

from __future__ import annotations

import warnings
from time import monotonic
from typing import Any

from kafka.errors import (
    KafkaConnectionError,
    KafkaTimeoutError,
    RetriableError,
    TopicAuthorizationFailedError,
)
from kafka.partitioner import Partitioner
from kafka.util import ensure_valid_topic_name

from compat.kafka._calls import GRACE, Calls
from compat.kafka._client import Client
from compat.kafka.producer._batches import PartitionQueue
from compat.kafka.producer._sender import Sender
from compat.kafka.producer._topics import ClusterView, Topic


class Choosing:
    """The part of a KafkaProducer that finds topics and chooses partitions; in the program's threads."""

    config: dict[str, Any]
    _closed: bool
    _client: Client
    _sender: Sender
    _topics: dict[str, Topic]
    _cluster: ClusterView

    def _await_topic(self, topic: str, max_block_ms: float) -> Topic:
        """Metadata of a topic that is not known yet, created if it may be.

        Raises:
            TypeError, ValueError: not a legal topic name.
            KafkaTimeoutError: the topic did not appear in time.
            BrokerResponseError: the broker refuses it for good.
        """
        ensure_valid_topic_name(topic)
        deadline = monotonic() + max_block_ms / 1000
        calls = Calls(self._client)
        why = ""
        while True:
            left_ms = max(deadline - monotonic(), GRACE) * 1000
            try:
                metadata = calls.within(
                    left_ms,
                    "Metadata",
                    self._sender.refresh,
                    [topic],
                    self.config["allow_auto_create_topics"],
                )
                why = f"topic {topic!r} has no partition that can be written to"
            except KafkaConnectionError as error:  # nobody there for the moment
                metadata, why = None, str(error)
            except KafkaTimeoutError as error:
                metadata, why = None, why or str(error.args[0])
            known = self._topics.get(topic)
            if known is not None:
                return known
            found = None if metadata is None else metadata.topics.get(topic)
            error = None if found is None or found.error is None else _as_exception(found.error, topic)
            if isinstance(error, TopicAuthorizationFailedError):
                raise TopicAuthorizationFailedError({topic})
            if error is not None and not isinstance(error, RetriableError):
                raise error
            left = deadline - monotonic()
            if left <= 0:
                raise KafkaTimeoutError(
                    f"Failed to update metadata after {max_block_ms / 1000:.1f} secs: {why}"
                )
            self._client.pause(min(left, self.config["retry_backoff_ms"] / 1000))

    def _choose_queue(
        self,
        topic: str,
        known: Topic,
        partition: Any,
        key: Any,
        value: Any,
        key_bytes: Any,
        value_bytes: Any,
        size: int,
    ) -> PartitionQueue:
        """The queue of an explicit partition, or of the one a custom partitioner chooses."""
        if partition is not None:
            if partition < 0:
                raise ValueError("partition must be >= 0")
            queue = known.by_number.get(partition)
            if queue is None:
                raise ValueError(f"Unrecognized partition {partition} for topic {topic}")
            return queue
        partitioner = self.config["partitioner"]
        queue = self._ask_partitioner(topic, key, value, key_bytes, value_bytes)
        # KIP-480: a sticky partitioner moves on with the record that would need a new batch.
        rotate = getattr(partitioner, "on_new_batch", None)
        if rotate is not None and key_bytes is None and not queue.has_room(size):
            rotate(topic, self._cluster, queue.partition.partition)
            queue = self._ask_partitioner(topic, key, value, key_bytes, value_bytes)
        return queue

    def _ask_partitioner(
        self, topic: str, key: Any, value: Any, key_bytes: Any, value_bytes: Any
    ) -> PartitionQueue:
        partitioner = self.config["partitioner"]
        if isinstance(partitioner, Partitioner):
            partition = partitioner.partition(topic, key, key_bytes, value, value_bytes, self._cluster)
        else:
            message = "partitioner does not implement kafka.partitioner.Partitioner"
            warnings.warn(message, DeprecationWarning, stacklevel=4)
            partition = partitioner.partition(topic, key_bytes, self._cluster)
        if partition is None:
            raise ValueError(f"Partitioner did not assign a partition for topic {topic}!")
        known = self._topics.get(topic)
        queue = None if known is None else known.by_number.get(partition)
        if queue is None:
            raise ValueError(f"Unrecognized partition {partition} for topic {topic}")
        return queue

    def partitions_for(self, topic: str) -> set[int]:
        """Numbers of the topic's partitions that can be written to; waits up to ``max_block_ms`` for it."""
        known = self._topics.get(topic)
        if known is None:
            if self._closed:
                raise self._client.closed_error("KafkaProducer already closed!")
            known = self._await_topic(topic, self.config["max_block_ms"])
        return set(known.by_number)


def _as_exception(error: Any, *args: Any) -> Exception:
    return error(*args) if isinstance(error, type) else error
