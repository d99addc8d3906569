"""The settings of Apache Kafka that this broker does not have, so that tools find them.

``kafka_configs.json`` is what ``scripts/apache_kafka configs`` prints: all settings of a node, with type and
default. Those of the broker that :data:`~dafka.broker.topics.configs.BROKER_KEYS` lacks are described with
Kafka's default, can be set where Kafka allows it for all brokers, and have no effect. The same is true of
settings of groups, which belong to newer group protocols than this broker's, and of client metrics.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from dafka.broker.interface.admin import ConfigType
from dafka.broker.topics.configs import BROKER_KEYS, CLUSTER_WIDE, Key, anything, integer, switch

LISTING = "kafka_configs.json"


def _number(value: str) -> float:
    try:
        return float(value)
    except ValueError:
        raise ValueError("a number") from None


_CHECKS: dict[ConfigType, Callable[[str], Any]] = {
    ConfigType.BOOLEAN: switch,
    ConfigType.SHORT: integer(-(2**15), 2**15 - 1),
    ConfigType.INT: integer(-(2**31), 2**31 - 1),
    ConfigType.LONG: integer(-(2**63)),
    ConfigType.DOUBLE: _number,
}


_DURATIONS = frozenset(
    f"{kind}.{name}"
    for kind in ("consumer", "share", "streams")
    for name in ("session.timeout.ms", "heartbeat.interval.ms")
)
"""Settings of groups that have effect here, and are longer than nothing."""


@cache
def listing() -> dict[str, dict[str, dict[str, Any]]]:
    """Settings by their names: of a "topic", the "broker", a "group" and "client-metrics"."""
    found: dict[str, dict[str, dict[str, Any]]] = json.loads(
        files("dafka.broker.topics").joinpath(LISTING).read_text("utf-8")
    )
    return found


@cache
def broker_keys() -> Mapping[str, Key]:
    """All keys of the broker."""
    return {**_keys("broker"), **BROKER_KEYS}


@cache
def group_keys() -> Mapping[str, Key]:
    """The keys of a group."""
    keys = _keys("group")
    for name, key in keys.items():
        if name in _DURATIONS:
            keys[name] = key._replace(check=integer(1, 2**31 - 1))
    return keys


@cache
def client_metrics_keys() -> Mapping[str, Key]:
    """The keys of a subscription to metrics of clients."""
    return _keys("client-metrics")


def _keys(part: str) -> dict[str, Key]:
    keys = {}
    for name, setting in listing()[part].items():
        kind = ConfigType[setting["type"]]
        check = _CHECKS.get(kind, anything)
        update = setting.get("update", CLUSTER_WIDE)
        keys[name] = Key(setting["default"], check, kind, setting.get("broker", ""), update)
    return keys
