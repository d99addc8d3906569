"""What is configured: the broker's own settings, and how a topic's come about.

Settings that are changed while the broker runs are kept in the log's table ``configs``: ``default`` for all
brokers and the broker's number for this one. A topic's are in its own row (:mod:`dafka.broker.topics`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from gevent.lock import BoundedSemaphore

from dafka.broker.admin_interface import ConfigEntry, ConfigSource, ConfigSynonym, ConfigType
from dafka.broker.configs import (
    BROKER_KEYS,
    KEYS,
    InvalidConfigError,
    Key,
    TopicSettings,
    check_value,
    read_settings,
)
from dafka.broker.topics import Topic
from dafka.log import Log
from dafka.mesh.writer import Writer

CONFIGS = "configs"
ALL_BROKERS = "default"  # the row for every broker; on the wire its name is empty

_SOURCES = (
    ConfigSource.DYNAMIC_BROKER,
    ConfigSource.DYNAMIC_DEFAULT_BROKER,
    ConfigSource.STATIC_BROKER,
)


class ConfigTable:
    """The configuration of the broker ``node_id``; ``static`` is what it was started with."""

    def __init__(self, log: Log, writer: Writer, node_id: int, static: Mapping[str, str]) -> None:
        self._writer = writer
        self._rows = (str(node_id), ALL_BROKERS)
        table = log.table(CONFIGS)
        self._changed: dict[str, dict[str, str]] = {row: dict(table.get(row) or {}) for row in self._rows}
        self._static = dict(static)
        self._version = 0
        self._changing = BoundedSemaphore(1)

    def settings(self, topic: Topic | None) -> TopicSettings:
        """What the configuration of a topic comes down to; None: of one that sets nothing itself."""
        if topic is None:
            return read_settings(lambda name: self._in_effect({}, name))
        known = topic.settings
        if known is None or known[0] != self._version:
            found = read_settings(lambda name: self._in_effect(topic.configs, name))
            known = topic.settings = (self._version, found)
        return known[1]

    # -- describing -----------------------------------------------------------------------------

    def of_topic(self, configs: Mapping[str, str]) -> dict[str, ConfigEntry]:
        """All settings of a topic that sets ``configs``."""
        return {name: _entry(name, key, self._chain(configs, name)) for name, key in sorted(KEYS.items())}

    def of_broker(self) -> dict[str, ConfigEntry]:
        """All settings of this broker."""
        return {
            name: _entry(name, key, self._broker_chain(name)) for name, key in sorted(BROKER_KEYS.items())
        }

    def of_all_brokers(self) -> dict[str, ConfigEntry]:
        """What was set for every broker while running."""
        source = ConfigSource.DYNAMIC_DEFAULT_BROKER
        return {
            name: _entry(name, BROKER_KEYS[name], [ConfigSynonym(name, value, source)])
            for name, value in sorted(self._changed[ALL_BROKERS].items())
            if name in BROKER_KEYS
        }

    def _in_effect(self, configs: Mapping[str, str], name: str) -> str:
        return str(self._chain(configs, name)[0].value)

    def _chain(self, configs: Mapping[str, str], name: str) -> list[ConfigSynonym]:
        key = KEYS[name]
        chain = [ConfigSynonym(name, configs[name], ConfigSource.TOPIC)] if name in configs else []
        if key.broker:
            return chain + self._broker_chain(key.broker)
        return [*chain, ConfigSynonym(name, key.default, ConfigSource.DEFAULT)]

    def _broker_chain(self, name: str) -> list[ConfigSynonym]:
        places = (*(self._changed[row] for row in self._rows), self._static)
        chain = [
            ConfigSynonym(name, place[name], source)
            for place, source in zip(places, _SOURCES, strict=True)
            if name in place
        ]
        return [*chain, ConfigSynonym(name, BROKER_KEYS[name].default, ConfigSource.DEFAULT)]

    # -- changing -------------------------------------------------------------------------------

    def changed(self, row: str) -> dict[str, str]:
        """What was set while running, for :data:`ALL_BROKERS` or a broker by its number."""
        return dict(self._changed[row])

    def change(self, row: str, change: Callable[[Mapping[str, str]], dict[str, str]]) -> None:
        """Set it to what ``change(what was set)`` makes of it, and pass on what that raises.

        Waits as a green thread for the commit, one change at a time; raises what the log raises.
        """
        with self._changing:
            configs = change(self._changed[row])
            self._writer.put_and_wait({(CONFIGS, row): configs or None})
            self._changed[row] = configs
            self._version += 1


def check_broker_configs(configs: Mapping[str, str]) -> None:
    """Raise :class:`InvalidConfigError` for what cannot be set while the broker runs."""
    for name, value in configs.items():
        check_value(BROKER_KEYS, name, value, "broker")
        if BROKER_KEYS[name].read_only:
            raise InvalidConfigError(f"{name} is decided when the broker starts and cannot be changed later")


def _entry(name: str, key: Key, chain: Sequence[ConfigSynonym]) -> ConfigEntry:
    first = chain[0]
    return ConfigEntry(
        name,
        first.value,
        ConfigSource(first.source),
        read_only=key.read_only,
        type=ConfigType(key.type),
        synonyms=chain,
    )
