"""The configuration in effect: settings made while the broker runs, those it was started with, and
defaults."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import uuid4

import gevent
import pytest
from broker.clients import Client

from dafka import Broker
from dafka.broker.embedded.features import ELR
from dafka.broker.interface.admin import ConfigEntry, ConfigSource, Resource, ResourceType
from dafka.broker.interface.features import FeatureUpdate, UpgradeType
from dafka.broker.topics import config_table
from dafka.broker.topics.config_table import ALL_BROKERS, ConfigTable, row_of
from dafka.broker.topics.configs import InvalidConfigError
from dafka.broker.topics.dynamic_configs import MIN_ISR
from dafka.broker.topics.topic import Topic
from dafka.log import LogWriteError

THIS = "0"  # the row of this broker
KEY, BROKER_KEY = "max.message.bytes", "message.max.bytes"
GROUP = row_of(ResourceType.GROUP, "g")


@pytest.fixture
def table(client: Client) -> ConfigTable:
    return client.core._configs


def change(client: Client, row: str, **configs: object) -> None:
    """Set these values in a row and take all others back."""
    named = {name.replace("_", "."): str(value) for name, value in configs.items()}
    client.connection.hub.run(client.core._configs.change, row, lambda before: named)


def chain(entry: ConfigEntry) -> list[tuple[str, str | None, ConfigSource]]:
    return [(one.name, one.value, ConfigSource(one.source)) for one in entry.synonyms]


def test_a_setting_has_the_value_of_the_nearest_place_that_sets_it(client, table):
    change(client, ALL_BROKERS, message_max_bytes=2000)
    change(client, THIS, message_max_bytes=3000)
    default = chain(table.of_broker()[BROKER_KEY])[-1]
    assert default[2] == ConfigSource.DEFAULT
    entry = table.of_topic({KEY: "4000"})[KEY]
    assert (entry.value, entry.source) == ("4000", ConfigSource.TOPIC)
    assert chain(entry) == [
        (KEY, "4000", ConfigSource.TOPIC),
        (BROKER_KEY, "3000", ConfigSource.DYNAMIC_BROKER),
        (BROKER_KEY, "2000", ConfigSource.DYNAMIC_DEFAULT_BROKER),
        default,
    ]
    assert table.of_topic({})[KEY].value == "3000"
    change(client, THIS)
    assert table.of_topic({})[KEY].value == "2000"


def test_a_default_that_no_setting_of_the_broker_has_is_no_synonym(table):
    topic, broker = table.of_topic({"flush.ms": "5"}), table.of_broker()
    assert chain(topic["flush.ms"]) == [("flush.ms", "5", ConfigSource.TOPIC)]
    for name in ("segment.ms", "segment.jitter.ms", "remote.storage.enable"):
        assert topic[name].value is not None and chain(topic[name]) == []
    assert chain(topic[KEY])[-1][2] == chain(broker[BROKER_KEY])[-1][2] == ConfigSource.DEFAULT
    assert chain(broker["broker.rack"]) == []
    metrics = table.of_other(ResourceType.CLIENT_METRICS, "s")["interval.ms"]
    assert (metrics.value, metrics.source, chain(metrics)) == ("300000", ConfigSource.DEFAULT, [])
    assert chain(table.of_other(ResourceType.GROUP, "g")["share.auto.offset.reset"])


def test_values_set_while_the_broker_runs_go_before_those_it_was_started_with():
    with Broker(retention_ms=5000) as broker:
        client = Client(broker)
        change(client, THIS, log_retention_ms=6000)
        assert chain(client.core._configs.of_broker()["log.retention.ms"])[:2] == [
            ("log.retention.ms", "6000", ConfigSource.DYNAMIC_BROKER),
            ("log.retention.ms", "5000", ConfigSource.STATIC_BROKER),
        ]


def test_the_settings_of_a_topic_follow_a_change_of_the_brokers(client, table):
    client.create("t")
    topic = client.core._topics.get("t")
    before = table.settings(topic)
    assert table.settings(topic) is before
    change(client, THIS, message_max_bytes=3000)
    assert table.settings(topic).max_message_bytes == 3000
    assert table.settings(None).max_message_bytes == 3000


def test_topics_that_set_the_same_share_what_was_read_of_it(client, table, monkeypatch):
    monkeypatch.setattr(config_table, "SETTINGS_KEPT", 2)
    own = {name: Topic(name, uuid4(), {KEY: name} if name else {}) for name in ("", "1000", "2000", "3000")}
    assert [table.settings(topic).max_message_bytes for topic in own.values()][1:] == [1000, 2000, 3000]
    for name in own:
        settings = table.settings(Topic("other", uuid4(), dict(own[name].configs)))
        assert table.settings(Topic("third", uuid4(), dict(own[name].configs))) is settings
        assert settings == table.settings(own[name])
    assert table.settings(None) is table.settings(Topic("other", uuid4(), {}))


def test_a_setting_that_nobody_knows_is_described_without_its_value(client, table):
    change(client, ALL_BROKERS, no_such_setting="secret", message_max_bytes=2000)
    assert list(table.of_all_brokers()) == [BROKER_KEY, MIN_ISR, "no.such.setting"]
    for entry in (table.of_all_brokers()["no.such.setting"], table.of_broker()["no.such.setting"]):
        assert (entry.value, entry.sensitive, entry.read_only) == (None, True, True)
        assert chain(entry) == [("no.such.setting", None, ConfigSource.DYNAMIC_DEFAULT_BROKER)]


def test_with_eligible_leader_replicas_all_brokers_have_min_insync_replicas_and_none_its_own(client, table):
    assert chain(table.of_topic({})[MIN_ISR])[0] == (MIN_ISR, "1", ConfigSource.DYNAMIC_DEFAULT_BROKER)
    change(client, ALL_BROKERS, min_insync_replicas=2)
    change(client, THIS, min_insync_replicas=3)
    assert table.of_topic({})[MIN_ISR].value == "2"
    features = client.core._features
    client.call("update_features", {ELR: FeatureUpdate(0, UpgradeType.UNSAFE_DOWNGRADE)})
    assert not features.is_elr_on()
    assert table.of_topic({})[MIN_ISR].value == "3"


def test_a_change_that_cannot_be_written_has_no_effect(client, table, monkeypatch):
    def fail(*args: Any) -> None:
        raise LogWriteError("/data", "disk full")

    with monkeypatch.context() as failing:
        failing.setattr(client.core.log._storage, "commit", fail)
        with pytest.raises(LogWriteError):
            change(client, THIS, message_max_bytes=3000)
    assert table.changed(THIS) == {}
    assert table.of_broker()[BROKER_KEY].source == ConfigSource.DEFAULT


def test_a_change_gets_the_values_of_the_one_before_it(client, table):
    def add(name: str) -> None:
        def with_name(before: Mapping[str, str]) -> dict[str, str]:
            gevent.sleep(0)
            return {**before, name: "5"}

        table.change(THIS, with_name)

    def both() -> None:
        gevent.joinall([gevent.spawn(add, name) for name in ("a", "b")], raise_error=True)

    client.connection.hub.run(both)
    assert table.changed(THIS) == {"a": "5", "b": "5"}


def test_an_error_in_a_change_is_raised_and_changes_nothing(client, table):
    def refuse(before: Mapping[str, str]) -> dict[str, str]:
        raise InvalidConfigError("no")

    with pytest.raises(InvalidConfigError, match="no"):
        client.connection.hub.run(table.change, THIS, refuse)
    assert table.changed(THIS) == {}


def test_settings_are_kept_across_a_restart_and_those_taken_back_are_not(tmp_path):
    with Broker(tmp_path) as broker:
        client = Client(broker)
        change(client, GROUP, consumer_session_timeout_ms=50_000)
        change(client, row_of(ResourceType.CLIENT_METRICS, "m"), interval_ms=1000)
        change(client, row_of(ResourceType.CLIENT_METRICS, "m"))
        change(client, THIS, message_max_bytes=3000)
    with Broker(tmp_path) as broker:
        table = Client(broker).core._configs
        assert table.others() == [Resource(ResourceType.GROUP, "g")]
        assert table.changed(THIS) == {BROKER_KEY: "3000"}
        assert chain(table.of_other(ResourceType.GROUP, "g")["consumer.session.timeout.ms"])[:2] == [
            ("consumer.session.timeout.ms", "50000", ConfigSource.GROUP),
            ("group.consumer.session.timeout.ms", "45000", ConfigSource.DEFAULT),
        ]
        other = table.of_other(ResourceType.GROUP, "other")["consumer.session.timeout.ms"]
        assert (other.value, other.source) == ("45000", ConfigSource.DEFAULT)


def test_only_so_many_groups_and_subscriptions_have_settings(client, monkeypatch):
    monkeypatch.setattr("dafka.broker.topics.config_table.OTHERS_KEPT", 1)
    change(client, GROUP, share_auto_offset_reset="earliest")
    with pytest.raises(InvalidConfigError, match="1 groups and others have settings already"):
        change(client, row_of(ResourceType.GROUP, "h"), share_auto_offset_reset="earliest")
    change(client, GROUP, share_auto_offset_reset="latest")
