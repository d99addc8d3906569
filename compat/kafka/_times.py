"""Times of clients in milliseconds: in their configuration, and as arguments of their methods."""

from __future__ import annotations

from numbers import Real
from typing import Any

from kafka.errors import KafkaConfigurationError

from dafka.hub.waits import wait_of

_MOST = 2**31 - 1  # what Kafka's protocol has room for

_ENDLESS = {
    *("bootstrap_timeout_ms", "connections_max_idle_ms", "consumer_timeout_ms", "delivery_timeout_ms"),
    *("linger_ms", "max_block_ms", "metadata_max_age_ms", "metrics_sample_window_ms"),
}
"""Those that no broker is told, which may be infinite."""
_BELOW_0 = {"connections_max_idle_ms", "consumer_timeout_ms"}
"""Those that are for ever below 0."""
_NONE = {"bootstrap_timeout_ms", "connections_max_idle_ms"}
"""Those that may be None."""


def check_times(config: dict[str, Any]) -> None:
    """Refuse a setting in milliseconds that is none.

    Raises:
        KafkaConfigurationError: it is no number, NaN, negative, or too large for Kafka's protocol.
    """
    for name, value in config.items():
        if name.endswith("_ms") and not (value is None and name in _NONE):
            is_number = isinstance(value, Real)  # a number of NumPy, too
            if not is_number or value != value:
                raise KafkaConfigurationError(f"{name} is a number of milliseconds, not {value!r:.100}")
            if value < 0 and name not in _BELOW_0:
                raise KafkaConfigurationError(
                    f"{name} is a number of milliseconds of 0 or more, not {value!r:.100}"
                )
            if value > _MOST and name not in _ENDLESS:
                raise KafkaConfigurationError(
                    f"{name} is a number of milliseconds, at most {_MOST}, not {value!r:.100}"
                )


def timeout_of(timeout_ms: float | None, name: str = "timeout_ms") -> float | None:
    """The ``timeout_ms`` of a method as it is; infinity is for ever.

    Raises:
        TypeError: it is no number.
        ValueError: it is NaN.
    """
    wait_of(timeout_ms, name, "milliseconds")
    return timeout_ms
