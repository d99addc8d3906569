"""The settings of a subscription to metrics of clients (KIP-714), refused where Apache Kafka refuses them.

``match`` has pairs such as ``client_id=app-.*``, whose second halves are Java's regular expressions.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from dafka.broker.topics.configs import InvalidConfigError, check_key, check_value
from dafka.broker.topics.kafka_configs import client_metrics_keys

INTERVAL, METRICS, MATCH = "interval.ms", "metrics", "match"
INTERVALS = range(100, 3_600_001)  # ms
MATCHED = (
    *("client_instance_id", "client_id", "client_software_name", "client_software_version"),
    *("client_source_address", "client_source_port"),
)

_CLASS = re.compile(r"\\[pP]\{\w+\}")  # which Python does not know


class WrongValueError(InvalidConfigError):
    """A value that the setting cannot have."""


def check_client_metrics(configs: Mapping[str, str]) -> None:
    """Raise :class:`InvalidConfigError` for an unknown setting and an interval out of bounds, and
    :class:`WrongValueError` for any other wrong value."""
    keys = client_metrics_keys()
    for name in configs:
        check_key(keys, name, "client metrics")
    try:
        for name, value in configs.items():
            check_value(keys, name, value, "client metrics")
    except InvalidConfigError as error:
        raise WrongValueError(str(error)) from None
    for name in (METRICS, MATCH):
        if "" in _items(configs.get(name, "")):
            raise WrongValueError(f"{name} has an empty value")
    if INTERVAL in configs and int(configs[INTERVAL]) not in INTERVALS:
        raise InvalidConfigError(f"{INTERVAL} is from 100 to 3600000 (an hour), not {configs[INTERVAL]}")
    for pattern in _items(configs.get(MATCH, "")):
        if not _is_match(pattern):
            raise WrongValueError(f"illegal client matching pattern: {pattern}")


def _items(value: str) -> list[str]:
    value = value.strip()
    return [one.strip() for one in value.split(",")] if value else []


def _is_match(pattern: str) -> bool:
    name, equals, expression = pattern.partition("=")
    if not equals or not expression or "=" in expression or name.strip() not in MATCHED:
        return False
    try:
        re.compile(_CLASS.sub("x", expression.strip()))
    except re.error:
        return False
    return True
