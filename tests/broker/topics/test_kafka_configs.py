"""Every setting that Apache Kafka has is known here, and what is asked about it is answered as there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from broker.clients import Client
from kafka.errors import InvalidConfigurationError, InvalidRequestError
from timing import until

from dafka import Broker
from dafka.broker.interface.admin import (
    ConfigChange,
    ConfigEntry,
    ConfigOperation,
    ConfigSource,
    ConfigType,
    Resource,
    ResourceType,
)
from dafka.broker.interface.broker import TopicSpec
from dafka.broker.interface.outcome import Outcome
from dafka.broker.topics import kafka_configs
from dafka.broker.topics.configs import KEYS, OLDER_KEYS

ROOT = Path(__file__).resolve().parents[3]
LONG = "DAFKA_TEST_APACHE_KAFKA"
UNAVAILABLE = 77
SET, DELETE = ConfigOperation.SET, ConfigOperation.DELETE

TOPIC, GROUP = Resource(ResourceType.TOPIC, "t"), Resource(ResourceType.GROUP, "g")
BROKER, ALL_BROKERS = Resource(ResourceType.BROKER, "0"), Resource(ResourceType.BROKER, "")
METRICS = Resource(ResourceType.CLIENT_METRICS, "m")

OTHER_DEFAULTS = {"retention.ms"}
STARTED_WITH = {"advertised.listeners", "listeners", "log.dirs", "node.id", "broker.id", "process.roles"}


def listed(part: str) -> dict[str, dict[str, Any]]:
    return kafka_configs.listing()[part]


def described(client: Client, resource: Resource) -> dict[str, ConfigEntry]:
    found = client.call("describe_configs", {resource: None})[resource]
    assert found.error is None, found.detail
    return {entry.name: entry for entry in found.entries}


def alter(client: Client, resource: Resource, *changes: tuple[Any, ...], **options: Any) -> Outcome:
    wanted = {resource: [ConfigChange(*change) for change in changes]}
    return client.call("alter_configs", wanted, **options)[resource]


@pytest.mark.skipif(not os.environ.get(LONG), reason=f"starts Apache Kafka; set {LONG}=1")
def test_the_stored_list_is_apache_kafkas():
    command = [str(ROOT / "scripts" / "apache_kafka"), "configs"]
    environment = {**os.environ, "PYTHON": sys.executable}
    answer = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=170)
    if answer.returncode == UNAVAILABLE:
        pytest.skip(answer.stderr)
    assert answer.returncode == 0, answer.stderr
    assert json.loads(answer.stdout) == kafka_configs.listing()


def test_a_topic_has_the_settings_of_kafka_with_their_types_defaults_and_the_brokers_names(client):
    client.create("t")
    ours = described(client, TOPIC)
    assert ours.keys() == listed("topic").keys()
    for name, theirs in listed("topic").items():
        assert ConfigType(ours[name].type).name == theirs["type"], name
        assert ours[name].value == theirs["default"] or name in OTHER_DEFAULTS
        of_all = name == "min.insync.replicas"  # with eligible leader replicas
        assert ours[name].source == (ConfigSource.DYNAMIC_DEFAULT_BROKER if of_all else ConfigSource.DEFAULT)
        if "broker" in theirs:
            assert KEYS[name].broker == theirs["broker"]


def test_settings_that_kafka_has_removed_are_described_only_where_they_are_set(client):
    client.create("t")
    for name in OLDER_KEYS:
        assert name not in described(client, TOPIC)
        assert alter(client, TOPIC, (name, SET, KEYS[name].default)) == Outcome(None)
        assert described(client, TOPIC)[name].source == ConfigSource.TOPIC
        of_broker = KEYS[name].broker
        if of_broker:
            assert alter(client, BROKER, (of_broker, SET, KEYS[name].default)) == Outcome(None)
            assert described(client, BROKER)[of_broker].source == ConfigSource.DYNAMIC_BROKER


def test_the_broker_has_the_settings_of_kafka_with_their_types(client):
    ours = described(client, BROKER)
    assert ours.keys() == listed("broker").keys()
    for name, theirs in listed("broker").items():
        assert ConfigType(ours[name].type).name == theirs["type"], name
        assert ours[name].sensitive == (theirs["type"] == "PASSWORD")
        if theirs["update"] == "read-only":
            assert ours[name].read_only, name


@pytest.mark.parametrize(("resource", "part"), [(GROUP, "group"), (METRICS, "client-metrics")])
def test_groups_and_metrics_of_clients_have_the_settings_of_kafka(client, resource, part):
    ours = described(client, resource)
    at_once = dict.fromkeys(("consumer.assignment.interval.ms", "share.assignment.interval.ms"), "0")
    assert {
        name: {"type": ConfigType(entry.type).name, "default": entry.value} for name, entry in ours.items()
    } == {
        name: {"type": one["type"], "default": at_once.get(name, one["default"])}
        for name, one in listed(part).items()
    }


@pytest.mark.parametrize(
    ("resource", "change", "error"),
    [
        (GROUP, ("nonsense", SET, "1"), InvalidConfigurationError),
        (GROUP, ("consumer.session.timeout.ms", SET, "soon"), InvalidConfigurationError),
        (Resource(ResourceType.GROUP, ""), ("consumer.session.timeout.ms", SET, "1"), InvalidRequestError),
        (Resource(ResourceType.GROUP, "g" * 300), ("share.auto.offset.reset", SET, "1"), InvalidRequestError),
        (METRICS, ("nonsense", SET, "1"), InvalidRequestError),
        (BROKER, ("num.partitions", SET, "3"), InvalidRequestError),
        (BROKER, ("max.connections", SET, "many"), InvalidRequestError),
        (BROKER, ("ssl.keystore.password", SET, "secret"), InvalidRequestError),
        (ALL_BROKERS, ("ssl.protocol", SET, "TLSv1.2"), InvalidRequestError),
        (BROKER, ("sasl.jaas.config", SET, "secret"), InvalidRequestError),
        (TOPIC, ("compression.gzip.level", SET, "11"), InvalidConfigurationError),
        (Resource(64, "x"), ("a", SET, "b"), InvalidRequestError),
    ],
)
def test_changes_that_kafka_refuses_are_refused_with_its_error(client, resource, change, error):
    client.create("t")
    outcome = alter(client, resource, change)
    assert outcome.error is error
    assert outcome.detail
    assert "secret" not in outcome.detail


def test_a_setting_without_effect_can_be_set_and_is_described(client):
    assert alter(client, ALL_BROKERS, ("num.io.threads", SET, "9")) == Outcome(None)
    assert described(client, ALL_BROKERS)["num.io.threads"].value == "9"
    entry = described(client, BROKER)["num.io.threads"]
    assert (entry.value, entry.source) == ("9", ConfigSource.DYNAMIC_DEFAULT_BROKER)
    assert alter(client, BROKER, ("nonsense", DELETE)) == Outcome(None)


def test_without_a_policy_a_topic_is_neither_compacted_nor_deleted_from():
    limits = {"retention.ms": "0", "retention.bytes": "0"}
    with Broker(retention_check_interval=0.05) as broker:
        client = Client(broker)
        policies = {"kept": "", "deleted": "delete"}
        specs = {name: TopicSpec(1, {**limits, "cleanup.policy": one}) for name, one in policies.items()}
        assert client.change("create_topics", specs) == dict.fromkeys(policies)
        for name in ("kept", "deleted"):
            assert client.produce(name, b"a", b"b").error is None
        until(lambda: client.fetch("deleted", 2).log_start_offset == 2)
        assert client.values("kept") == [b"a", b"b"]
        assert client.call("delete_records", {("kept", 0): 1})["kept", 0] == (None, 1)
