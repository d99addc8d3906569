"""The administrative part of the embedded broker: configurations, trimming, and the use of the disk."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from kafka.errors import (
    InvalidConfigurationError,
    InvalidRequestError,
    InvalidTopicError,
    KafkaStorageError,
    OffsetOutOfRangeError,
    PolicyViolationError,
    UnknownError,
    UnknownTopicOrPartitionError,
)

from dafka.broker.embedded import loggers
from dafka.broker.embedded.cleaner import LogCleaner
from dafka.broker.embedded.identity import NODE_ID
from dafka.broker.embedded.lifecycle import Lifecycle
from dafka.broker.interface.admin import (
    BROKER_LOGGER,
    AdminInterface,
    ConfigChange,
    ConfigEntry,
    ConfigOperation,
    ConfigType,
    DeletedRecords,
    DescribedConfigs,
    LogDirectory,
    Resource,
    ResourceType,
)
from dafka.broker.interface.groups import Error, TopicPartition
from dafka.broker.interface.outcome import Outcome
from dafka.broker.limits import SETTINGS_CHANGED
from dafka.broker.positions.positions import Positions
from dafka.broker.topics.client_metrics import WrongValueError, check_client_metrics
from dafka.broker.topics.config_table import ALL_BROKERS, ConfigTable, row_of
from dafka.broker.topics.configs import (
    KEYS,
    InvalidConfigError,
    Key,
    check_configs,
    check_key,
)
from dafka.broker.topics.dynamic_configs import (
    SettledConfigError,
    check_broker_configs,
    check_min_isr,
    check_unknown,
)
from dafka.broker.topics.group_configs import check_all, check_of_broker
from dafka.broker.topics.kafka_configs import broker_keys, client_metrics_keys, group_keys
from dafka.broker.topics.table import TopicTable, is_legal
from dafka.hub.completion import run_to_completion
from dafka.hub.hub import Hub
from dafka.hub.turns import Pace, next_turn
from dafka.log import Log, LogError
from dafka.log.repeating import bounded_logger

log = bounded_logger(__name__)

ALL_RECORDS = -1

NAME_OCTETS = 255  # of a group or a subscription with settings

_OPERATIONS = frozenset(map(int, ConfigOperation))
_OF_LISTS = ConfigOperation.APPEND, ConfigOperation.SUBTRACT
_WITH_LISTS: dict[int, Mapping[str, Key]] = {
    ResourceType.TOPIC: KEYS,
    ResourceType.GROUP: {},
    ResourceType.CLIENT_METRICS: {},  # whose lists are set as a whole, as in Kafka
}
_RESOURCES = 8  # described before a look at the clock: 0.2 ms each at most
_PARTITIONS = 1000  # looked at before other green threads have their turn


class AdminCalls(AdminInterface):
    """Answers the calls about configurations, the trimming of partitions, and the use of the disk."""

    def __init__(
        self,
        hub: Hub,
        log: Log,
        topics: TopicTable,
        configs: ConfigTable,
        is_elr_on: Callable[[], bool],
        positions: Positions,
        log_cleaner: LogCleaner,
        lifecycle: Lifecycle,
    ) -> None:
        self._hub = hub
        self._log = log
        self._topics = topics
        self._configs = configs
        self._is_elr_on = is_elr_on
        self._positions = positions
        self._log_cleaner = log_cleaner
        self._lifecycle = lifecycle

    # -- configuration --------------------------------------------------------------------------

    def describe_configs(
        self, resources: Mapping[Resource, Iterable[str] | None]
    ) -> dict[Resource, DescribedConfigs]:
        return {
            Resource(*resource): self._describe_one(*resource, names)
            for resource, names in Pace().over(resources.items(), every=_RESOURCES)
        }

    def _describe_one(self, type_: int, name: str, names: Iterable[str] | None) -> DescribedConfigs:
        error, detail = self._resource_error(type_, name)
        if error is not None:
            return DescribedConfigs(error, (), detail)
        entries: Mapping[str, ConfigEntry]
        if type_ == ResourceType.TOPIC:
            topic = self._topics.get(name)
            assert topic is not None
            entries = self._configs.of_topic(topic.configs)
        elif type_ == BROKER_LOGGER:
            entries = loggers.entries()
        elif type_ == ResourceType.BROKER:
            entries = self._configs.of_broker() if name else self._configs.of_all_brokers()
        else:
            entries = self._configs.of_other(type_, name)
        if names is None:
            return DescribedConfigs(None, list(entries.values()))
        wanted = {one for one in names if one in entries}
        return DescribedConfigs(None, [entry for one, entry in entries.items() if one in wanted])

    def alter_configs(
        self,
        changes: Mapping[Resource, Sequence[ConfigChange]],
        *,
        replace: bool = False,
        validate_only: bool = False,
    ) -> dict[Resource, Outcome]:
        answers = {}
        for resource, some in changes.items():
            try:
                outcome = run_to_completion(
                    self._hub, self._alter_one, *resource, some, replace, validate_only
                )
            except InvalidConfigError as error:
                own = resource[0] in (ResourceType.TOPIC, ResourceType.GROUP)
                own = own or isinstance(error, _NoListError | SettledConfigError | WrongValueError)
                outcome = Outcome(InvalidConfigurationError if own else InvalidRequestError, str(error))
            except (_RequestError, loggers.LoggerRequestError) as error:
                outcome = Outcome(InvalidRequestError, str(error))
            except loggers.LoggerError as error:
                outcome = Outcome(InvalidConfigurationError, str(error))
            except _PolicyError as error:
                outcome = Outcome(PolicyViolationError, str(error))
            except LogError as error:
                self._lifecycle.check()
                outcome = Outcome(KafkaStorageError, str(error))
            answers[Resource(*resource)] = outcome
            if outcome.error is None and not validate_only:
                log.info("settings of %s: %s", _named(*resource), _changes_in_words(resource[0], some))
        if not validate_only:
            self._log_cleaner.configured()
        return answers

    def _alter_one(
        self, type_: int, name: str, changes: Sequence[ConfigChange], replace: bool, validate_only: bool
    ) -> Outcome:
        _check_changes(changes, () if type_ == BROKER_LOGGER else _OPERATIONS)
        if type_ in _WITH_LISTS:  # as in Kafka before it is looked at what they belong to
            _check_lists(changes, _WITH_LISTS[type_])
        if (type_, name) == (ResourceType.TOPIC, ""):
            raise _RequestError("there are no settings of all topics")
        error, detail = self._resource_error(type_, name)
        if error is not None and error is not UnknownTopicOrPartitionError:
            return Outcome(error, detail)
        if type_ == BROKER_LOGGER:
            return _alter_loggers(changes, replace, validate_only)
        if type_ == ResourceType.TOPIC:

            def change(configs: Mapping[str, str]) -> dict[str, str]:
                entries = self._configs.of_topic(configs)
                changed = _changed({} if replace else configs, changes, KEYS, entries, "topic")
                check_configs(changed)
                self._check_policy(name, changed)
                return changed

            if error is not None or validate_only:  # settings are looked at first
                topic = self._topics.get(name)
                change(topic.configs if topic is not None else {})
                return Outcome(error, detail)
            return Outcome(self._topics.configure(name, change))
        row = (name or ALL_BROKERS) if type_ == ResourceType.BROKER else row_of(type_, name)

        def change_own(own: Mapping[str, str]) -> dict[str, str]:
            before = {} if replace else own
            if type_ == ResourceType.BROKER:
                changed = _changed(before, changes, broker_keys(), self._configs.of_broker(), "broker")
                fresh = {key: value for key, value in changed.items() if own.get(key) != value}
                check_broker_configs(fresh, all_brokers=not name)
                check_of_broker(fresh, self._configs.broker_value)
                check_unknown(changed)
                if self._is_elr_on():
                    check_min_isr(changed, [one.name for one in changes], all_brokers=not name)
                self._check_default_policy(row, changed)
                return changed
            entries = self._configs.of_other(type_, name)
            if type_ == ResourceType.GROUP:
                changed = _changed(before, changes, group_keys(), entries, "group")
                check_all(changed, self._configs.broker_value)
                return changed
            changed = _changed(before, changes, client_metrics_keys(), entries, "client metrics")
            check_client_metrics(changed)
            return changed

        if validate_only:
            change_own(self._configs.changed(row))
        else:
            self._configs.change(row, change_own)
        return Outcome(None)

    def _check_policy(self, name: str, configs: Mapping[str, str]) -> None:
        topic = self._topics.get(name)
        if topic is not None and self._configs.is_compacted(configs) and self._positions.begun(topic):
            raise _PolicyError(
                f"topic {name!r} cannot be compacted (cleanup.policy): positions in it have been given out "
                "to clients of ZPER, and compaction would change them"
            )

    def _check_default_policy(self, row: str, configs: Mapping[str, str]) -> None:
        if not self._configs.compacts_by_default(row, configs):
            return
        for topic in Pace().over(self._topics):
            if "cleanup.policy" not in topic.configs and self._positions.begun(topic):
                raise _PolicyError(
                    "log.cleanup.policy cannot be compact: positions in topic "
                    f"{topic.name!r} have been given out to clients of ZPER, and compaction would change "
                    "them; set that topic's own cleanup.policy to delete first"
                )

    def configured(self) -> list[Resource]:
        return self._configs.others()

    def planned_configs(self, configs: Mapping[str, str]) -> list[ConfigEntry]:
        return list(self._configs.of_topic(configs).values())

    def _resource_error(self, type_: int, name: str) -> tuple[Error | None, str]:
        if type_ == ResourceType.TOPIC:
            if self._topics.get(name) is not None:
                return None, ""
            if not is_legal(name):
                return InvalidTopicError, f"{name!r} cannot be the name of a topic"
            return UnknownTopicOrPartitionError, f"there is no topic {name!r}"
        if type_ in (ResourceType.GROUP, ResourceType.CLIENT_METRICS):
            if 0 < len(name.encode()) <= NAME_OCTETS:
                return None, ""
            return InvalidRequestError, f"a group or a subscription has a name of 1 to {NAME_OCTETS} octets"
        if type_ not in (ResourceType.BROKER, BROKER_LOGGER):
            return InvalidRequestError, f"resources of type {type_} have no configuration here"
        if name not in ("", str(NODE_ID)) or (type_ == BROKER_LOGGER and not name):
            return InvalidRequestError, f"there is no broker {name!r}; this one is {NODE_ID}"
        return None, ""

    # -- records --------------------------------------------------------------------------------

    def delete_records(self, offsets: Mapping[TopicPartition, int]) -> dict[TopicPartition, DeletedRecords]:
        return {
            (topic, number): self._delete_below(topic, number, offset)
            for (topic, number), offset in Pace().over(offsets.items())
        }

    def _delete_below(self, name: str, number: int, offset: int) -> DeletedRecords:
        partition = self._topics.partition(name, number)
        if partition is None:
            return DeletedRecords(UnknownTopicOrPartitionError)
        settings = self._configs.settings(partition.topic)
        if settings.compacted and not settings.deleted:
            return DeletedRecords(PolicyViolationError)
        if offset == ALL_RECORDS:
            offset = partition.high_watermark
        if not 0 <= offset <= partition.high_watermark:
            return DeletedRecords(OffsetOutOfRangeError)
        try:
            if offset > partition.log_start:
                run_to_completion(self._hub, self._log_cleaner.trim, partition, offset)
        except LogError as error:
            self._lifecycle.check()
            log.error("deleting records of %r failed: %s", name, error)
            return DeletedRecords(KafkaStorageError)
        return DeletedRecords(None, partition.log_start)

    # -- space ----------------------------------------------------------------------------------

    def log_directories(self, topics: Iterable[str] | None = None) -> list[LogDirectory]:
        wanted = None if topics is None else set(topics)
        sizes: dict[TopicPartition, int] = {}
        for topic in self._topics:
            if wanted is not None and topic.name not in wanted:
                continue
            for partition in topic.partitions:
                sizes[topic.name, partition.number] = partition.bytes
                if len(sizes) % _PARTITIONS == 0:
                    next_turn()
        path = self._log.path
        try:
            space = shutil.disk_usage(path)
        except OSError as error:
            log.error("the file system of %s could not be examined: %s", os.fspath(path), error)
            return [LogDirectory(KafkaStorageError, path, {})]
        return [LogDirectory(None, path, sizes, space.total, space.free)]


def _alter_loggers(changes: Sequence[ConfigChange], replace: bool, validate_only: bool) -> Outcome:
    if not _OPERATIONS.issuperset(one.operation for one in changes):
        return Outcome(UnknownError)  # as in Kafka
    if replace:
        return Outcome(InvalidRequestError, "levels of loggers are changed one by one")
    loggers.check(changes)
    if not validate_only:
        loggers.change(changes)
    return Outcome(None)


def _named(type_: int, name: str) -> str:
    kind = "loggers of" if type_ == BROKER_LOGGER else ResourceType(type_).name.lower().replace("_", " ")
    return f"{kind} {name!r}" if name else f"every {kind}"


def _changes_in_words(type_: int, changes: Sequence[ConfigChange]) -> str:
    """Without the values of settings that nobody knows: they may be secrets."""
    known = broker_keys() if type_ == ResourceType.BROKER else None
    words = {ConfigOperation.DELETE: "is the default again", ConfigOperation.APPEND: "has more of"}
    words[ConfigOperation.SUBTRACT] = "has less of"
    return ", ".join(
        _on_one_line(
            f"{name} {words.get(ConfigOperation(operation), 'is')} {_shown(known, name, value)}".rstrip()
        )
        for name, operation, value in changes
    )


def _shown(known: Mapping[str, Key] | None, name: str, value: str | None) -> str:
    if value is None:
        return ""
    return value if known is None or name in known else "[hidden]"


def _on_one_line(text: str) -> str:
    """What a client has said, in the log: it begins no line of its own there."""
    return text if text.isprintable() else repr(text)[1:-1]


class _RequestError(Exception):
    """The request makes no sense, whatever the settings are."""


class _NoListError(InvalidConfigError):
    """Something is to be added to, or taken from, a setting that is no list."""


class _PolicyError(Exception):
    """The settings are valid, and what they ask for must not be done."""


def _check_changes(changes: Sequence[ConfigChange], operations: Collection[int]) -> None:
    """``operations``: those that there are; empty: any."""
    if len(changes) > SETTINGS_CHANGED:
        raise _RequestError(f"{len(changes)} settings of one resource; {SETTINGS_CHANGED} are the most")
    for name, count in Counter(change.name for change in changes).items():
        if count > 1:
            raise _RequestError(f"{name} is there {count} times")
    for name, operation, value in changes:
        if operations and operation not in operations:
            raise _RequestError(f"{operation} is not an operation on a configuration ({name})")
        if value is None and operation != ConfigOperation.DELETE:
            raise _RequestError(f"{name} has no value")


def _changed(
    configs: Mapping[str, str],
    changes: Sequence[ConfigChange],
    keys: Mapping[str, Key],
    entries: Mapping[str, ConfigEntry],
    whose: str,
) -> dict[str, str]:
    """``configs`` with ``changes`` made; ``entries`` have the values in effect."""
    _check_lists(changes, keys)
    changed = dict(configs)
    for name, operation, value in changes:
        if operation == ConfigOperation.DELETE:  # of an unknown key, too, as Kafka does it
            changed.pop(name, None)
            continue
        if operation == ConfigOperation.SET:
            if whose != "broker":
                check_key(keys, name, whose)
            changed[name] = str(value)
        else:
            before = changed.get(name, entries[name].value)
            changed[name] = _with_parts(str(before), operation, str(value))
    return changed


def _check_lists(changes: Sequence[ConfigChange], keys: Mapping[str, Key]) -> None:
    for name, operation, _ in changes:
        if operation in _OF_LISTS and not (name in keys and keys[name].type == ConfigType.LIST):
            what = "is not a list" if keys else "is set as a whole"
            raise _NoListError(f"{name} {what}; nothing can be added to it or taken from it")


def _with_parts(before: str, operation: int, value: str) -> str:
    parts, given = _parts(before), _parts(value)
    if operation == ConfigOperation.APPEND:
        parts += [part for part in given if part not in parts]
    else:
        parts = [part for part in parts if part not in given]
    return ",".join(parts)


def _parts(value: str) -> list[str]:
    return [part.strip() for part in value.split(",") if part.strip()]
