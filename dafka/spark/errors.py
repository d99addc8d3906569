"""The errors between Spark and a broker, and how they reach the user; each message stands on its own."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

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


class ReadError(DafkaError):
    """The broker does not give records that it has, for want of a right, for example."""


class WriteError(DafkaError):
    """The broker did not take records."""


@contextmanager
def reason_first() -> Iterator[None]:
    """Let an error of ours be the first line of what Spark reports, without a traceback in front of it.

    The Python process that it happens in ends with it, so the setting does not outlive the error.
    """
    try:
        yield
    except DafkaError:
        os.environ["SPARK_HIDE_TRACEBACK"] = "1"
        raise
