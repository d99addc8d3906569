"""Arguments of a consumer's methods that are refused, with kafka-python's errors."""

from __future__ import annotations

import struct
from numbers import Integral
from typing import Any

from kafka.consumer.subscription_state import SubscriptionState
from kafka.errors import IllegalStateError
from kafka.structs import TopicPartition

from dafka.hub.waits import bounded_wait


def check_poll(timeout_ms: float, max_records: Any) -> None:
    """Raise ValueError or TypeError for what a poll cannot be told."""
    bounded_wait(timeout_ms, "timeout_ms", "milliseconds")
    if timeout_ms < 0:
        raise ValueError("Timeout must not be negative")
    if not isinstance(max_records, int):
        raise TypeError("max_records must be an integer")
    if max_records <= 0:
        raise ValueError("max_records must be positive")


def check_share_poll(timeout_ms: Any, max_records: Any) -> None:
    """The same for a share consumer, whose errors name the value."""
    bounded_wait(timeout_ms, "timeout_ms", "milliseconds")
    if timeout_ms < 0:
        raise ValueError(f"timeout_ms is 0 or more, not {timeout_ms}")
    if max_records is not None and (not isinstance(max_records, Integral) or isinstance(max_records, bool)):
        raise TypeError(f"max_records is a count or None, not {max_records!r:.100}")
    if max_records is not None and max_records < 1:
        raise ValueError(f"max_records is 1 or more, not {max_records}")


def check_times(timestamps: dict[TopicPartition, int]) -> dict[TopicPartition, int]:
    """The times as whole numbers of ms. Raises ValueError for a negative one."""
    wanted = {partition: int(timestamp) for partition, timestamp in timestamps.items()}
    for partition, timestamp in wanted.items():
        struct.pack(">q", timestamp)  # raises struct.error, as kafka-python does
        if timestamp < 0:
            raise ValueError(
                f"The target time for partition {partition} is {timestamp}. "
                "The target time cannot be negative."
            )
    return wanted


def check_partition(partition: Any) -> None:
    """Raise TypeError for what is not a TopicPartition."""
    if not isinstance(partition, TopicPartition):
        raise TypeError("partition must be a TopicPartition namedtuple")


def check_partitions(partitions: tuple[Any, ...]) -> None:
    """Raise TypeError unless all are TopicPartitions."""
    if not all(isinstance(partition, TopicPartition) for partition in partitions):
        raise TypeError("partitions must be TopicPartition namedtuples")


def check_assigned(subscription: SubscriptionState, partition: Any) -> None:
    """Raise TypeError for what is not a TopicPartition, IllegalStateError for one that is not assigned."""
    check_partition(partition)
    if not subscription.is_assigned(partition):
        raise IllegalStateError("Partition is not assigned")


def check_seek(subscription: SubscriptionState, partition: Any, offset: Any) -> None:
    """Raise TypeError or ValueError for a partition or an offset that cannot be sought."""
    check_partition(partition)
    if not isinstance(offset, int) or offset < 0:
        raise ValueError("Offset must be int >= 0")
    if partition not in subscription.assigned_partitions():
        raise ValueError("Unassigned partition")


def check_seek_to(subscription: SubscriptionState, partitions: tuple[Any, ...]) -> set[TopicPartition]:
    """The partitions that are assigned. Raises TypeError, or ValueError unless these are among them."""
    check_partitions(partitions)
    assigned: set[TopicPartition] = subscription.assigned_partitions()
    for partition in partitions:
        if partition not in assigned:
            raise ValueError(f"Unassigned partition: {partition}")
    if not assigned:
        raise ValueError("No partitions are currently assigned")
    return assigned
