"""Which settings of the broker can be changed while it runs; each case as Apache Kafka answers it, but for
how clients log in."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from broker.clients import Client
from kafka.errors import InvalidConfigurationError, InvalidRequestError

from dafka import Broker
from dafka.broker.interface.admin import ConfigChange, ConfigOperation, Resource, ResourceType
from dafka.broker.interface.outcome import Outcome
from dafka.broker.topics import dynamic_configs
from dafka.broker.topics.configs import InvalidConfigError
from dafka.broker.topics.dynamic_configs import MIN_ISR, base_of, check_broker_configs, check_unknown

BROKER, ALL_BROKERS = Resource(ResourceType.BROKER, "0"), Resource(ResourceType.BROKER, "")
SET, DELETE, APPEND = ConfigOperation.SET, ConfigOperation.DELETE, ConfigOperation.APPEND


def alter(client: Client, resource: Resource, *changes: tuple[Any, ...], **options: Any) -> Outcome:
    wanted = {resource: [ConfigChange(*change) for change in changes]}
    return client.call("alter_configs", wanted, **options)[resource]


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("num.partitions", "3", "set when the broker starts"),
        ("max.connections", "many", "max.connections"),
        ("ssl.keystore.password", "secret", "for a listener only"),
        ("listener.name.x.ssl.keystore.password", "secret", "said when the broker starts"),
        ("listener.name.x.sasl.enabled.mechanisms", "PLAIN", "said when the broker starts"),
        ("listener.name.x.sasl.jaas.config", "secret", "said when the broker starts"),
        ("listener.name.x.scram-sha-256.sasl.jaas.config", "secret", "said when the broker starts"),
        ("listener.name.x.max.connections", "many", "max.connections"),
        ("listeners", "PLAINTEXT://127.0.0.1:0", "set when the broker starts"),
    ],
)
def test_a_setting_of_the_broker_that_cannot_change_is_refused_by_name(name: str, value: str, says: str):
    with pytest.raises(InvalidConfigError, match=says) as raised:
        check_broker_configs({"message.max.bytes": "3000", name: value})
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize("name", ["listener.name.x.nothing", "cordoned.log.dirs", "ssl.protocol"])
def test_settings_of_one_broker_are_not_those_of_all(name: str):
    with pytest.raises(InvalidConfigError, match="one broker only"):
        check_broker_configs({name: "x"}, all_brokers=True)


def test_settings_of_a_listener_have_the_name_behind_it():
    assert base_of("listener.name.x.max.connections") == "max.connections"
    assert base_of("max.connections") == "max.connections"
    check_broker_configs({"listener.name.x.max.connections": "5"}, all_brokers=True)
    check_broker_configs({"listener.name.x.y.z": "5", "listener.name.x.broker.id": "7"})


def test_a_setting_that_nobody_knows_is_kept_and_never_shown(caplog):
    with Broker() as broker, caplog.at_level(logging.INFO, logger="dafka"):
        client = Client(broker)
        assert alter(client, ALL_BROKERS, ("no.such.key", SET, "a secret")) == Outcome(None)
        assert alter(client, BROKER, ("", SET, "a secret")) == Outcome(None)
        (entry,) = client.call("describe_configs", {BROKER: ["no.such.key"]})[BROKER].entries
        assert (entry.value, entry.sensitive, entry.read_only) == (None, True, True)
        assert client.core._configs.changed("default")["no.such.key"] == "a secret"
        assert alter(client, ALL_BROKERS, ("no.such.key", DELETE)) == Outcome(None)
        assert "no.such.key" not in client.core._configs.changed("default")
    assert "no.such.key is [hidden]" in caplog.text
    assert "a secret" not in caplog.text


def test_no_setting_begins_a_line_of_the_log(caplog):
    with Broker() as broker, caplog.at_level(logging.INFO, logger="dafka"):
        client = Client(broker)
        assert alter(client, BROKER, ("a\nCRITICAL", SET, "b")) == Outcome(None)
    assert "settings of broker '0': a\\nCRITICAL is [hidden]" in caplog.text
    assert not [one for one in caplog.messages if "\n" in one]


def test_nothing_is_added_to_what_is_no_list(client):
    for name in ("no.such.key", "message.max.bytes"):
        assert alter(client, BROKER, (name, APPEND, "5")).error is InvalidConfigurationError


def test_so_many_unknown_settings_are_kept(monkeypatch):
    monkeypatch.setattr(dynamic_configs, "UNKNOWN_SETTINGS", 2)
    monkeypatch.setattr(dynamic_configs, "UNKNOWN_SETTINGS_OCTETS", 10)
    check_unknown({"a": "1234", "b": "1234", "message.max.bytes": "123456789"})
    with pytest.raises(InvalidConfigError, match="3 unknown settings; 2 are kept"):
        check_unknown({"a": "1", "b": "2", "c": "3"})
    with pytest.raises(InvalidConfigError, match="11 octets; 10 octets"):
        check_unknown({"a": "12345", "b": "1234"})


def test_min_insync_replicas_is_of_all_brokers_and_cannot_be_removed(client):
    assert alter(client, ALL_BROKERS, (MIN_ISR, SET, "2")) == Outcome(None)
    assert alter(client, ALL_BROKERS, (MIN_ISR, DELETE)).error is InvalidConfigurationError
    assert alter(client, ALL_BROKERS, replace=True).error is InvalidConfigurationError
    for change in ((MIN_ISR, SET, "2"), (MIN_ISR, DELETE)):
        assert alter(client, BROKER, change).error is InvalidConfigurationError
    assert alter(client, BROKER, (MIN_ISR, SET, "0")).error is InvalidRequestError
