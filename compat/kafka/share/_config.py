"""A share consumer's configuration."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Real
from typing import Any

from kafka.consumer.group import KafkaConsumer
from kafka.errors import KafkaConfigurationError

from compat.kafka._counts import check_counts
from compat.kafka._kinds import check_kinds, version_of
from compat.kafka._times import check_times
from dafka.broker.interface.share import ShareFetchLimits

IMPLICIT, EXPLICIT = "implicit", "explicit"
BATCH_OPTIMIZED, RECORD_LIMIT = "batch_optimized", "record_limit"

_THEIRS = KafkaConsumer.DEFAULT_CONFIG
_CONNECTION = (
    *("bootstrap_servers", "bootstrap_timeout_ms", "client_id", "request_timeout_ms", "security_protocol"),
    *(name for name in _THEIRS if name.startswith(("ssl_", "sasl_"))),
    *("key_deserializer", "value_deserializer", "max_poll_records", "fetch_max_wait_ms", "fetch_min_bytes"),
    *("fetch_max_bytes", "consumer_timeout_ms", "client_rack", "api_version", "metric_reporters"),
    *("metrics_enabled", "metrics_num_samples", "metrics_sample_window_ms"),
)

DEFAULTS: dict[str, Any] = {
    **{name: _THEIRS[name] for name in _CONNECTION if name in _THEIRS},
    "client_rack": "",
    "metric_group_prefix": "consumer-share",
    "group_id": None,
    "share_acknowledgement_mode": IMPLICIT,
    "share_acquire_mode": BATCH_OPTIMIZED,
}

_SMALLEST = {"max_poll_records": 1, "fetch_max_bytes": 1, "fetch_min_bytes": 0, "metrics_num_samples": 1}
_LARGEST = 2**31 - 1  # what Kafka's protocol has room for
_LONGEST = 2**15 - 1  # octets of a string in it


def read_config(defaults: dict[str, Any], configs: dict[str, Any]) -> dict[str, Any]:
    """The configuration with the defaults filled in.

    Raises:
        KafkaConfigurationError: unknown keys, no group, an unknown mode, times that are none, counts with
            which nothing would come.
        TypeError: another setting of the wrong kind. ValueError: an ``api_version`` of no numbers.
        UnrecognizedBrokerVersion: an ``api_version`` older than all that kafka-python knows.
    """
    unknown = set(configs).difference(defaults)
    if unknown:
        raise KafkaConfigurationError(f"Unrecognized configs: {unknown}")
    config = {**defaults, **configs}
    for key in ("group_id", "client_rack"):
        if config[key] is not None:  # a UUID, a number: as by KafkaConsumer what it is as text
            config[key] = str(config[key])
    if not config["group_id"]:
        raise KafkaConfigurationError("a ShareConsumer needs a group_id")
    for key, known in (
        ("share_acknowledgement_mode", (IMPLICIT, EXPLICIT)),
        ("share_acquire_mode", (BATCH_OPTIMIZED, RECORD_LIMIT)),
    ):
        if config[key] not in known:
            raise KafkaConfigurationError(f"{key} is {known[0]!r} or {known[1]!r}, not {config[key]!r}")
    config["api_version"] = version_of(config["api_version"])
    check_kinds(config)
    check_times(config)
    check_counts(config)
    _check_bounds(config)
    return config


def limits_of(config: Mapping[str, Any], seconds: float, max_records: int | None) -> ShareFetchLimits:
    """What a fetch of at most so many seconds asks for."""
    most = config["max_poll_records"] if max_records is None else max_records
    return ShareFetchLimits(
        min(max(seconds, 0.0), config["fetch_max_wait_ms"] / 1000),
        config["fetch_min_bytes"],
        config["fetch_max_bytes"],
        most,
        most,
        config["share_acquire_mode"] == RECORD_LIMIT,
    )


def _check_bounds(config: dict[str, Any]) -> None:
    for key, smallest in _SMALLEST.items():
        if not isinstance(config[key], Real) or not smallest <= config[key] <= _LARGEST or config[key] % 1:
            raise KafkaConfigurationError(
                f"{key} is a whole number from {smallest} to {_LARGEST}, not {config[key]!r:.100}"
            )
        config[key] = int(config[key])
    for key in ("client_id", "client_rack", "group_id"):
        if len((config[key] or "").encode()) > _LONGEST:
            raise KafkaConfigurationError(f"{key} has {_LONGEST} octets at most")
    for key in ("key_deserializer", "value_deserializer"):
        deserializer = config[key]
        if not (deserializer is None or callable(deserializer) or hasattr(deserializer, "deserialize")):
            raise TypeError(f"{key} is a function or a Deserializer, not {deserializer!r:.100}")
