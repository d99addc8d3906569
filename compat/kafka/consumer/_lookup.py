"""Queries about topics and offsets that read no records: names, partitions, edges, times."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kafka.structs import OffsetAndMetadata, OffsetAndTimestamp, TopicPartition

from compat.kafka._calls import Calls
from compat.kafka._client import Client
from compat.kafka.consumer._membership import Membership
from compat.kafka.consumer._offsets import Positions
from compat.kafka.consumer._topics import partitions_of

CLOSED = "KafkaConsumer is closed"


class Lookup:
    """Answers for one consumer, each within ``timeout_ms``, or ``request_timeout_ms``.

    All of them raise IllegalStateError when the broker has to be asked and the consumer is closed.
    """

    def __init__(
        self,
        client: Client,
        calls: Calls,
        member: Membership,
        positions: Positions,
        config: dict[str, Any],
    ) -> None:
        self._client = client
        self._calls = calls
        self._member = member
        self._positions = positions
        self._config = config

    def topics(self) -> dict[str, set[int]]:
        """``{topic: numbers of its partitions}`` for all topics."""
        self._client.check_open(CLOSED)
        look = self._calls.broker.metadata
        return partitions_of(self._calls.within(self._config["request_timeout_ms"], "Metadata", look, None))

    def partitions(self, topic: str) -> Iterable[int]:
        """The numbers of a topic's partitions, from the last metadata if that was about this topic."""
        known = self._member.partitions_for_topic(topic)
        if known is None:
            known = self.topics().get(topic)
        return known or ()

    def edges(
        self, partitions: Iterable[TopicPartition], which: Any, timeout_ms: float | None
    ) -> dict[TopicPartition, int]:
        """The offsets of an ``OffsetResetStrategy``. Raises KafkaTimeoutError."""
        self._client.check_open(CLOSED)
        found = self._positions.offsets_at(dict.fromkeys(partitions, which), self._timeout(timeout_ms))
        return {partition: offset.offset for partition, offset in found.items() if offset is not None}

    def times(
        self, timestamps: dict[TopicPartition, int], timeout_ms: float | None
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """The first record at or after each time that ``check_times`` has accepted."""
        self._client.check_open(CLOSED)
        return self._positions.offsets_at(timestamps, self._timeout(timeout_ms))

    def committed(self, partition: TopicPartition, timeout_ms: float | None) -> OffsetAndMetadata | None:
        """The offset that the group has committed. Raises KafkaTimeoutError."""
        self._client.check_open(CLOSED)
        return self._positions.fetch_committed([partition], timeout_ms).get(partition)

    def _timeout(self, timeout_ms: float | None) -> float:
        timeout: float = self._config["request_timeout_ms"] if timeout_ms is None else timeout_ms
        return timeout
