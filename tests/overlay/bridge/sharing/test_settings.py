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
from dafka.broker.interface.broker import BrokerInterface
from dafka.broker.interface.errors import BrokerStoppedError
from dafka.overlay import Endpoint
from dafka.overlay.bridge.bridge import Bridge
from dafka.overlay.bridge.sharing import settings as settings_module
from dafka.overlay.bridge.sharing import sites, source
from dafka.overlay.bridge.sharing.settings import Remembered, Settings, settings_of, take_over

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


def test_records_that_are_older_than_the_settings_of_their_topic_stop_nothing(brokers: list[str]) -> None:
    berlin, paris = brokers
    make(berlin, "t", {})
    kafka.write(berlin, "t", [b"no key", bytes(50_000)], partition=0)
    kafka.write(berlin, "t", [b"old", bytes(60_000)], key=b"k", partition=0)
    admin = KafkaAdminClient(bootstrap_servers=berlin)
    settings = {"cleanup.policy": "compact", "max.message.bytes": "2000"}
    admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, "t", settings)])
    admin.close()
    kafka.write(berlin, "t", [b"new"], key=b"k", partition=0)
    make(paris, "berlin.t", settings)
    with ExitStack() as opened:
        here = opened.enter_context(Endpoint("127.0.0.1:0"))
        there = opened.enter_context(Endpoint(peers=[here.address]))
        opened.enter_context(Bridge(here, berlin, site="berlin", share=["t"]))
        bridge = opened.enter_context(Bridge(there, paris, site="paris"))
        records = kafka.read(paris, "berlin.t", 3)
        assert [(one.key, len(one.value)) for one in records] == [(b"k", 3), (b"k", 60_000), (b"k", 3)]
        assert bridge.discarded == {"key": 2}
        assert int((settings_at(paris, "berlin.t") or {})["max.message.bytes"]) > 60_000


def test_settings_that_the_broker_could_not_take_are_taken_over_soon_after(
    brokers: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    berlin, paris = brokers
    make(berlin, "t", OWN)
    make(paris, "berlin.t", {})
    attempts: list[str] = []

    def stopped_at_first(broker: BrokerInterface, topic: str, wanted: Settings) -> bool:
        attempts.append(topic)
        if len(attempts) == 1:
            raise BrokerStoppedError("the broker was stopped")
        return take_over(broker, topic, wanted)

    monkeypatch.setattr(source, "take_over", stopped_at_first)
    monkeypatch.setattr(source, "SETTINGS_RETRY_SECONDS", 0.1)
    with ExitStack() as opened:
        here = opened.enter_context(Endpoint("127.0.0.1:0"))
        there = opened.enter_context(Endpoint(peers=[here.address]))
        opened.enter_context(Bridge(here, berlin, site="berlin", share=["t"]))
        opened.enter_context(Bridge(there, paris, site="paris"))
        kafka.until(lambda: settings_at(paris, "berlin.t") == TAKEN, "the settings of the topic")
    assert len(attempts) >= 2


def test_a_value_longer_than_other_sites_take_is_left_out(
    brokers: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    make(brokers[0], "t", OWN)
    monkeypatch.setattr(settings_module, "SETTING_CHARACTERS", len("60000"))
    assert settings_at(brokers[0], "t") == {"retention.ms": "60000"}


def test_settings_remembered_of_a_site_are_bounded_in_characters_and_changes_not_counted_twice(
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
