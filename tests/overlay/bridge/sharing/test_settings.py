"""Settings of topics go along with them to other sites."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from overlay.bridge import kafka

from compat.kafka import KafkaAdminClient
from compat.kafka.admin import ConfigResource, ConfigResourceType, NewTopic
from dafka import Broker
from dafka.broker.connecting import connect
from dafka.overlay import Endpoint
from dafka.overlay.bridge.bridge import Bridge
from dafka.overlay.bridge.sharing import settings as settings_module
from dafka.overlay.bridge.sharing import sites
from dafka.overlay.bridge.sharing.settings import Remembered, settings_of, take_over

OWN = {"cleanup.policy": "compact", "retention.ms": "60000", "min.insync.replicas": "1"}
TAKEN = {"cleanup.policy": "compact", "retention.ms": "60000"}


@pytest.fixture
def brokers(tmp_path: Path) -> Iterator[list[str]]:
    with Broker(tmp_path / "berlin") as berlin, Broker(tmp_path / "paris") as paris:
        yield [berlin.bootstrap_servers, paris.bootstrap_servers]


def make(broker: str, topic: str, settings: dict[str, str]) -> None:
    admin = KafkaAdminClient(bootstrap_servers=broker)
    admin.create_topics([NewTopic(topic, 2, 1, topic_configs=settings)])
    admin.close()


def settings_at(broker: str, topic: str) -> dict[str, str] | None:
    connection = connect(broker, 10)
    try:
        found = connection.hub.run(settings_of, connection.broker, [topic])
        return None if topic not in found else dict(found[topic])
    finally:
        connection.close()


def test_told_is_what_a_topic_has_itself_but_for_what_belongs_to_a_site(brokers: list[str]) -> None:
    make(brokers[0], "t", OWN)
    make(brokers[0], "plain", {})
    assert settings_at(brokers[0], "t") == TAKEN
    assert settings_at(brokers[0], "plain") == {}
    assert settings_at(brokers[0], "none") is None


def test_an_existing_topic_gets_them_and_loses_others(brokers: list[str]) -> None:
    make(brokers[0], "t", {"retention.bytes": "1000", "retention.ms": "5"})
    connection = connect(brokers[0], 10)
    try:
        for differs in (True, False):
            assert connection.hub.run(take_over, connection.broker, "t", TAKEN) is differs
        assert not connection.hub.run(take_over, connection.broker, "none", TAKEN)
    finally:
        connection.close()
    assert settings_at(brokers[0], "t") == TAKEN


def test_a_shared_topic_has_them_and_follows_its_source(
    brokers: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sites, "SETTINGS_SECONDS", 0.1)
    berlin, paris = brokers
    make(berlin, "t", OWN)
    with ExitStack() as opened:
        here = opened.enter_context(Endpoint("127.0.0.1:0"))
        there = opened.enter_context(Endpoint(peers=[here.address]))
        opened.enter_context(Bridge(here, berlin, site="berlin", share=["t"]))
        opened.enter_context(Bridge(there, paris, site="paris"))
        kafka.write(berlin, "t", [b"1"], key=b"k")
        kafka.read(paris, "berlin.t", 1)
        kafka.until(lambda: settings_at(paris, "berlin.t") == TAKEN, "the settings of the topic")
        admin = KafkaAdminClient(bootstrap_servers=berlin)
        admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, "t", {"retention.ms": "70000"})])
        admin.close()
        wanted = settings_at(berlin, "t")
        assert wanted is not None and wanted["retention.ms"] == "70000"
        kafka.until(lambda: settings_at(paris, "berlin.t") == wanted, "the change of the settings")


def test_a_value_longer_than_other_sites_take_is_left_out(
    brokers: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    make(brokers[0], "t", OWN)
    monkeypatch.setattr(settings_module, "SETTING_CHARACTERS", len("60000"))
    assert settings_at(brokers[0], "t") == {"retention.ms": "60000"}


def test_what_is_remembered_of_a_site_is_bounded_in_characters_and_changes_are_not_counted_twice(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(settings_module, "SET_CHARACTERS", 10_000)
    remembered = Remembered()
    for number in range(1000):
        assert remembered.put("t", {"retention.ms": "1" * (number % 100)})
    assert not remembered.put("long", {"a": "x" * 10_000})
    assert not remembered.put("many", {str(number): "" for number in range(100)})
    taken = sum(remembered.put(f"topic-{number}", {}) for number in range(1000))
    assert 20 < taken < 50
    assert set(remembered.known) == {"t", *(f"topic-{number}" for number in range(taken))}
    assert remembered.put("t", {})  # less than before
