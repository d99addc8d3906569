"""The broker's loggers, whose levels an admin client can see and change (Kafka's BROKER_LOGGER, KIP-412).

They are the loggers "dafka" and below; "dafka" itself is Kafka's "root". Loggers of the program that the
broker is in are its own affair. So is "dafka.audit": who may change settings may not silence what is noted
about access. Levels have the names that Kafka's have. They are those of the process, and not kept.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from dafka.broker.interface.admin import ConfigChange, ConfigEntry, ConfigOperation, ConfigSource
from dafka.protocol.errors import DafkaError
from dafka.security.audit import audit

ROOT = "root"
OURS = "dafka"

TRACE = 5  # Python has no name for it
LEVELS = {
    "TRACE": TRACE,
    "DEBUG": logging.DEBUG,
    "INFO": logging.INFO,
    "WARN": logging.WARNING,
    "ERROR": logging.ERROR,
    "FATAL": logging.CRITICAL,
}
OFF = "OFF"


class LoggerError(DafkaError):
    """There is no such logger, or no such level."""


class LoggerRequestError(DafkaError):
    """Something that cannot be done with loggers."""


def entries() -> dict[str, ConfigEntry]:
    """The level of each logger, in the order of their names."""
    return {
        name: ConfigEntry(name, _level(one), ConfigSource.DYNAMIC_BROKER_LOGGER)
        for name, one in sorted(_loggers().items())
    }


def check(changes: Sequence[ConfigChange]) -> None:
    """Raise LoggerError or LoggerRequestError for what cannot be changed."""
    known = _loggers()
    for name, operation, value in changes:
        if operation not in (ConfigOperation.SET, ConfigOperation.DELETE):
            raise LoggerRequestError(f"levels of loggers are set or unset, and no lists ({name})")
        if name not in known:
            raise LoggerError(f"there is no logger {name!r}")
        if operation == ConfigOperation.SET and value not in LEVELS:
            raise LoggerError(f"{name} has a level of {', '.join(LEVELS)}, not {value!r}")
        if operation == ConfigOperation.DELETE and name == ROOT:
            raise LoggerRequestError("the level of root cannot be unset")


def change(changes: Sequence[ConfigChange]) -> None:
    """Set and unset levels that :func:`check` has passed."""
    known = _loggers()
    if audit.level == logging.NOTSET and any(one.name == ROOT for one in changes):  # it stays as it is
        audit.setLevel(audit.getEffectiveLevel())
    for name, operation, value in changes:
        known[name].setLevel(LEVELS[str(value)] if operation == ConfigOperation.SET else logging.NOTSET)


def _loggers() -> dict[str, logging.Logger]:
    """The loggers that there are by now, by Kafka's names."""
    found = {
        name: one
        for name, one in list(logging.root.manager.loggerDict.items())
        if isinstance(one, logging.Logger) and name.startswith(f"{OURS}.") and one is not audit
    }
    return {ROOT: logging.getLogger(OURS), **found}


def _level(logger: logging.Logger) -> str:
    """The name of what is logged, and of all above it."""
    effective = logger.getEffectiveLevel()
    return next((name for name, level in LEVELS.items() if effective <= level), OFF)
