"""Counts and sizes in the configuration of clients."""

from __future__ import annotations

from numbers import Real
from typing import Any

from kafka.errors import KafkaConfigurationError

_COUNTS = (
    *("batch_size", "fetch_max_bytes", "fetch_min_bytes", "max_in_flight_requests_per_connection"),
    *("max_partition_fetch_bytes", "max_poll_records", "max_request_size", "receive_message_max_bytes"),
)


def check_counts(config: dict[str, Any]) -> None:
    """Refuse a count or a size that is none.

    Raises:
        KafkaConfigurationError: it is no number, or NaN.
    """
    for name in _COUNTS:
        value = config.get(name, 0)
        if not isinstance(value, Real) or value != value:  # a number of NumPy is one, too
            raise KafkaConfigurationError(f"{name} is a number, not {value!r:.100}")
