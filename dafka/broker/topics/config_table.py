"""The configuration in effect: the broker's own settings, and those that topics take from it.

Settings that are changed while the broker runs are kept in the log's table ``configs``: ``default`` for all
brokers, the broker's number for this one, and ``16:`` or ``32:`` and the name for subscriptions to metrics of
clients and for groups. A topic's are in its own row (:mod:`dafka.broker.topics.table`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager

from gevent.lock import BoundedSemaphore

from dafka.broker.interface.admin import (
    ConfigEntry,
    ConfigSource,
    ConfigSynonym,
    ConfigType,
    Resource,
    ResourceType,
)
from dafka.broker.limits import OTHERS_KEPT
from dafka.broker.topics.configs import (
    BROKER_KEYS,
    KEYS,
    OLDER_KEYS,
    InvalidConfigError,
    Key,
    TopicSettings,
    read_settings,
)
from dafka.broker.topics.documentation import documentation
from dafka.broker.topics.dynamic_configs import MIN_ISR, UNKNOWN
from dafka.broker.topics.group_configs import within_bounds
from dafka.broker.topics.kafka_configs import broker_keys, client_metrics_keys, group_keys
from dafka.broker.topics.table import Topic
from dafka.commit.writer import Writer
from dafka.log import Log, shapes

CONFIGS = "configs"
SETTINGS_KEPT = 1000  # read, of topics that set something else
ALL_BROKERS = "default"  # the row for every broker; on the wire its name is empty

WITHOUT_DEFAULT = frozenset(("log.flush.interval.ms", "log.roll.ms", "log.roll.jitter.ms"))
"""Settings of the broker that in Kafka have no default themselves: topics' come from other ones."""

_SOURCES = (
    ConfigSource.DYNAMIC_BROKER,
    ConfigSource.DYNAMIC_DEFAULT_BROKER,
    ConfigSource.STATIC_BROKER,
)


class ConfigTable:
    """The configuration of the broker ``node_id``; ``static`` is what it was started with.

    ``is_elr_on()``: whether all brokers have ``min.insync.replicas``, and no broker one of its own.
    """

    def __init__(
        self,
        log: Log,
        writer: Writer,
        node_id: int,
        static: Mapping[str, str],
        is_elr_on: Callable[[], bool] = lambda: True,
    ) -> None:
        self._writer = writer
        self._is_elr_on = is_elr_on
        self._rows = (str(node_id), ALL_BROKERS)
        table = log.table(CONFIGS, shapes.rows(shapes.any_key, shapes.mapping_of(shapes.text)))
        self._changed: dict[str, dict[str, str]] = {row: dict(value) for row, value in table.items()}
        self._static = dict(static)
        self._version = 0
        self._shared: tuple[tuple[int, bool], dict[str, ConfigEntry]] | None = None
        self._read: tuple[int, dict[tuple[tuple[str, str], ...], TopicSettings]] = (0, {})  # in which version
        self._changing = BoundedSemaphore(1)

    @property
    def version(self) -> int:
        """A number that grows with each change."""
        return self._version

    def settings(self, topic: Topic | None) -> TopicSettings:
        """The settings of a topic; None: of a topic without settings of its own."""
        if topic is None:
            return self._settings_of({})
        known = topic.settings
        if known is None or known[0] != self._version:
            known = topic.settings = (self._version, self._settings_of(topic.configs))
        return known[1]

    def _settings_of(self, configs: Mapping[str, str]) -> TopicSettings:
        """The settings of all topics that set the same: to read them takes a tenth of a millisecond."""
        if self._read[0] != self._version:
            self._read = self._version, {}
        read, key = self._read[1], tuple(configs.items())
        found = read.get(key)
        if found is None:
            if len(read) >= SETTINGS_KEPT:
                read.clear()
            found = read[key] = read_settings(lambda name: self._in_effect(configs, name))
        return found

    # -- describing -----------------------------------------------------------------------------

    def of_topic(self, configs: Mapping[str, str]) -> dict[str, ConfigEntry]:
        """All settings of a topic that sets ``configs``; topics share the entries of what they do not set."""
        of = (self._version, self._is_elr_on())
        if self._shared is None or self._shared[0] != of:
            names = sorted(KEYS.keys() - OLDER_KEYS)
            self._shared = of, {name: self._topic_entry({}, name) for name in names}
        shared = self._shared[1]
        own = {name: self._topic_entry(configs, name) for name in configs if name in KEYS}
        if own.keys() <= shared.keys():
            return {**shared, **own}
        return dict(sorted({**shared, **own}.items()))

    def _topic_entry(self, configs: Mapping[str, str], name: str) -> ConfigEntry:
        key = KEYS[name]
        return _entry(name, key, self._chain(configs, name), key.broker in ("", *WITHOUT_DEFAULT))

    def of_broker(self) -> dict[str, ConfigEntry]:
        """All settings of this broker."""
        older = {KEYS[name].broker for name in OLDER_KEYS}
        keys = broker_keys()
        unknown = {name for row in self._rows for name in self._changed.get(row, {}) if name not in keys}
        chains = {name: self._broker_chain(name) for name in sorted({*keys, *unknown})}
        return {
            name: _entry(name, keys.get(name, UNKNOWN), chain)
            for name, chain in chains.items()
            if name not in older or len(chain) > 1  # so it is set
        }

    def of_all_brokers(self) -> dict[str, ConfigEntry]:
        """The settings for all brokers that were made while running."""
        source = ConfigSource.DYNAMIC_DEFAULT_BROKER
        keys = broker_keys()
        return {
            name: _entry(name, keys.get(name, UNKNOWN), [ConfigSynonym(name, value, source)])
            for name, value in sorted(self.changed(ALL_BROKERS).items())
        }

    def of_other(self, type_: int, name: str) -> dict[str, ConfigEntry]:
        """All settings of a group or of a subscription to metrics of clients."""
        is_group = type_ == ResourceType.GROUP
        source = ConfigSource.GROUP if is_group else ConfigSource.CLIENT_METRICS
        configs = self.changed(row_of(type_, name))
        entries = {}
        for setting, key in sorted((group_keys() if is_group else client_metrics_keys()).items()):
            chain = [ConfigSynonym(setting, configs[setting], source)] if setting in configs else []
            if key.broker in broker_keys():
                chain += self._broker_chain(key.broker)
            else:  # a few have a name there, but no setting
                chain.append(ConfigSynonym(key.broker or setting, key.default, ConfigSource.DEFAULT))
            entries[setting] = _entry(setting, key, chain, not is_group)
        return entries

    def of_group(self, group: str, setting: str) -> str:
        """A setting of a group that is in effect."""
        own = self._changed.get(row_of(ResourceType.GROUP, group), {}).get(setting)
        value = self.broker_value(group_keys()[setting].broker) if own is None else own
        return within_bounds(setting, value, self.broker_value)

    def broker_value(self, name: str) -> str:
        """A setting of the broker that is in effect."""
        if name in broker_keys():
            return str(self._broker_chain(name)[0].value)
        return next(str(key.default) for key in group_keys().values() if key.broker == name)

    def others(self) -> list[Resource]:
        """The groups and subscriptions with settings of their own."""
        rows = (row.partition(":") for row in sorted(self._changed))
        return [Resource(int(type_), name) for type_, colon, name in rows if colon]

    def _in_effect(self, configs: Mapping[str, str], name: str) -> str:
        return str(self._chain(configs, name)[0].value)

    def _chain(self, configs: Mapping[str, str], name: str) -> list[ConfigSynonym]:
        key = KEYS[name]
        chain = [ConfigSynonym(name, configs[name], ConfigSource.TOPIC)] if name in configs else []
        if key.broker:
            return chain + self._broker_chain(key.broker)
        return [*chain, ConfigSynonym(name, key.default, ConfigSource.DEFAULT)]

    def is_compacted(self, configs: Mapping[str, str]) -> bool:
        """Whether a topic is compacted that sets ``configs``."""
        return "compact" in KEYS["cleanup.policy"].check(self._in_effect(configs, "cleanup.policy"))

    def compacts_by_default(self, row: str, configs: Mapping[str, str]) -> bool:
        """Whether topics without a policy of their own are compacted if ``configs`` are what was set while
        running in a row."""
        name = KEYS["cleanup.policy"].broker
        policy = self._broker_chain(name, {**self._changed, row: dict(configs)})[0].value
        return "compact" in KEYS["cleanup.policy"].check(str(policy))

    def _broker_chain(
        self, name: str, changed: Mapping[str, Mapping[str, str]] | None = None
    ) -> list[ConfigSynonym]:
        changed = self._changed if changed is None else changed
        places = (*(self._in_row(row, changed) for row in self._rows), self._static)
        chain = [
            ConfigSynonym(name, place[name], source)
            for place, source in zip(places, _SOURCES, strict=True)
            if name in place
        ]
        key = BROKER_KEYS.get(name) or broker_keys().get(name)
        if key is None:
            return chain
        return [*chain, ConfigSynonym(name, key.default, ConfigSource.DEFAULT)]

    # -- changing -------------------------------------------------------------------------------

    def changed(self, row: str) -> dict[str, str]:
        """The values set while the broker ran: for all brokers, this one, or the row of :func:`row_of`."""
        return dict(self._in_row(row, self._changed))

    def _in_row(self, row: str, changed: Mapping[str, Mapping[str, str]]) -> Mapping[str, str]:
        found = changed.get(row, {})
        if row not in self._rows or not self._is_elr_on():
            return found
        if row == ALL_BROKERS:
            return found if MIN_ISR in found else {MIN_ISR: str(KEYS[MIN_ISR].default), **found}
        return (
            {name: value for name, value in found.items() if name != MIN_ISR} if MIN_ISR in found else found
        )

    def unchanging(self) -> AbstractContextManager[object]:
        """For a ``with`` block in which :meth:`change` waits; waits as a green thread."""
        return self._changing  # type: ignore[no-any-return]

    def change(self, row: str, change: Callable[[Mapping[str, str]], dict[str, str]]) -> None:
        """Replace what is set in a row by ``change(what was set)``, and pass on what that raises.

        Raises InvalidConfigError if there are OTHERS_KEPT others already.

        Waits as a green thread for the commit, one change at a time; raises what the log raises.
        """
        with self._changing:
            configs = change(self.changed(row))
            if row not in self._changed and len(self._changed) >= OTHERS_KEPT:
                raise InvalidConfigError(f"{OTHERS_KEPT} groups and others have settings already")
            self._writer.put_and_wait({(CONFIGS, row): configs or None})
            if configs:
                self._changed[row] = configs
            else:
                self._changed.pop(row, None)
            self._version += 1


def row_of(type_: int, name: str) -> str:
    """The row of a group, or of a subscription to metrics of clients."""
    return f"{int(type_)}:{name}"


def _entry(name: str, key: Key, chain: Sequence[ConfigSynonym], without_default: bool = False) -> ConfigEntry:
    """``chain`` has its values, the one in effect first; ``without_default``: tools see no default."""
    sensitive = key.type == ConfigType.PASSWORD or key is UNKNOWN
    if sensitive:
        chain = [one._replace(value=None) for one in chain]
    first = chain[0]
    return ConfigEntry(
        name,
        first.value,
        ConfigSource(first.source),
        read_only=key.read_only,
        sensitive=sensitive,
        type=ConfigType(key.type),
        documentation=documentation().get(name),
        synonyms=[
            one
            for one in chain
            if one.source != ConfigSource.DEFAULT or not (without_default or one.value is None)
        ],
    )
