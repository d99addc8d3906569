"""Where a producer's records go, beyond the default: topics not known yet, explicit and custom partitions."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
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
from compat.kafka.producer._topics import ClusterView, Topic, Topics


class Partitioning:
    """Finds topics and chooses partitions for one producer, in the program's threads."""

    def __init__(
        self,
        client: Client,
        topics: Topics,
        refresh: Callable[[Iterable[str], bool], Any],
        config: dict[str, Any],
    ) -> None:
        """``refresh`` asks the broker about topics, and may create them; it runs in the hub."""
        self._client = client
        self._topics = topics
        self._refresh = refresh
        self._cluster = ClusterView(topics)
        self._config = config

    def await_topic(self, topic: str) -> Topic:
        """Metadata of a topic that is not known yet, created if it may be.

        Raises:
            TypeError, ValueError: not a legal topic name.
            KafkaTimeoutError: the topic did not appear within ``max_block_ms``.
            BrokerResponseError: the broker refuses it for good.
        """
        ensure_valid_topic_name(topic)
        max_block = self._config["max_block_ms"] / 1000
        deadline = monotonic() + max_block
        calls = Calls(self._client)
        why = ""
        while True:
            left_ms = max(deadline - monotonic(), GRACE) * 1000
            try:
                metadata = calls.within(
                    left_ms, "Metadata", self._refresh, [topic], self._config["allow_auto_create_topics"]
                )
                why = f"topic {topic!r} has no partition that can be written to"
            except KafkaConnectionError as error:  # no broker for the moment
                metadata, why = None, str(error)
            except KafkaTimeoutError as error:
                metadata, why = None, why or str(error.args[0])
            known = self._topics.known.get(topic)
            if known is not None:
                return known
            found = None if metadata is None else metadata.topics.get(topic)
            refusal = None if found is None or found.error is None else found.error
            if refusal is not None:
                refused = refusal(topic) if isinstance(refusal, type) else refusal
                if isinstance(refused, TopicAuthorizationFailedError):
                    raise TopicAuthorizationFailedError({topic})
                if not isinstance(refused, RetriableError):
                    raise refused
            left = deadline - monotonic()
            if left <= 0:
                raise KafkaTimeoutError(f"Failed to update metadata after {max_block:.1f} secs: {why}")
            self._client.pause(min(left, self._config["retry_backoff_ms"] / 1000))

    def choose(
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
        partitioner = self._config["partitioner"]
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
        partitioner = self._config["partitioner"]
        if isinstance(partitioner, Partitioner):
            partition = partitioner.partition(topic, key, key_bytes, value, value_bytes, self._cluster)
        else:
            message = "partitioner does not implement kafka.partitioner.Partitioner"
            warnings.warn(message, DeprecationWarning, stacklevel=4)
            partition = partitioner.partition(topic, key_bytes, self._cluster)
        if partition is None:
            raise ValueError(f"Partitioner did not assign a partition for topic {topic}!")
        known = self._topics.known.get(topic)
        queue = None if known is None else known.by_number.get(partition)
        if queue is None:
            raise ValueError(f"Unrecognized partition {partition} for topic {topic}")
        return queue
