"""The topics' part of the broker interface: metadata, and every change of a topic.

See :mod:`dafka.broker.interface.broker` for what all methods have in common.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple
from uuid import UUID

from dafka.broker.interface.groups import Error
from dafka.broker.interface.outcome import Outcome


class PartitionMetadata(NamedTuple):
    """A partition of a topic: ``address`` names the Dafka producer that writes it.

    ``writable`` is False for the partition of a native producer: only that producer writes it.
    ``leader_epoch`` goes up when committed records may have been lost. ``leader``: the node that leads it;
    None: nobody, or the broker itself, which is one node.
    """

    number: int
    address: str
    writable: bool
    leader_epoch: int = 0
    leader: int | None = None


class TopicMetadata(NamedTuple):
    """A topic with its partitions in the order of their numbers; ``error`` if no topic has that name."""

    name: str
    topic_id: UUID
    error: Error | None
    partitions: Sequence[PartitionMetadata]


class Metadata(NamedTuple):
    """Brokers and topics of a cluster. ``brokers`` are (node id, host, port).

    Each look at one of the ``topics`` may make its description anew: keep what is needed for longer.
    """

    cluster_id: str
    controller_id: int
    brokers: list[tuple[int, str, int]]
    topics: Mapping[str, TopicMetadata]


class TopicSpec(NamedTuple):
    """A topic to be created. ``partitions`` -1: the broker's default. ``configs`` are Kafka's, as text."""

    partitions: int = -1
    configs: Mapping[str, str] = {}


class TopicInterface(ABC):
    """Topics."""

    @abstractmethod
    def metadata(self, topics: Iterable[str] | None, create: bool = False) -> Metadata:
        """Brokers, and the topics of these names (None: all).

        A topic that does not exist is created with the default number of partitions if ``create`` is set
        and the broker allows that; otherwise it is there with UnknownTopicOrPartitionError. An illegal name
        has InvalidTopicError.
        """

    def topic_names(self, ids: Iterable[UUID]) -> dict[UUID, str]:
        """The names of the topics with these ids, as far as there are such topics."""
        wanted = set(ids)
        topics = self.metadata(None).topics.values()
        return {topic.topic_id: topic.name for topic in topics if topic.topic_id in wanted}

    @abstractmethod
    def create_topics(
        self,
        topics: Mapping[str, TopicSpec],
        *,
        validate_only: bool = False,
    ) -> dict[str, Outcome]:
        """Create topics, or with ``validate_only`` only check whether they could be.

        Errors: InvalidTopicError,
        TopicAlreadyExistsError, InvalidPartitionsError, InvalidConfigurationError, PolicyViolationError
        (too many partitions), KafkaStorageError.
        """

    @abstractmethod
    def create_partitions(self, totals: Mapping[str, int]) -> dict[str, Outcome]:
        """Raise the number of partitions of topics to these totals, those of native producers counted.

        The new ones stand behind all that the topic has. Errors: UnknownTopicOrPartitionError,
        InvalidPartitionsError (not more than there are), KafkaStorageError.
        """

    @abstractmethod
    def delete_topics(self, names: Iterable[str]) -> dict[str, Outcome]:
        """Delete topics with their records. Errors: UnknownTopicOrPartitionError, KafkaStorageError."""
