"""Administration: configuration is described, altered and kept; records are deleted; space is told."""

from __future__ import annotations

import os

import gevent
import kafka.errors as errors
import pytest
from broker.clients import Client, batch, errors_of
from timing import until

from dafka import Broker
from dafka.broker.interface.admin import (
    ConfigChange,
    ConfigOperation,
    ConfigSource,
    ConfigType,
    DeletedRecords,
    Resource,
    ResourceType,
)
from dafka.broker.interface.broker import EARLIEST, FetchFrom, TopicSpec
from dafka.broker.interface.outcome import Outcome
from dafka.broker.topics.configs import KEYS, OLDER_KEYS
from dafka.broker.topics.kafka_configs import broker_keys
from dafka.log import LogWriteError

TOPIC = Resource(ResourceType.TOPIC, "t")
BROKER = Resource(ResourceType.BROKER, "0")
ALL_BROKERS = Resource(ResourceType.BROKER, "")
SET, DELETE, APPEND, SUBTRACT = ConfigOperation


def described(client: Client, resource: Resource = TOPIC) -> dict:
    found = client.call("describe_configs", {resource: None})[resource]
    assert found.error is None
    assert [entry.name for entry in found.entries] == sorted(entry.name for entry in found.entries)
    return {entry.name: entry for entry in found.entries}


def alter(client: Client, *changes: tuple, resource: Resource = TOPIC, **options: bool) -> Outcome:
    some = [ConfigChange(*change) for change in changes]
    return client.call("alter_configs", {resource: some}, **options)[resource]


def own(client: Client, resource: Resource = TOPIC) -> dict[str, str]:
    """What is set for a topic itself."""
    return {
        name: entry.value
        for name, entry in described(client, resource).items()
        if entry.source == ConfigSource.TOPIC
    }


# -- describing ---------------------------------------------------------------------------------


def test_a_topic_has_every_key_of_kafkas_with_its_type_and_default(client):
    client.create("t")
    found = described(client)
    assert found.keys() == KEYS.keys() - OLDER_KEYS
    entry = found["retention.ms"]
    assert (entry.value, entry.source, entry.type) == ("-1", ConfigSource.DEFAULT, ConfigType.LONG)
    assert not entry.read_only
    assert not entry.sensitive
    assert found["cleanup.policy"].type == ConfigType.LIST
    assert found["preallocate"].type == ConfigType.BOOLEAN
    assert found["min.cleanable.dirty.ratio"].type == ConfigType.DOUBLE
    assert found["max.message.bytes"].type == ConfigType.INT


def test_a_value_names_its_source_and_its_synonyms():
    with Broker(retention_ms=5000) as broker:
        client = Client(broker)
        client.call("create_topics", {"t": TopicSpec(1, {"retention.ms": "1000"})})
        assert alter(client, ("log.retention.ms", SET, "4000"), resource=ALL_BROKERS) == Outcome(None)
        assert alter(client, ("log.retention.ms", SET, "3000"), resource=BROKER) == Outcome(None)
        entry = described(client)["retention.ms"]
        assert (entry.value, entry.source) == ("1000", ConfigSource.TOPIC)
        assert [tuple(synonym) for synonym in entry.synonyms] == [
            ("retention.ms", "1000", ConfigSource.TOPIC),
            ("log.retention.ms", "3000", ConfigSource.DYNAMIC_BROKER),
            ("log.retention.ms", "4000", ConfigSource.DYNAMIC_DEFAULT_BROKER),
            ("log.retention.ms", "5000", ConfigSource.STATIC_BROKER),
            ("log.retention.ms", "-1", ConfigSource.DEFAULT),
        ]
        assert alter(client, ("retention.ms", DELETE)) == Outcome(None)
        assert described(client)["retention.ms"].value == "3000"


def test_the_broker_tells_its_settings_and_which_are_decided_at_its_start(tmp_path):
    with Broker(tmp_path / "data", default_partitions=3, auto_create_topics=False) as broker:
        found = described(Client(broker), BROKER)
        older = {KEYS[name].broker for name in OLDER_KEYS}  # described where they are set
        assert found.keys() == broker_keys().keys() - older
        values = {name: found[name].value for name in ("num.partitions", "auto.create.topics.enable")}
        assert values == {"num.partitions": "3", "auto.create.topics.enable": "false"}
        assert found["log.dirs"].value == str(tmp_path / "data")
        assert found["message.max.bytes"].value == KEYS["max.message.bytes"].default
        assert found["num.partitions"].read_only
        assert found["num.partitions"].source == ConfigSource.STATIC_BROKER
        assert not found["log.retention.ms"].read_only


def test_only_the_names_asked_for_are_described(client):
    client.create("t")
    found = client.call("describe_configs", {TOPIC: ["retention.ms", "no.such", "cleanup.policy"]})[TOPIC]
    assert [entry.name for entry in found.entries] == ["cleanup.policy", "retention.ms"]


@pytest.mark.parametrize(
    ("resource", "error"),
    [
        (Resource(ResourceType.TOPIC, "nowhere"), errors.UnknownTopicOrPartitionError),
        (Resource(ResourceType.TOPIC, "a b"), errors.InvalidTopicError),
        (Resource(ResourceType.BROKER, "7"), errors.InvalidRequestError),
        (Resource(9, "0"), errors.InvalidRequestError),
    ],
)
def test_resources_without_a_configuration_are_refused_by_name(client, resource, error):
    found = client.call("describe_configs", {resource: None})[resource]
    assert found.error is error
    assert found.detail
    outcome = client.call("alter_configs", {resource: [ConfigChange("retention.ms", SET, "1")]})[resource]
    assert outcome.error is error
    assert outcome.detail


# -- altering -----------------------------------------------------------------------------------


def test_settings_are_set_deleted_and_kept_across_a_restart(tmp_path):
    with Broker(tmp_path) as broker:
        client = Client(broker)
        client.create("t")
        changes = [("retention.ms", SET, "1000"), ("retention.bytes", SET, "2000")]
        assert alter(client, *changes) == Outcome(None)
        assert alter(client, ("retention.bytes", DELETE), ("segment.bytes", SET, "100000")) == Outcome(None)
        assert alter(client, ("log.retention.ms", SET, "9"), resource=ALL_BROKERS) == Outcome(None)
        assert alter(client, ("num.io.threads", SET, "9"), resource=BROKER) == Outcome(None)
    with Broker(tmp_path) as broker:
        client = Client(broker)
        assert own(client) == {"retention.ms": "1000", "segment.bytes": "100000"}
        assert described(client, ALL_BROKERS)["log.retention.ms"].value == "9"
        entry = described(client, BROKER)["num.io.threads"]
        assert (entry.value, entry.source) == ("9", ConfigSource.DYNAMIC_BROKER)


def test_replacing_resets_settings_that_are_not_named(client):
    client.call("create_topics", {"t": TopicSpec(1, {"retention.ms": "1000", "segment.ms": "7"})})
    assert alter(client, ("retention.bytes", SET, "5"), replace=True) == Outcome(None)
    assert own(client) == {"retention.bytes": "5"}


def test_lists_are_added_to_and_taken_from(client):
    client.create("t")
    assert alter(client, ("cleanup.policy", APPEND, "compact")) == Outcome(None)
    assert own(client) == {"cleanup.policy": "delete,compact"}
    assert alter(client, ("cleanup.policy", SUBTRACT, "delete")) == Outcome(None)
    assert own(client) == {"cleanup.policy": "compact"}
    assert alter(client, ("cleanup.policy", SUBTRACT, "compact")) == Outcome(None)
    assert own(client) == {"cleanup.policy": ""}
    outcome = alter(client, ("retention.ms", APPEND, "1"))
    assert outcome == Outcome(
        errors.InvalidConfigurationError,
        "retention.ms is not a list; nothing can be added to it or taken from it",
    )


def test_lists_of_client_metrics_are_set_as_a_whole(client):
    metrics = Resource(ResourceType.CLIENT_METRICS, "m")
    assert alter(client, ("metrics", SET, "org.apache."), resource=metrics) == Outcome(None)
    assert alter(client, ("metrics", APPEND, "other."), resource=metrics) == Outcome(
        errors.InvalidConfigurationError,
        "metrics is set as a whole; nothing can be added to it or taken from it",
    )
    assert described(client, metrics)["metrics"].value == "org.apache."


@pytest.mark.parametrize(
    ("resource", "key"),
    [
        (Resource(ResourceType.TOPIC, ""), "retention.ms"),
        (Resource(ResourceType.TOPIC, "a b"), "retention.ms"),
        (Resource(ResourceType.GROUP, ""), "consumer.session.timeout.ms"),
        (Resource(ResourceType.CLIENT_METRICS, ""), "interval.ms"),
    ],
)
def test_other_settings_than_lists_are_not_added_to_whatever_they_belong_to(client, resource, key):
    assert alter(client, (key, APPEND, "1"), resource=resource).error is errors.InvalidConfigurationError
    assert alter(client, (key, SUBTRACT, "1"), resource=resource).error is errors.InvalidConfigurationError
    assert alter(client, (key, SET, "1"), resource=resource).error is not errors.InvalidConfigurationError


@pytest.mark.parametrize(
    ("changes", "error", "says"),
    [
        ([("retention.m", SET, "1")], errors.InvalidConfigurationError, "did you mean retention.ms?"),
        ([("retention.ms", SET, "soon")], errors.InvalidConfigurationError, "not 'soon'"),
        (
            [("min.compaction.lag.ms", SET, "9"), ("max.compaction.lag.ms", SET, "8")],
            errors.InvalidConfigurationError,
            "min.compaction.lag.ms, 9, is more than",
        ),
        ([("retention.ms", SET, None)], errors.InvalidRequestError, "retention.ms has no value"),
        ([("retention.ms", 9, "1")], errors.InvalidRequestError, "9 is not an operation"),
        (
            [("retention.ms", SET, "1"), ("retention.ms", DELETE)],
            errors.InvalidRequestError,
            "retention.ms is there 2 times",
        ),
    ],
)
def test_changes_of_one_resource_are_made_as_a_whole_or_not_at_all(client, changes, error, says):
    client.create("t")
    outcome = alter(client, ("segment.ms", SET, "5"), *changes)
    assert outcome.error is error
    assert says in outcome.detail
    assert own(client) == {}


def test_options_of_the_start_cannot_be_changed_later(client):
    outcome = alter(client, ("num.partitions", SET, "3"), resource=BROKER)
    assert outcome.error is errors.InvalidRequestError
    assert outcome.detail == "set when the broker starts, and not later: num.partitions"


@pytest.mark.parametrize("resource", [TOPIC, BROKER])
def test_changes_under_way_together_are_all_made(client, resource):
    client.create("t")
    name = "{}" if resource == TOPIC else "log.{}"
    wanted = {name.format("retention.ms"): "5000", name.format("retention.bytes"): "7000"}

    def together() -> list[Outcome]:
        calls = [
            gevent.spawn(client.core.alter_configs, {resource: [ConfigChange(key, SET, value)]})
            for key, value in wanted.items()
        ]
        gevent.joinall(calls, raise_error=True)
        return [call.value[resource].error for call in calls]

    assert client.connection.hub.run(together) == [None, None]
    found = described(client, resource)
    assert {key: found[key].value for key in wanted} == wanted


def test_validating_changes_nothing(client):
    client.create("t")
    assert alter(client, ("retention.ms", SET, "1"), validate_only=True) == Outcome(None)
    outcome = alter(client, ("retention.ms", SET, "x"), validate_only=True)
    assert outcome.error is errors.InvalidConfigurationError
    outcome = alter(client, ("log.retention.ms", SET, "1"), resource=ALL_BROKERS, validate_only=True)
    assert outcome == Outcome(None)
    assert own(client) == {}
    assert list(described(client, ALL_BROKERS)) == ["min.insync.replicas"]


def test_a_change_that_cannot_be_written_is_not_made(client, monkeypatch):
    client.create("t")

    def failing(*_):
        raise LogWriteError(client.core.log.path, "no space left")

    with monkeypatch.context() as patch:
        patch.setattr(client.core.log._storage, "commit", failing)
        outcome = alter(client, ("retention.ms", SET, "1"))
    assert outcome == Outcome(errors.KafkaStorageError, "no space left")
    assert own(client) == {}
    assert alter(client, ("retention.ms", SET, "1")) == Outcome(None)


def test_creating_explains_errors_in_words_and_validating_creates_nothing(client):
    specs = {
        "a b": TopicSpec(),
        "many": TopicSpec(10**9),
        "odd": TopicSpec(1, {"retention.ms": "soon"}),
        "good": TopicSpec(2),
    }
    answers = client.call("create_topics", specs, validate_only=True)
    assert errors_of(answers) == {
        "a b": errors.InvalidTopicError,
        "many": errors.PolicyViolationError,
        "odd": errors.InvalidConfigurationError,
        "good": None,
    }
    assert "'a b' cannot be the name" in answers["a b"].detail
    assert "not 1000000000" in answers["many"].detail
    assert "not 'soon'" in answers["odd"].detail
    assert client.call("metadata", None).topics == {}
    client.create("good")
    answers = client.call("create_topics", {"good": TopicSpec()}, validate_only=True)
    assert answers == {"good": Outcome(errors.TopicAlreadyExistsError, "topic 'good' exists")}


# -- deleting records ---------------------------------------------------------------------------


def test_records_below_an_offset_are_deleted_also_inside_a_batch_and_for_good(tmp_path):
    with Broker(tmp_path) as broker:
        client = Client(broker)
        client.create("t")
        client.produce("t", b"0", b"1", b"2")
        client.produce("t", b"3", b"4")
        assert client.call("delete_records", {("t", 0): 4}) == {("t", 0): DeletedRecords(None, 4)}
        assert client.call("delete_records", {("t", 0): 2}) == {("t", 0): DeletedRecords(None, 4)}
    with Broker(tmp_path) as broker:
        client = Client(broker)
        fetched = client.fetch("t", 3)
        assert (fetched.error, fetched.log_start_offset) == (errors.OffsetOutOfRangeError, 4)
        assert client.fetch("t", 4).log_start_offset == 4
        assert client.call("list_offsets", {("t", 0): EARLIEST})["t", 0].offset == 4
        assert client.call("list_offsets", {("t", 0): 0})["t", 0].offset == 4
        assert client.call("delete_records", {("t", 0): -1}) == {("t", 0): DeletedRecords(None, 5)}
        assert client.values("t", 5) == []
        assert client.produce("t", b"5").base_offset == 5
        assert client.values("t", 5) == [b"5"]


def test_impossible_deletions_of_records_are_refused(client):
    client.create("t")
    client.produce("t", b"0")
    specs = {
        "compacted": TopicSpec(1, {"cleanup.policy": "compact"}),
        "both": TopicSpec(1, {"cleanup.policy": "compact,delete"}),
    }
    client.call("create_topics", specs)
    offsets = {("t", 0): 2, ("t", 1): 0, ("nowhere", 0): 0, ("compacted", 0): 0, ("both", 0): 0}
    assert client.call("delete_records", offsets) == {
        ("t", 0): DeletedRecords(errors.OffsetOutOfRangeError),
        ("t", 1): DeletedRecords(errors.UnknownTopicOrPartitionError),
        ("nowhere", 0): DeletedRecords(errors.UnknownTopicOrPartitionError),
        ("compacted", 0): DeletedRecords(errors.PolicyViolationError),
        ("both", 0): DeletedRecords(None, 0),
    }
    assert client.call("delete_records", {("t", 0): -2})["t", 0].error is errors.OffsetOutOfRangeError


def test_a_waiting_fetch_goes_on_over_a_deletion(broker, client):
    client.create("t")
    client.produce("t", b"0")
    hub = client.connection.hub

    def fetch_while_deleting():
        wanted = {("t", 0): FetchFrom(1, 1000)}
        waiting = hub.spawn(lambda: client.core.fetch(wanted, max_wait=100, min_bytes=1, max_bytes=1000))
        while not client.core._record_calls._fetches:
            __import__("gevent").sleep(0.001)
        client.core.delete_records({("t", 0): 1})
        client.core.produce({("t", 0): [batch(b"1")]})
        return waiting.get(timeout=100)

    fetched = hub.run(fetch_while_deleting)["t", 0]
    assert (fetched.error, fetched.log_start_offset, len(fetched.batches)) == (None, 1, 1)


# -- space --------------------------------------------------------------------------------------


def test_the_folder_is_told_with_the_bytes_of_each_partition(tmp_path):
    with Broker(tmp_path / "data") as broker:
        client = Client(broker)
        client.create("t", 2)
        client.create("u")
        client.produce("t", bytes(100_000), partition=1)
        (folder,) = client.call("log_directories")
        assert (folder.error, folder.path) == (None, str(tmp_path / "data"))
        assert folder.sizes.keys() == {("t", 0), ("t", 1), ("u", 0)}
        assert folder.sizes["t", 0] == folder.sizes["u", 0] == 0
        assert 100_000 < folder.sizes["t", 1] < 101_000
        space = os.statvfs(tmp_path)
        assert folder.total_bytes == space.f_frsize * space.f_blocks
        assert 0 < folder.usable_bytes <= folder.total_bytes
        (folder,) = client.call("log_directories", ["u"])
        assert folder.sizes == {("u", 0): 0}
        client.call("delete_records", {("t", 1): -1})
        client.produce("t", b"x", partition=1)
        until(lambda: client.call("log_directories", ["t"])[0].sizes["t", 1] < 1000)
