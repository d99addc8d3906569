"""Which settings of the broker can be changed while it runs, as Kafka's DynamicBrokerConfig has it.

A setting that nobody knows is kept, as in Kafka, where it may be a plugin's: it may be a secret, so its value
is never shown. Settings of one listener are named ``listener.name.<listener>.<setting>``, and of one of its
mechanisms ``listener.name.<listener>.<mechanism>.sasl.jaas.config``. Listeners, and how clients log in, are
said when this broker starts: a change that had no effect might leave a door open that somebody thinks is
shut, so it is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from dafka.broker.interface.admin import ConfigType
from dafka.broker.limits import UNKNOWN_SETTINGS, UNKNOWN_SETTINGS_OCTETS
from dafka.broker.topics.configs import CLUSTER_WIDE, InvalidConfigError, Key, anything, check_value
from dafka.broker.topics.kafka_configs import broker_keys

MIN_ISR = "min.insync.replicas"
"""With the feature ``eligible.leader.replicas.version`` every cluster has this setting, and no broker."""

UNKNOWN = Key(None, anything, ConfigType.UNKNOWN, update="read-only")
"""What is known of a setting that nobody knows."""

_LISTENER = re.compile(r"listener\.name\.[^.]*\.(?:.*\.(?=sasl\.jaas\.config$))?(.*)", re.DOTALL)
_OF_ALL_LISTENERS = ("max.connections", "max.connection.creation.rate", "num.network.threads")
_PER_BROKER, _PER_LISTENER = "per-broker", "per-listener"


class SettledConfigError(InvalidConfigError):
    """A setting that cannot be changed because of a feature."""


def check_broker_configs(configs: Mapping[str, str], *, all_brokers: bool = False) -> None:
    """Raise :class:`InvalidConfigError` for settings that cannot change while the broker runs, for it or for
    all brokers."""
    keys = broker_keys()
    known = [name for name in configs if name in keys]
    _refuse([name for name in known if keys[name].read_only], "set when the broker starts, and not later")
    _refuse([name for name in known if keys[name].update == _PER_LISTENER], "can be set for a listener only")
    for name, value in configs.items():
        base = base_of(name)
        if base in keys:
            check_value(keys, base, value, "broker")
    if all_brokers:
        _refuse([name for name in configs if _is_of_one(name)], "can be set for one broker only")
    _refuse([name for name in configs if _is_of_logins(name)], "said when the broker starts, and not later")


def check_unknown(configs: Mapping[str, str]) -> None:
    """Raise :class:`InvalidConfigError` for more unknown settings than are kept."""
    unknown = {name: value for name, value in configs.items() if name not in broker_keys()}
    if len(unknown) > UNKNOWN_SETTINGS:
        raise InvalidConfigError(f"{len(unknown)} unknown settings; {UNKNOWN_SETTINGS} are kept")
    octets = sum(len(name.encode()) + len(value.encode()) for name, value in unknown.items())
    if octets > UNKNOWN_SETTINGS_OCTETS:
        raise InvalidConfigError(
            f"unknown settings of {octets} octets; {UNKNOWN_SETTINGS_OCTETS} octets are kept"
        )


def check_min_isr(configs: Mapping[str, str], changed: Iterable[str], *, all_brokers: bool) -> None:
    """Raise :class:`SettledConfigError` where what is set for all brokers would be taken back, or one broker
    would be given a value of its own; ``configs`` are what these changes lead to."""
    if all_brokers and MIN_ISR not in configs:
        raise SettledConfigError(f"{MIN_ISR} of all brokers cannot be removed while ELR is enabled")
    if not all_brokers and MIN_ISR in changed:
        raise SettledConfigError(f"{MIN_ISR} of a broker cannot be changed while ELR is enabled")


def base_of(name: str) -> str:
    """The name of a setting without the listener, and the mechanism, whose it is."""
    found = _LISTENER.fullmatch(name)
    return found[1] if found else name


def _is_of_one(name: str) -> bool:
    key = broker_keys().get(name)
    if key is not None:
        return key.update == _PER_BROKER
    return base_of(name) != name and base_of(name) not in _OF_ALL_LISTENERS


def _is_of_logins(name: str) -> bool:
    key = broker_keys().get(base_of(name))
    if key is None or (base_of(name) != name and base_of(name) in _OF_ALL_LISTENERS):
        return False
    if base_of(name) != name and key.read_only:
        return False  # Kafka looks at it no more than at an unknown one
    return key.update != CLUSTER_WIDE or key.type == ConfigType.PASSWORD


def _refuse(names: Iterable[str], why: str) -> None:
    names = sorted(names)
    if names:
        raise InvalidConfigError(f"{why}: {', '.join(names)}")
