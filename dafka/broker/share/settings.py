"""The settings of share groups: those of the group, and where it has none those of the broker."""

from __future__ import annotations

from typing import NamedTuple

from dafka.broker.limits import GROUP_MAX_SIZE
from dafka.broker.share import limits
from dafka.broker.share.acquisition import Terms
from dafka.broker.topics.config_table import ConfigTable
from dafka.broker.topics.durations import seconds_of

EARLIEST, LATEST, BY_DURATION = "earliest", "latest", "by_duration"

_KEPT = 10_000  # groups whose settings are kept until settings change


class ShareSettings(NamedTuple):
    """``session``, ``heartbeat`` and ``interval``, the time between targets, in seconds. ``reset`` is where a
    group begins: EARLIEST, LATEST, or BY_DURATION, with ``duration`` in seconds."""

    session: float
    heartbeat: float
    interval: float
    reset: str
    duration: float
    read_committed: bool
    terms: Terms


class SettingsTable:
    """The settings of all groups."""

    def __init__(self, configs: ConfigTable) -> None:
        self._configs = configs
        self._version = -1
        self._known: dict[str, ShareSettings] = {}
        self._sessions: int | None = None
        self._size: int | None = None

    @property
    def sessions(self) -> int:
        """How many share sessions there may be; it is set when the broker starts."""
        if self._sessions is None:
            self._sessions = int(str(self._configs.of_broker()["group.share.max.share.sessions"].value))
        return self._sessions

    @property
    def size(self) -> int:
        """How many members a group may have; it is set when the broker starts."""
        if self._size is None:
            self._size = min(int(self._configs.broker_value("group.share.max.size")), GROUP_MAX_SIZE)
        return self._size

    def of(self, group: str) -> ShareSettings:
        """The settings of a group."""
        if self._configs.version != self._version or len(self._known) > _KEPT:
            self._version = self._configs.version
            self._known.clear()
        found = self._known.get(group)
        if found is None:
            found = self._known[group] = self._read(group)
        return found

    def _read(self, group: str) -> ShareSettings:
        def value(name: str) -> str:
            return self._configs.of_group(group, f"share.{name}")

        reset, _, duration = value("auto.offset.reset").partition(":")
        return ShareSettings(
            int(value("session.timeout.ms")) / 1000,
            int(value("heartbeat.interval.ms")) / 1000,
            int(value("assignment.interval.ms")) / 1000,
            reset.lower(),
            seconds_of(duration) if duration else 0.0,
            value("isolation.level").lower() == "read_committed",
            Terms(
                int(value("record.lock.duration.ms")) / 1000,
                int(value("delivery.count.limit")),
                min(int(value("partition.max.record.locks")), limits.RUNS),
                value("renew.acknowledge.enable").lower() == "true",
            ),
        )
