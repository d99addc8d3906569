"""Configuration by Kafka's keys: the values that each takes, and where a topic takes its values from.

Values are checked when they are set. A topic's own value counts first, then the broker's value for all
topics (under a name of its own: ``log.retention.ms`` for ``retention.ms``), then the default. One default
differs from Kafka's: ``retention.ms`` is -1, because a log inside a program should delete records only if it
is told to.

This broker has no segment files, no replicas and no tiers: the keys for those are accepted, without effect.
Kafka's other settings are in :mod:`dafka.broker.topics.kafka_configs`.
"""

from __future__ import annotations

import difflib
import logging
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from dafka.broker import limits
from dafka.broker.interface.admin import ConfigType
from dafka.broker.limits import BATCH_MAX_BYTES, MESSAGE_MAX_BYTES
from dafka.protocol.compression import is_available
from dafka.protocol.errors import DafkaError

log = logging.getLogger(__name__)

Configs = Mapping[str, str]

CLUSTER_WIDE, READ_ONLY = "cluster-wide", "read-only"  # values of Key.update; Kafka has more

_INT = 2**31 - 1
_LONG = 2**63 - 1
_WHOLE = re.compile(r"\s*[+-]?[0-9]{1,19}\s*", re.ASCII)
_REPLICAS = re.compile(r"\s*(\*|(\d+:\d+(\s*,\s*\d+:\d+)*)?)\s*", re.ASCII)


class InvalidConfigError(DafkaError, ValueError):
    """An unknown configuration key, or an invalid value of a key."""


class Key(NamedTuple):
    """A configuration key.

    ``check`` parses a value; its ValueError says which values are valid. ``type`` is Kafka's. ``broker``:
    the broker's setting that is the default of all topics, "" if there is none. ``update``: whether the key
    can be changed while the broker runs.
    """

    default: str | None
    check: Callable[[str], Any]
    type: int = ConfigType.STRING
    broker: str = ""
    update: str = CLUSTER_WIDE

    @property
    def read_only(self) -> bool:
        """Whether it can be set only when the broker starts."""
        return self.update == READ_ONLY


def integer(least: int, most: int = _LONG) -> Callable[[str], int]:
    """A parser of whole numbers in this range."""

    def check(value: str) -> int:
        number = int(value) if _WHOLE.fullmatch(value) else least - 1
        if not least <= number <= most:
            upper = "" if most == _LONG else f" and {most} or less"
            raise ValueError(f"a whole number, {least} or more{upper}")
        return number

    return check


def _one_of(*values: str) -> Callable[[str], str]:
    def check(value: str) -> str:
        value = value.strip()
        if value not in values:
            raise ValueError(f"one of {', '.join(values)}")
        return value

    return check


def switch(value: str) -> bool:
    """Parse true or false."""
    return _one_of("true", "false")(value.lower()) == "true"


def _local(value: str) -> bool:
    """Parse whether old records are moved to remote storage."""
    if switch(value):
        raise ValueError("false, for there is no remote storage")
    return False


def _policy(value: str) -> frozenset[str]:
    """An empty policy keeps records for ever."""
    parts = frozenset(part.strip() for part in value.split(",")) if value.strip() else frozenset[str]()
    if not parts <= {"delete", "compact"}:
        raise ValueError("delete, compact, compact,delete, or nothing")
    return parts


def _gzip_level(value: str) -> int:
    level = integer(-1, 9)(value)
    if level == 0:
        raise ValueError("-1, or a whole number from 1 to 9")
    return level


def _replicas(value: str) -> str:
    if not _REPLICAS.fullmatch(value):
        raise ValueError("*, or partition:broker,partition:broker,...")
    return value


def _compression(value: str) -> str:
    value = _one_of("producer", "uncompressed", "gzip", "snappy", "lz4", "zstd")(value)
    if value not in ("producer", "uncompressed") and not is_available(value):
        raise ValueError("producer, uncompressed, gzip, or a codec whose library is installed")
    return value


def _fraction(value: str) -> float:
    try:
        number = float(value)
    except ValueError:
        number = -1.0
    if not 0 <= number <= 1:
        raise ValueError("a number from 0 to 1")
    return number


def anything(value: str) -> str:
    """Accept any text."""
    return value


def _long(default: int, least: int, broker: str = "", most: int = _LONG) -> Key:
    return Key(str(default), integer(least, most), ConfigType.LONG, broker)


def _int(default: int, least: int, broker: str = "", most: int = _INT) -> Key:
    return Key(str(default), integer(least, most), ConfigType.INT, broker)


def _boolean(default: str, broker: str = "") -> Key:
    return Key(default, switch, ConfigType.BOOLEAN, broker)


KEYS: dict[str, Key] = {
    "cleanup.policy": Key("delete", _policy, ConfigType.LIST, "log.cleanup.policy"),
    "retention.ms": _long(-1, -1, "log.retention.ms"),
    "retention.bytes": _long(-1, -1, "log.retention.bytes"),
    "delete.retention.ms": _long(86_400_000, 0, "log.cleaner.delete.retention.ms"),
    "min.compaction.lag.ms": _long(0, 0, "log.cleaner.min.compaction.lag.ms"),
    "max.compaction.lag.ms": _long(_LONG, 1, "log.cleaner.max.compaction.lag.ms"),
    "min.cleanable.dirty.ratio": Key("0.5", _fraction, ConfigType.DOUBLE, "log.cleaner.min.cleanable.ratio"),
    "max.message.bytes": _int(MESSAGE_MAX_BYTES, 0, "message.max.bytes"),
    "min.insync.replicas": _int(1, 1, "min.insync.replicas"),
    "message.timestamp.type": Key(
        "CreateTime",
        _one_of("CreateTime", "LogAppendTime"),
        ConfigType.STRING,
        "log.message.timestamp.type",
    ),
    "message.timestamp.before.max.ms": _long(_LONG, 0, "log.message.timestamp.before.max.ms"),
    "message.timestamp.after.max.ms": _long(3_600_000, 0, "log.message.timestamp.after.max.ms"),
    "message.timestamp.difference.max.ms": _long(_LONG, 0, "log.message.timestamp.difference.max.ms"),
    "compression.type": Key("producer", _compression, ConfigType.STRING, "compression.type"),
    "compression.gzip.level": Key("-1", _gzip_level, ConfigType.INT, "compression.gzip.level"),
    "compression.lz4.level": _int(9, 1, "compression.lz4.level", 17),
    "compression.zstd.level": _int(3, -131_072, "compression.zstd.level", 22),
    "segment.bytes": _int(1_073_741_824, 14, "log.segment.bytes"),
    "segment.ms": _long(604_800_000, 1, "log.roll.ms"),
    "segment.jitter.ms": _long(0, 0, "log.roll.jitter.ms"),
    "segment.index.bytes": _int(10_485_760, 4, "log.index.size.max.bytes"),
    "file.delete.delay.ms": _long(60_000, 0, "log.segment.delete.delay.ms"),
    "flush.messages": _long(_LONG, 1, "log.flush.interval.messages"),
    "flush.ms": _long(_LONG, 0, "log.flush.interval.ms"),
    "index.interval.bytes": _int(4096, 0, "log.index.interval.bytes"),
    "preallocate": _boolean("false", "log.preallocate"),
    "unclean.leader.election.enable": _boolean("false", "unclean.leader.election.enable"),
    "message.format.version": Key("3.0-IV1", anything),
    "message.downconversion.enable": _boolean("true"),
    "leader.replication.throttled.replicas": Key("", _replicas, ConfigType.LIST),
    "follower.replication.throttled.replicas": Key("", _replicas, ConfigType.LIST),
    "local.retention.ms": _long(-2, -2, "log.local.retention.ms"),
    "local.retention.bytes": _long(-2, -2, "log.local.retention.bytes"),
    "remote.storage.enable": Key("false", _local, ConfigType.BOOLEAN),
    "remote.log.copy.disable": _boolean("false"),
    "remote.log.delete.on.disable": _boolean("false"),
}
"""The keys of a topic."""

OLDER_KEYS = frozenset(
    ("message.format.version", "message.downconversion.enable", "message.timestamp.difference.max.ms")
)
"""Keys of a topic that Kafka 4 has removed: they are accepted, and described only where they are set.

So are those of the broker from which topics take them."""


def _fixed(default: str, check: Callable[[str], Any], type_: int) -> Key:
    return Key(default, check, type_, "", READ_ONLY)


def _fixed_int(default: float, least: int = 1) -> Key:
    return _fixed(str(round(default)), integer(least, _INT), ConfigType.INT)


BROKER_KEYS: dict[str, Key] = {
    **{key.broker: key._replace(broker="") for key in KEYS.values() if key.broker},
    "advertised.listeners": _fixed("", anything, ConfigType.LIST),
    "auto.create.topics.enable": _fixed("true", switch, ConfigType.BOOLEAN),
    "broker.id": _fixed_int(0, 0),
    "default.replication.factor": _fixed_int(1),
    "delete.topic.enable": _fixed("true", switch, ConfigType.BOOLEAN),
    "group.consumer.max.size": _fixed_int(limits.GROUP_MAX_SIZE),
    "group.initial.rebalance.delay.ms": _fixed_int(1000 * limits.INITIAL_DELAY, 0),
    "group.max.session.timeout.ms": _fixed_int(1000 * limits.SESSION_TIMEOUT_MAX),
    "group.max.size": _fixed_int(limits.GROUP_MAX_SIZE),
    "group.min.session.timeout.ms": _fixed_int(1000 * limits.SESSION_TIMEOUT_MIN),
    "group.share.max.size": _fixed_int(limits.GROUP_MAX_SIZE),
    "group.streams.max.size": _fixed_int(limits.GROUP_MAX_SIZE),
    "listeners": _fixed("", anything, ConfigType.LIST),
    "log.dirs": _fixed("", anything, ConfigType.LIST),
    "log.retention.check.interval.ms": _fixed("300000", integer(1), ConfigType.LONG),
    "node.id": _fixed_int(0, 0),
    "num.partitions": _fixed_int(1),
    "offset.metadata.max.bytes": _fixed_int(limits.OFFSET_METADATA_MAX_BYTES, 0),
    "offsets.retention.check.interval.ms": _fixed(
        str(round(1000 * limits.OFFSETS_CHECK_INTERVAL)), integer(1), ConfigType.LONG
    ),
    "offsets.retention.minutes": _fixed_int(limits.OFFSETS_RETENTION / 60),
    "process.roles": _fixed("broker", anything, ConfigType.LIST),
    "producer.id.expiration.ms": _fixed_int(1000 * limits.PRODUCER_ID_EXPIRATION),
    "transaction.max.timeout.ms": _fixed_int(1000 * limits.TRANSACTION_TIMEOUT_MAX),
    "transactional.id.expiration.ms": _fixed_int(1000 * limits.TRANSACTIONAL_ID_EXPIRATION),
}
"""The keys of the broker that have an effect: the defaults of topics, and what it was started with."""


class TopicSettings(NamedTuple):
    """The settings of a topic; -1: no bound."""

    compacted: bool
    deleted: bool
    retention_ms: int
    retention_bytes: int
    delete_retention_ms: int
    min_compaction_lag_ms: int
    max_compaction_lag_ms: int
    min_dirty_ratio: float
    max_message_bytes: int
    log_append_time: bool
    timestamp_before_max_ms: int
    timestamp_after_max_ms: int
    compression: str
    """``producer``: as it comes; ``uncompressed``, or a codec's name."""


def read_settings(value: Callable[[str], str]) -> TopicSettings:
    """The settings with the values ``value(key)``; the default where a stored value is no longer valid."""

    def read(name: str) -> Any:
        try:
            return KEYS[name].check(value(name))
        except ValueError as error:
            default = str(KEYS[name].default)
            log.warning("%s is %s, not %r; %s is taken", name, error, value(name), default)
            return KEYS[name].check(default)

    policy = read("cleanup.policy")
    before, after = read("message.timestamp.before.max.ms"), read("message.timestamp.after.max.ms")
    either = read("message.timestamp.difference.max.ms")  # the older key for both
    return TopicSettings(
        compacted="compact" in policy,
        deleted="delete" in policy,
        retention_ms=read("retention.ms"),
        retention_bytes=read("retention.bytes"),
        delete_retention_ms=read("delete.retention.ms"),
        min_compaction_lag_ms=read("min.compaction.lag.ms"),
        max_compaction_lag_ms=read("max.compaction.lag.ms"),
        min_dirty_ratio=read("min.cleanable.dirty.ratio"),
        max_message_bytes=min(read("max.message.bytes"), BATCH_MAX_BYTES),
        log_append_time=read("message.timestamp.type") == "LogAppendTime",
        timestamp_before_max_ms=min(before, either),
        timestamp_after_max_ms=min(after, either),
        compression=read("compression.type"),
    )


def check_configs(configs: Configs) -> None:
    """Raise :class:`InvalidConfigError`, naming key and value, for what Kafka refuses as well."""
    for name, value in configs.items():
        check_value(KEYS, name, value, "topic")
    least, most = (
        int(configs.get(name) or str(KEYS[name].default))
        for name in ("min.compaction.lag.ms", "max.compaction.lag.ms")
    )
    if least > most:
        raise InvalidConfigError(
            f"min.compaction.lag.ms, {least}, is more than max.compaction.lag.ms, {most}"
        )


def check_key(keys: Mapping[str, Key], name: str, whose: str) -> Key:
    """The key of that name; raises :class:`InvalidConfigError` if there is none."""
    key = keys.get(name)
    if key is None:
        near = difflib.get_close_matches(name, keys, n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise InvalidConfigError(f"unknown {whose} configuration {name!r}{hint}")
    return key


def check_value(keys: Mapping[str, Key], name: str, value: object, whose: str) -> None:
    """Raise :class:`InvalidConfigError` for an unknown key or an invalid value."""
    key = check_key(keys, name, whose)
    try:
        if not isinstance(value, str):
            raise ValueError("a text")
        key.check(value)
    except ValueError as error:
        raise InvalidConfigError(f"{name} is {error}, not {value!r}") from None
