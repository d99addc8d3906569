"""A producer's configuration: kafka-python's keys, and what it says about values that do not fit.

Nothing here depends on the broker; the order of the checks is kafka-python's, so that of several mistakes
the same one is reported.
"""

from __future__ import annotations

import logging
import warnings
from typing import Any

import kafka.producer.kafka as _theirs
from kafka.codec import has_gzip, has_lz4, has_snappy, has_zstd
from kafka.errors import KafkaConfigurationError
from kafka.protocol.broker_version_data import BrokerVersionData
from kafka.serializer import Serializer, SerializeWrapper

from compat.kafka._counts import check_counts
from compat.kafka._kinds import check_kinds
from compat.kafka._times import check_times

log = logging.getLogger(__name__)

_IDEMPOTENCE_SINCE = (0, 11)

_CODECS_SINCE = {"lz4": (0, 8, 2), "zstd": (2, 1)}
_CODECS = {None: lambda: True, "gzip": has_gzip, "snappy": has_snappy, "lz4": has_lz4, "zstd": has_zstd}


def read_config(
    defaults: dict[str, Any], deprecated: tuple[str, ...], configs: dict[str, Any]
) -> dict[str, Any]:
    """The configuration with the defaults filled in; ``configs`` is emptied.

    Raises:
        ValueError: unknown keys, or an invalid ``api_version``.
        KafkaConfigurationError: times that are none. TypeError: another setting of the wrong kind.
        UnrecognizedBrokerVersion: an ``api_version`` older than all that kafka-python knows.
    """
    config = {key: configs.pop(key, default) for key, default in defaults.items()}
    for key in ("key_serializer", "value_serializer"):
        if config[key] is not None and not isinstance(config[key], Serializer):
            warnings.warn(
                f"{key} does not implement kafka.serializer.Serializer", DeprecationWarning, stacklevel=3
            )
            config[key] = SerializeWrapper(config[key])
    for key in deprecated:
        if key in configs:
            configs.pop(key)
            warnings.warn(f"Deprecated Producer config: {key}", DeprecationWarning, stacklevel=3)
    if configs:
        raise ValueError(f"Unrecognized configs: {configs}")
    if config["client_id"] is None:
        config["client_id"] = f"kafka-python-producer-{_theirs.PRODUCER_CLIENT_ID_SEQUENCE.increment()}"
    if config["transactional_id"]:  # a UUID, a number: kafka-python writes what it is as text
        config["transactional_id"] = str(config["transactional_id"])
    if config["acks"] == "all":
        config["acks"] = -1
    check_kinds(config)
    config["api_version"] = _read_version(config["api_version"])
    check_times(config)
    check_counts(config)
    return config


def _read_version(version: Any) -> tuple[int, ...] | None:
    if isinstance(version, str):
        log.warning("api_version is a tuple of numbers or None; %r is a str, which is deprecated", version)
        try:
            version = None if version == "auto" else tuple(map(int, version.split(".")))
        except ValueError:
            raise ValueError(f"api_version is a tuple of numbers or None, not {version!r:.100}") from None
    return None if version is None else BrokerVersionData(version).broker_version


def check_config(config: dict[str, Any], given: set[str], name: str) -> None:
    """Refuse settings that contradict each other; ``given`` are the keys that the program has set.

    Raises:
        ValueError, RuntimeError: see :func:`check_compression`.
        KafkaConfigurationError: settings that contradict each other.
    """
    check_compression(config)
    check_idempotence(config, given, name)
    if config["delivery_timeout_ms"] < config["linger_ms"] + config["request_timeout_ms"]:
        raise KafkaConfigurationError(
            "Must set delivery_timeout_ms higher than linger_ms + request_timeout_ms"
        )


def check_compression(config: dict[str, Any]) -> None:
    """Refuse a codec that cannot be used.

    Raises:
        ValueError: it is unknown, or to brokers of that ``api_version``.
        RuntimeError: its library is not installed.
    """
    codec, version = config["compression_type"], config["api_version"]
    if not isinstance(codec, (str, type(None))) or codec not in _CODECS:
        raise ValueError(f"Not supported codec: {codec}")
    if codec in _CODECS_SINCE and version < _CODECS_SINCE[codec]:
        raise ValueError(f"{codec} requires brokers of {_CODECS_SINCE[codec]}, not api_version={version}")
    if not _CODECS[codec]():
        raise RuntimeError(f"Libraries for {codec} compression codec not found")


def check_idempotence(config: dict[str, Any], given: set[str], name: str) -> None:
    """Refuse or resolve settings that idempotence excludes, by the rules of KIP-679."""
    explicit = "enable_idempotence" in given
    if not config["enable_idempotence"] and config["transactional_id"]:
        raise KafkaConfigurationError("Cannot set transactional_id without enable_idempotence.")
    if config["transactional_id"]:
        explicit = True
    if not config["enable_idempotence"]:
        return
    conflicts = []
    if config["acks"] != -1:
        conflicts.append(f"acks={config['acks']!r}")
    if config["retries"] == 0:
        conflicts.append("retries=0")
    if config["max_in_flight_requests_per_connection"] > 5:
        in_flight = config["max_in_flight_requests_per_connection"]
        conflicts.append(f"max_in_flight_requests_per_connection={in_flight!r}")
    version = config["api_version"]
    if explicit and conflicts:
        raise KafkaConfigurationError(
            f"enable_idempotence=True is incompatible with user-provided {', '.join(conflicts)}"
        )
    if explicit and version < _IDEMPOTENCE_SINCE:
        raise KafkaConfigurationError(
            f"idempotent and transactional producers require brokers of 0.11, not api_version={version}"
        )
    if not conflicts and version < _IDEMPOTENCE_SINCE:
        conflicts.append(f"api_version={version}")
    if not conflicts:
        return
    log.warning("%s: idempotence is off because of %s", name, ", ".join(conflicts))
    config["enable_idempotence"] = False
