"""The settings of groups of the newer protocols: their bounds, and those that a broker is started with.

A group takes a setting of its own (``consumer.session.timeout.ms``), or the broker's
(``group.consumer.session.timeout.ms``), which is set when it starts. So are the bounds of both
(``group.consumer.min.session.timeout.ms`` and ``.max.``). Values out of bounds are refused, in the words of
Apache Kafka's GroupConfig and GroupCoordinatorConfig. A value from before a restart with other bounds counts
as the nearest one that is within.

The defaults are Kafka's, but for minima, intervals between assignments and the delay of a first generation:
tests of members that die or join do not wait for 45 s, or for three. They can be set to Kafka's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from dafka.broker.interface.admin import ConfigType
from dafka.broker.topics.configs import InvalidConfigError, Key, check_value, integer
from dafka.broker.topics.kafka_configs import broker_keys, group_keys

Value = Callable[[str], str]
"""The value of a setting."""

BOUNDED = (
    "consumer.heartbeat.interval.ms",
    "consumer.session.timeout.ms",
    "consumer.assignment.interval.ms",
    "share.heartbeat.interval.ms",
    "share.session.timeout.ms",
    "share.record.lock.duration.ms",
    "share.delivery.count.limit",
    "share.partition.max.record.locks",
    "share.assignment.interval.ms",
    "streams.heartbeat.interval.ms",
    "streams.session.timeout.ms",
    "streams.num.standby.replicas",
    "streams.assignment.interval.ms",
)
"""Settings of a group that have bounds, in the order in which Kafka looks at them."""

MAX_STANDBYS = "group.streams.max.standby.replicas"

CLASSIC = (
    "group.initial.rebalance.delay.ms",
    "group.max.session.timeout.ms",
    "group.max.size",
    "group.min.session.timeout.ms",
)
"""Settings of the broker about groups of the classic protocol."""

_OTHERS = (
    *CLASSIC,
    "group.consumer.max.size",
    "group.share.max.size",
    "group.streams.max.size",
    "group.consumer.migration.policy",
    "group.share.max.share.sessions",
    "group.streams.initial.rebalance.delay.ms",
)


REGEX_REFRESH = "group.consumer.regex.refresh.interval.ms"
"""After this time topics of regular expressions are looked for again; not described, as in Apache Kafka."""

REGEX_REFRESH_MS = "600000"
"""Its default."""

_NOT_DESCRIBED = {REGEX_REFRESH: Key(REGEX_REFRESH_MS, integer(1, 2**31 - 1), ConfigType.INT)}


def bounds_of(setting: str) -> tuple[str | None, str]:
    """The broker's settings that are the minimum and the maximum of a group's setting."""
    if setting == "streams.num.standby.replicas":
        return None, MAX_STANDBYS
    kind, _, rest = setting.partition(".")
    return f"group.{kind}.min.{rest}", f"group.{kind}.max.{rest}"


STARTED_WITH = frozenset(
    (
        *_OTHERS,
        *_NOT_DESCRIBED,
        *(name for one in BOUNDED for name in (f"group.{one}", *bounds_of(one)) if name is not None),
    )
)
"""The settings of the broker that it can be started with."""


def check_started_with(settings: Mapping[str, str]) -> None:
    """Raise :class:`InvalidConfigError`, a ValueError, for settings that a broker cannot be started with."""
    keys = {**broker_keys(), **_NOT_DESCRIBED}
    for name, value in settings.items():
        if name not in STARTED_WITH:
            listed = ", ".join(sorted(STARTED_WITH))
            raise InvalidConfigError(f"{name!r} is not one of the settings of groups, which are {listed}")
        check_value(keys, name, value, "broker")

    def value_of(name: str) -> str:
        return settings.get(name, str(keys[name].default))

    if int(value_of("group.max.session.timeout.ms")) < int(value_of("group.min.session.timeout.ms")):
        raise InvalidConfigError("group.max.session.timeout.ms must be at least group.min.session.timeout.ms")
    for setting in BOUNDED:
        least, most = bounds_of(setting)
        if least is not None and int(value_of(most)) < int(value_of(least)):
            raise InvalidConfigError(f"{most} must be greater than or equal to {least}")
        _check_bounds(f"group.{setting}", setting, value_of, value_of)
    for kind in ("consumer", "share", "streams"):
        heartbeat, session = f"group.{kind}.heartbeat.interval.ms", f"group.{kind}.session.timeout.ms"
        if int(value_of(heartbeat)) >= int(value_of(session)):
            raise InvalidConfigError(f"{heartbeat} must be less than {session}")


def check_group(value_of: Value, broker: Value) -> None:
    """Raise :class:`InvalidConfigError` unless the settings in effect of a group fit the broker's bounds."""
    for setting in BOUNDED:
        _check_bounds(setting, setting, value_of, broker)
    for kind in ("consumer", "share", "streams"):
        heartbeat, session = f"{kind}.heartbeat.interval.ms", f"{kind}.session.timeout.ms"
        if int(value_of(heartbeat)) >= int(value_of(session)):
            raise InvalidConfigError(f"{session} must be greater than {heartbeat}")


def check_of_broker(configs: Mapping[str, str], broker: Value) -> None:
    """Raise :class:`InvalidConfigError` for settings of all groups beyond their bounds."""
    for setting in BOUNDED:
        if f"group.{setting}" in configs:
            _check_bounds(f"group.{setting}", setting, configs.__getitem__, broker)


def _check_bounds(name: str, setting: str, value_of: Value, broker: Value) -> None:
    least, most = bounds_of(setting)
    number = int(value_of(name))
    if least is not None and number < int(broker(least)):
        raise InvalidConfigError(f"{name} must be greater than or equal to {least}")
    if number > int(broker(most)):
        raise InvalidConfigError(f"{name} must be less than or equal to {most}")


def within_bounds(setting: str, value: str, broker: Value) -> str:
    """The value of a group's setting, or the nearest one within its bounds."""
    if setting not in BOUNDED:
        return value
    least, most = bounds_of(setting)
    number = min(int(value), int(broker(most)))
    return str(number if least is None else max(number, int(broker(least))))


def check_all(configs: Mapping[str, str], broker: Value) -> None:
    """Raise :class:`InvalidConfigError` for what a group cannot have as settings of its own."""
    keys = group_keys()
    for name, value in configs.items():
        check_value(keys, name, value, "group")
    check_group(lambda name: configs.get(name) or broker(keys[name].broker), broker)
