"""The settings of Apache Kafka that this broker does not have, so that tools find them.

``kafka_configs.json`` is what ``scripts/apache_kafka configs`` prints: all settings of a node, with type and
default. Those of the broker that :data:`~dafka.broker.topics.configs.BROKER_KEYS` lacks are described with
Kafka's default, can be set where Kafka allows it for all brokers, and have no effect. The same is true of
settings of client metrics; those of groups are in :mod:`dafka.broker.topics.group_configs`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from dafka.broker.interface.admin import ConfigType
from dafka.broker.topics.configs import BROKER_KEYS, CLUSTER_WIDE, Key, anything, integer, switch
from dafka.broker.topics.durations import seconds_of

LISTING = "kafka_configs.json"

MIGRATION_POLICIES = ("disabled", "downgrade", "upgrade", "bidirectional")

LOCKS_MAX = 10_000
"""The most that group.share.max.partition.max.record.locks can be: each is one more state to keep."""


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


_POSITIVE, _NATURAL = integer(1, 2**31 - 1), integer(0, 2**31 - 1)

_AT_LEAST = {
    ".standby.replicas": _NATURAL,
    ".assignment.interval.ms": _NATURAL,
    "streams.initial.rebalance.delay.ms": _NATURAL,
    ".max.size": _POSITIVE,
    ".max.share.sessions": _POSITIVE,
}
"""Checks of settings of groups by the ends of their names."""

_LEAST = {
    "session.timeout.ms": "10",
    "heartbeat.interval.ms": "1",
    "record.lock.duration.ms": "10",
    "delivery.count.limit": "1",
    "partition.max.record.locks": "1",
}
"""The minima of settings of groups, which are lower than Kafka's."""

_AT_ONCE = ("consumer.assignment.interval.ms", "share.assignment.interval.ms")
"""Settings of groups that are 0 unless they are set: a new member has its partitions at once."""


_BY_DURATION = "by_duration:"


def _reset(value: str) -> str:
    """Parse where a share group begins to read."""
    if value.startswith(_BY_DURATION):
        seconds_of(value.removeprefix(_BY_DURATION))
    elif value not in ("earliest", "latest"):
        raise ValueError("earliest, latest, or by_duration:PnDTnHnMn.nS")
    return value


def _isolation(value: str) -> str:
    """Parse which records a share group reads."""
    if value not in ("read_committed", "read_uncommitted"):
        raise ValueError("read_committed or read_uncommitted")
    return value


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
    keys = {**_keys("broker"), **BROKER_KEYS}
    for kind in ("consumer", "share", "streams"):
        for name, least in _LEAST.items():
            for part in ("", "min.", "max."):
                whole = f"group.{kind}.{part}{name}"
                if whole in keys:
                    default = least if part == "min." else keys[whole].default
                    keys[whole] = keys[whole]._replace(default=default, check=_POSITIVE)
    for name in _AT_ONCE:
        keys[f"group.{name}"] = keys[f"group.{name}"]._replace(default="0")
    _check_more(keys)
    locks, policy = "group.share.max.partition.max.record.locks", "group.consumer.migration.policy"
    keys[locks] = keys[locks]._replace(check=integer(1, LOCKS_MAX))
    keys[policy] = keys[policy]._replace(check=migration_policy)
    return keys


@cache
def group_keys() -> Mapping[str, Key]:
    """The keys of a group."""
    keys = _keys("group")
    for name in _AT_ONCE:
        keys[name] = keys[name]._replace(default="0")
    _check_more(keys)
    for name, check in (("share.auto.offset.reset", _reset), ("share.isolation.level", _isolation)):
        keys[name] = keys[name]._replace(check=check)
    return keys


def _check_more(keys: dict[str, Key]) -> None:
    """Give settings of groups the checks that they have in Apache Kafka besides their types."""
    for end, check in _AT_LEAST.items():
        for name in [name for name in keys if name.endswith(end)]:
            keys[name] = keys[name]._replace(check=check)


def migration_policy(value: str) -> str:
    """Parse a value of ``group.consumer.migration.policy``."""
    if value.lower() not in MIGRATION_POLICIES:
        raise ValueError(f"one of {', '.join(MIGRATION_POLICIES)}")
    return value.lower()


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
