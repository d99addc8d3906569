"""An admin client sees the levels of the broker's loggers and changes them."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import pytest
from broker.clients import Client
from kafka.errors import InvalidConfigurationError, InvalidRequestError, UnknownError

from dafka.broker.embedded import loggers
from dafka.broker.interface.admin import (
    BROKER_LOGGER,
    ConfigChange,
    ConfigOperation,
    ConfigSource,
    Resource,
)
from dafka.broker.interface.outcome import Outcome
from dafka.security.audit import audit

THIS = Resource(BROKER_LOGGER, "0")
ADMIN = "dafka.broker.embedded.admin"
SET, DELETE, APPEND = ConfigOperation.SET, ConfigOperation.DELETE, ConfigOperation.APPEND


@pytest.fixture(autouse=True)
def levels() -> Iterator[None]:
    """Every level is afterwards what it was."""
    every = [logging.getLogger(name) for name in ("dafka", ADMIN, "dafka.audit")]
    before = [one.level for one in every]
    yield
    for one, level in zip(every, before, strict=True):
        one.setLevel(level)


def alter(client: Client, *changes: tuple[Any, ...], resource: Resource = THIS, **options: Any) -> Outcome:
    wanted = {resource: [ConfigChange(*change) for change in changes]}
    return client.call("alter_configs", wanted, **options)[resource]


def level(client: Client, name: str) -> str | None:
    (entry,) = client.call("describe_configs", {THIS: [name]})[THIS].entries
    assert entry.source == ConfigSource.DYNAMIC_BROKER_LOGGER
    return entry.value  # type: ignore[no-any-return]


def test_a_level_is_set_and_unset(client):
    logging.getLogger("dafka").setLevel(logging.WARNING)
    assert level(client, ADMIN) == "WARN"
    assert alter(client, (ADMIN, SET, "TRACE")) == Outcome(None)
    assert level(client, ADMIN) == "TRACE"
    assert logging.getLogger(ADMIN).isEnabledFor(logging.DEBUG)
    assert alter(client, (ADMIN, DELETE), ("root", SET, "ERROR")) == Outcome(None)
    assert level(client, ADMIN) == level(client, "root") == "ERROR"
    assert logging.getLogger("dafka").level == logging.ERROR


def test_each_level_has_kafkas_name(client):
    for name in loggers.LEVELS:
        assert alter(client, ("root", SET, name)) == Outcome(None)
        assert level(client, "root") == name
    logging.getLogger("dafka").setLevel(1000)
    assert level(client, "root") == "OFF"


def test_only_the_brokers_loggers_are_listed_and_not_the_audit(client):
    logging.getLogger("somebody.elses")
    found = [one.name for one in client.call("describe_configs", {THIS: None})[THIS].entries]
    assert found == sorted(found)
    assert ADMIN in found
    assert all(name == "root" or name.startswith("dafka.") for name in found)
    assert "dafka.audit" not in found


def test_the_audit_log_stays_as_it_is(client):
    logging.getLogger("dafka").setLevel(logging.INFO)
    audit.setLevel(logging.NOTSET)
    assert alter(client, ("dafka.audit", SET, "FATAL")).error is InvalidConfigurationError
    assert alter(client, ("root", SET, "FATAL")) == Outcome(None)
    assert audit.isEnabledFor(logging.INFO)


def test_the_audit_log_goes_on_to_follow_the_program_when_another_logger_is_changed(client):
    logging.getLogger("dafka").setLevel(logging.ERROR)
    audit.setLevel(logging.NOTSET)
    assert alter(client, (ADMIN, SET, "DEBUG")) == Outcome(None)
    logging.getLogger("dafka").setLevel(logging.INFO)
    assert audit.isEnabledFor(logging.INFO)


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (("nobody", SET, "INFO"), InvalidConfigurationError),
        (("nobody", DELETE), InvalidConfigurationError),
        (("root", SET, "info"), InvalidConfigurationError),
        (("root", SET, "OFF"), InvalidConfigurationError),
        (("root", DELETE), InvalidRequestError),
        (("root", APPEND, "INFO"), InvalidRequestError),
        (("nobody", APPEND, "INFO"), InvalidRequestError),
        (("root", SET, None), InvalidRequestError),
        (("root", 9, "INFO"), UnknownError),
    ],
)
def test_changes_that_kafka_refuses_are_refused_with_its_error(client, change, error):
    before = level(client, "root")
    assert alter(client, ("root", SET, "TRACE"), change).error is not None
    assert alter(client, change).error is error
    assert level(client, "root") == before


def test_levels_are_neither_replaced_nor_those_of_another_broker(client):
    assert alter(client, ("root", SET, "INFO"), replace=True).error is InvalidRequestError
    for name in ("", "9", "x"):
        other = Resource(BROKER_LOGGER, name)
        assert alter(client, ("root", SET, "INFO"), resource=other).error is InvalidRequestError
        assert client.call("describe_configs", {other: None})[other].error is InvalidRequestError


def test_a_change_that_is_only_looked_at_changes_nothing(client):
    before = level(client, "root")
    other = "DEBUG" if before != "DEBUG" else "INFO"
    assert alter(client, ("root", SET, other), validate_only=True) == Outcome(None)
    assert level(client, "root") == before
