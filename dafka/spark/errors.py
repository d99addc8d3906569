"""The errors between Spark and a broker; each message can be understood on its own."""

from __future__ import annotations

from dafka.protocol.errors import DafkaError


class OptionError(DafkaError, ValueError):
    """An option that is unknown, malformed, or contradicts another one."""


class ColumnError(DafkaError, ValueError):
    """Columns that cannot be written or read: missing, unknown, or of another type."""


class OffsetError(DafkaError, ValueError):
    """Offsets asked for that a partition does not have, or that leave partitions out."""


class UnknownTopicError(DafkaError, LookupError):
    """A topic or partition that the broker does not have."""


class UnreachableError(DafkaError, ConnectionError):
    """No broker answers at the addresses given."""


class DataLossError(DafkaError):
    """Records that were to be read no longer exist, and ``failOnDataLoss`` is true."""


class WriteError(DafkaError):
    """The broker did not take records."""
