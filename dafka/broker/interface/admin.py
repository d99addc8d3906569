"""The administrative part of the broker interface: configuration, trimming, and the use of the disk.

See :mod:`dafka.broker.interface.broker` for what all methods have in common.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum
from typing import NamedTuple

from dafka.broker.interface.groups import Error, TopicPartition
from dafka.broker.interface.outcome import Outcome


class ResourceType(IntEnum):
    """Resources with a configuration; Kafka's numbers (ConfigResource.Type)."""

    TOPIC = 2
    BROKER = 4
    CLIENT_METRICS = 16
    GROUP = 32


BROKER_LOGGER = 8
"""The type of the loggers of a broker, whose levels are not kept."""


class Resource(NamedTuple):
    """A topic, a group or a subscription to metrics of clients by its name, or the broker by its node id as
    text ("": the default of all brokers)."""

    type: int
    name: str


class ConfigSource(IntEnum):
    """Where a value comes from; Kafka's numbers (DescribeConfigsResponse.ConfigSource)."""

    TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_DEFAULT_BROKER = 3
    STATIC_BROKER = 4
    DEFAULT = 5
    DYNAMIC_BROKER_LOGGER = 6
    CLIENT_METRICS = 7
    GROUP = 8


class ConfigType(IntEnum):
    """Types of values; Kafka's numbers (DescribeConfigsResponse.ConfigType)."""

    UNKNOWN = 0
    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


class ConfigSynonym(NamedTuple):
    """One of the settings that a value may come from, the one that counts first."""

    name: str
    value: str | None
    source: int


class ConfigEntry(NamedTuple):
    """A setting with its value."""

    name: str
    value: str | None
    source: int = ConfigSource.DEFAULT
    read_only: bool = False
    sensitive: bool = False
    type: int = ConfigType.UNKNOWN
    documentation: str | None = None
    synonyms: Sequence[ConfigSynonym] = ()


class DescribedConfigs(NamedTuple):
    """The settings of a resource, in the order of their names."""

    error: Error | None
    entries: Sequence[ConfigEntry] = ()
    detail: str = ""


class ConfigOperation(IntEnum):
    """Changes of a setting; Kafka's numbers (IncrementalAlterConfigs). The last two are for lists."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class ConfigChange(NamedTuple):
    """A change of one setting."""

    name: str
    operation: int
    value: str | None = None


class DeletedRecords(NamedTuple):
    """The first offset that exists after a deletion."""

    error: Error | None
    low_watermark: int = -1


class LogDirectory(NamedTuple):
    """A folder of records: bytes of each partition, and of the file system it is on (-1: unknown)."""

    error: Error | None
    path: str
    sizes: Mapping[TopicPartition, int]
    total_bytes: int = -1
    usable_bytes: int = -1


class AdminInterface(ABC):
    """Administration."""

    @abstractmethod
    def describe_configs(
        self, resources: Mapping[Resource, Iterable[str] | None]
    ) -> dict[Resource, DescribedConfigs]:
        """The settings of these names (None: all) of each resource.

        A group or a subscription without a configuration has the defaults.

        Errors: UnknownTopicOrPartitionError, InvalidTopicError, InvalidRequestError (no such resource type,
        or not this broker).
        """

    @abstractmethod
    def alter_configs(
        self,
        changes: Mapping[Resource, Sequence[ConfigChange]],
        *,
        replace: bool = False,
        validate_only: bool = False,
    ) -> dict[Resource, Outcome]:
        """Change settings, durably; the changes of one resource are made as a whole or not at all.

        ``replace``: settings that are not named go back to their defaults (AlterConfigs); without it they
        stay (IncrementalAlterConfigs). Errors: UnknownTopicOrPartitionError, InvalidConfigurationError (of a
        topic or a group), InvalidRequestError (also for what the broker or a subscription to metrics cannot
        be set to, as in Kafka), KafkaStorageError.
        """

    def configured(self) -> list[Resource]:
        """The groups and the subscriptions to metrics of clients that have a configuration."""
        return []

    def planned_configs(self, configs: Mapping[str, str]) -> Sequence[ConfigEntry]:
        """All settings that a topic with these of its own would have."""
        return []

    @abstractmethod
    def delete_records(self, offsets: Mapping[TopicPartition, int]) -> dict[TopicPartition, DeletedRecords]:
        """Delete the records below these offsets, durably; -1 means all there are.

        Errors: UnknownTopicOrPartitionError, OffsetOutOfRangeError (beyond the end), PolicyViolationError
        (the topic is compacted and not deleted from), KafkaStorageError.
        """

    @abstractmethod
    def log_directories(self, topics: Iterable[str] | None = None) -> list[LogDirectory]:
        """The folders of records with the partitions of these topics (None: of all)."""
