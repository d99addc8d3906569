"""Topic configuration: Kafka's keys, and what each may be set to.

What a topic is created with is checked here and kept with it, so that a mistake is found where it is made.
The broker does not carry any of it out yet. One default differs from Kafka's: ``retention.ms`` is -1, because
a log that lives inside somebody's program should not begin to forget by itself.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from typing import NamedTuple

from dafka.broker.limits import MESSAGE_MAX_BYTES
from dafka.protocol.errors import DafkaError

Configs = Mapping[str, str]


class InvalidConfigError(DafkaError, ValueError):
    """A configuration key that Kafka does not know, or a value that it cannot have."""


class Key(NamedTuple):
    """A key: its default, and what checks a value and raises ValueError saying what it may be."""

    default: str
    check: Callable[[str], object]


def _integer(least: int) -> Callable[[str], int]:
    def check(value: str) -> int:
        try:
            number = int(value)
        except ValueError:
            number = least - 1
        if not least <= number < 2**63:
            raise ValueError(f"a whole number, {least} or more")
        return number

    return check


def _one_of(*values: str) -> Callable[[str], str]:
    def check(value: str) -> str:
        if value not in values:
            raise ValueError(f"one of {', '.join(values)}")
        return value

    return check


def _policy(value: str) -> frozenset[str]:
    parts = frozenset(part.strip() for part in value.split(","))
    if not parts <= {"delete", "compact"}:
        raise ValueError("delete, compact, or compact,delete")
    return parts


def _fraction(value: str) -> float:
    try:
        number = float(value)
    except ValueError:
        number = -1.0
    if not 0 <= number <= 1:
        raise ValueError("a number from 0 to 1")
    return number


def _anything(value: str) -> str:
    return value


KEYS: dict[str, Key] = {
    "cleanup.policy": Key("delete", _policy),
    "retention.ms": Key("-1", _integer(-1)),
    "retention.bytes": Key("-1", _integer(-1)),
    "delete.retention.ms": Key("86400000", _integer(0)),
    "min.compaction.lag.ms": Key("0", _integer(0)),
    "max.message.bytes": Key(str(MESSAGE_MAX_BYTES), _integer(0)),
    "min.insync.replicas": Key("1", _integer(1)),
    "message.timestamp.type": Key("CreateTime", _one_of("CreateTime", "LogAppendTime")),
    "compression.type": Key("producer", _one_of("producer", "uncompressed", "gzip", "snappy", "lz4", "zstd")),
    "segment.bytes": Key("1073741824", _integer(14)),
    "segment.ms": Key("604800000", _integer(1)),
    "segment.jitter.ms": Key("0", _integer(0)),
    "segment.index.bytes": Key("10485760", _integer(4)),
    "max.compaction.lag.ms": Key(str(2**63 - 1), _integer(1)),
    "min.cleanable.dirty.ratio": Key("0.5", _fraction),
    "file.delete.delay.ms": Key("60000", _integer(0)),
    "flush.messages": Key(str(2**63 - 1), _integer(1)),
    "flush.ms": Key(str(2**63 - 1), _integer(0)),
    "index.interval.bytes": Key("4096", _integer(0)),
    "preallocate": Key("false", _one_of("true", "false")),
    "unclean.leader.election.enable": Key("false", _one_of("true", "false")),
    "message.timestamp.before.max.ms": Key(str(2**63 - 1), _integer(0)),
    "message.timestamp.after.max.ms": Key("3600000", _integer(0)),
    "message.timestamp.difference.max.ms": Key(str(2**63 - 1), _integer(0)),
    "message.format.version": Key("3.0-IV1", _anything),
    "message.downconversion.enable": Key("true", _one_of("true", "false")),
    "leader.replication.throttled.replicas": Key("", _anything),
    "follower.replication.throttled.replicas": Key("", _anything),
    "local.retention.ms": Key("-2", _integer(-2)),
    "local.retention.bytes": Key("-2", _integer(-2)),
    "remote.storage.enable": Key("false", _one_of("true", "false")),
}


def check_configs(configs: Configs) -> None:
    """Raise :class:`InvalidConfigError`, with the key and the value, for what Kafka would not take."""
    for name, value in configs.items():
        key = KEYS.get(name)
        if key is None:
            near = difflib.get_close_matches(name, KEYS, n=1)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise InvalidConfigError(f"unknown topic configuration {name!r}{hint}")
        try:
            key.check(value)
        except ValueError as error:
            raise InvalidConfigError(f"{name} is {error}, not {value!r}") from None
