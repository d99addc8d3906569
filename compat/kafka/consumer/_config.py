"""A consumer's configuration: kafka-python's keys, and what it says about values that do not fit."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Collection
from typing import Any

from kafka.consumer.group import KafkaConsumer
from kafka.coordinator.assignors.abstract import AbstractPartitionAssignor
from kafka.coordinator.heartbeat import Heartbeat
from kafka.errors import KafkaConfigurationError
from kafka.protocol.consumer import IsolationLevel
from kafka.serializer import Deserializer, DeserializeWrapper

from compat.kafka._counts import check_counts
from compat.kafka._kinds import check_kinds, version_of
from compat.kafka._times import check_times

OWN_CONFIG: dict[str, Any] = {"group_protocol": "classic", "group_remote_assignor": None}
"""Keys that kafka-python lacks, by the names of Kafka's settings, and their defaults."""

OLD_SESSION_TIMEOUT_MS = KafkaConsumer.DEFAULT_SESSION_TIMEOUT_MS_PRE_KIP_735

log = logging.getLogger(__name__)


def read_config(defaults: dict[str, Any], configs: dict[str, Any]) -> dict[str, Any]:
    """The configuration with the defaults filled in.

    Raises:
        KafkaConfigurationError: unknown keys, times that are none or do not go together, or an
            ``api_version`` that is not a tuple.
        TypeError: another setting of the wrong kind. ValueError: an ``api_version`` of no numbers.
        UnrecognizedBrokerVersion: an ``api_version`` older than all that kafka-python knows.
    """
    defaults = {**defaults, **OWN_CONFIG}
    unknown = set(configs).difference(defaults)
    if unknown:
        raise KafkaConfigurationError(f"Unrecognized configs: {unknown}")
    config = {**defaults, **configs}
    if config["group_protocol"] not in ("classic", "consumer"):
        raise KafkaConfigurationError(
            f"group_protocol is 'classic' or 'consumer', not {config['group_protocol']!r}"
        )
    if config["group_remote_assignor"] is not None and config["group_protocol"] == "classic":
        raise KafkaConfigurationError("group_remote_assignor is for group_protocol='consumer'")
    config["api_version"] = version_of(config["api_version"])
    check_kinds(config)
    for key in ("group_id", "group_instance_id", "client_rack", "group_remote_assignor"):
        if config[key] is not None:  # a UUID, a number: kafka-python writes what it is as text
            config[key] = str(config[key])
    for old, new in (("smallest", "earliest"), ("largest", "latest")):
        if config["auto_offset_reset"] == old:
            log.warning("use auto_offset_reset=%s (%s is deprecated)", new, old)
            config["auto_offset_reset"] = new
    check_times(config)
    check_counts(config)
    idle, request = config["connections_max_idle_ms"], config["request_timeout_ms"]
    if idle is None or not config["fetch_max_wait_ms"] < request < idle:
        raise KafkaConfigurationError(
            f"connections_max_idle_ms ({idle}) must be larger than request_timeout_ms ({request}) which "
            f"must be larger than fetch_max_wait_ms ({config['fetch_max_wait_ms']})."
        )
    largest = config["fetch_max_bytes"] + config["max_partition_fetch_bytes"]
    config["receive_message_max_bytes"] = max(config["receive_message_max_bytes"], largest)
    return config


def adapt_to_version(config: dict[str, Any], given: Collection[str]) -> None:
    """Set the timeouts of groups, but for those given, as they are with a broker of that ``api_version``.

    Raises:
        KafkaConfigurationError: an old broker, and two timeouts of which it knows one.
    """
    version = config["api_version"]
    if "session_timeout_ms" not in given and version < (3, 0):
        alone = version < (0, 10, 1) and "max_poll_interval_ms" in given
        config["session_timeout_ms"] = config["max_poll_interval_ms"] if alone else OLD_SESSION_TIMEOUT_MS
    if version < (0, 10, 1):
        if "max_poll_interval_ms" not in given:
            config["max_poll_interval_ms"] = config["session_timeout_ms"]
        if config["max_poll_interval_ms"] != config["session_timeout_ms"]:
            raise KafkaConfigurationError(
                "Broker version %s does not support different values for max_poll_interval_ms and "
                "session_timeout_ms"
            )


def check_config(config: dict[str, Any]) -> None:
    """Refuse what does not go together, wrap plain deserializers, and switch off commits without a group.

    The assignors are checked as the group protocol needs them.

    Raises:
        KafkaConfigurationError: an unknown isolation level, or settings that contradict each other.
    """
    if config["group_instance_id"] is not None and config["group_id"] is None:
        raise KafkaConfigurationError("group_instance_id requires group_id")
    for key in ("key_deserializer", "value_deserializer"):
        if config[key] is not None and not isinstance(config[key], Deserializer):
            warnings.warn(
                f"{key} does not implement kafka.serializer.Deserializer", DeprecationWarning, stacklevel=4
            )
            config[key] = DeserializeWrapper(config[key])
    try:
        IsolationLevel.build_from(config["isolation_level"])
    except ValueError:
        raise KafkaConfigurationError("Unrecognized isolation_level") from None
    strategy = config["partition_assignment_strategy"]
    if config["group_id"] is not None and not strategy:
        raise KafkaConfigurationError("Coordinator requires assignors")
    # Made only for what it raises: intervals that do not fit each other.
    Heartbeat(**{key: config[key] for key in Heartbeat.DEFAULT_CONFIG})
    if config["enable_auto_commit"] and config["group_id"] is None:
        log.warning("group_id is None: disabling auto-commit.")
        config["enable_auto_commit"] = False
    assignors = [one if isinstance(one, AbstractPartitionAssignor) else one() for one in strategy]
    if assignors and not set.intersection(*(set(one.supported_protocols()) for one in assignors)):
        raise KafkaConfigurationError(
            f"Specified partition_assignment_strategy assignors {[one.name for one in assignors]} do not "
            "support a common RebalanceProtocol. Mixing EAGER and COOPERATIVE assignors in a single "
            "consumer is not supported."
        )
