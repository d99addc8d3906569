"""Each setting that is described says what it means here."""

from __future__ import annotations

import pytest
from broker.clients import Client

from dafka.broker.interface.admin import ConfigType, Resource, ResourceType
from dafka.broker.topics.configs import KEYS
from dafka.broker.topics.documentation import documentation
from dafka.broker.topics.kafka_configs import broker_keys, client_metrics_keys, group_keys

EVERY = [
    Resource(ResourceType.TOPIC, "t"),
    Resource(ResourceType.BROKER, "0"),
    Resource(ResourceType.GROUP, "g"),
    Resource(ResourceType.CLIENT_METRICS, "m"),
]


@pytest.mark.parametrize("resource", EVERY, ids=lambda one: ResourceType(one.type).name)
def test_every_setting_of_a_resource_has_a_text_and_a_type(client: Client, resource: Resource) -> None:
    client.create("t", 1)
    described = client.call("describe_configs", {resource: None})[resource]
    assert described.error is None and len(described.entries) >= 3
    for entry in described.entries:
        assert entry.documentation and entry.documentation.endswith("."), entry.name
        assert entry.type != ConfigType.UNKNOWN, entry.name


def test_all_texts_are_about_settings_and_are_short() -> None:
    known = {*KEYS, *broker_keys(), *group_keys(), *client_metrics_keys()}
    others = {key.broker for key in group_keys().values()}  # which Kafka has no setting of the broker for
    assert known <= documentation().keys() <= known | others
    assert all(len(text) < 300 and "  " not in text for text in documentation().values())


def test_defaults_and_bounds_say_of_what() -> None:
    texts = documentation()
    assert texts["log.retention.ms"] == (
        f"{texts['retention.ms']} This is for topics without retention.ms of their own."
    )
    assert "for groups without share.session.timeout.ms" in texts["group.share.session.timeout.ms"]
    least = texts["group.consumer.min.heartbeat.interval.ms"]
    assert least == "The least that consumer.heartbeat.interval.ms of a group may be."
