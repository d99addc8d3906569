"""Features: their levels go up and down as in Kafka, and stay across restarts."""

from __future__ import annotations

import pytest
from broker.clients import Client
from kafka.errors import InvalidUpdateVersionError, KafkaStorageError

from dafka import Broker
from dafka.broker.embedded import features
from dafka.broker.embedded.features import SUPPORTED
from dafka.broker.interface.features import FeatureUpdate, UpgradeType

NAME = "eligible.leader.replicas.version"
UP, DOWN, FORCED = UpgradeType.UPGRADE, UpgradeType.SAFE_DOWNGRADE, UpgradeType.UNSAFE_DOWNGRADE


@pytest.fixture
def client():
    with Broker() as broker:
        yield Client(broker)


def update(client, level, type_=UP, name=NAME, **more):
    return client.call("update_features", {name: FeatureUpdate(level, type_)}, **more)


def levels(client):
    return client.call("features").levels


def test_a_new_folder_has_the_initial_levels_and_a_level_of_0_is_not_told(client: Client):
    found = client.call("features")
    assert found.epoch == 0
    assert found.levels == {name: one.initial for name, one in SUPPORTED.items() if one.initial}
    assert found.supported == {name: (one.lowest, one.highest) for name, one in SUPPORTED.items()}
    assert "kraft.version" in found.supported.keys() - found.levels.keys()


def test_levels_are_kept_across_restarts_and_each_change_raises_the_epoch(tmp_path):
    with Broker(tmp_path) as broker:
        assert update(Client(broker), 0, DOWN).error is None
        assert update(Client(broker), 1, name="kraft.version").error is None
    with Broker(tmp_path) as broker:
        found = Client(broker).call("features")
        assert (found.epoch, NAME in found.levels, found.levels["kraft.version"]) == (2, False, 1)
        assert update(Client(broker), 0, DOWN).error is None  # it is there
        assert Client(broker).call("features").epoch == 2
        assert update(Client(broker), 1).error is None
        assert Client(broker).call("features").epoch == 3


def test_a_level_of_another_version_of_this_program_is_brought_into_range(tmp_path, monkeypatch):
    monkeypatch.setattr(features, "SUPPORTED", {**SUPPORTED, NAME: features.Supported(0, 5, 5)})
    with Broker(tmp_path) as broker:
        assert update(Client(broker), 4, DOWN).error is None
    monkeypatch.setattr(features, "SUPPORTED", SUPPORTED)
    with Broker(tmp_path) as broker:
        assert levels(Client(broker))[NAME] == 1


REFUSED = [
    (NAME, 1, 0, "upgrade type"),
    (NAME, 1, 4, "upgrade type"),
    (NAME, -1, UP, "cannot be less than 0"),
    (NAME, 2, UP, "Local controller 0 only supports versions 0-1"),
    (NAME, 0, UP, "without setting the upgrade type to either safe or unsafe downgrade"),
    ("metadata.version", 29, DOWN, "might delete metadata information"),
    ("metadata.version", 29, FORCED, "Unsafe metadata downgrade"),
    ("metadata.version", 31, UP, "only supports versions 7-30"),
    ("kraft.version", 1, DOWN, "Can't downgrade to a newer version"),
    ("nonsense", 1, UP, "does not support this feature"),
    ("nonsense", 0, DOWN, "Feature nonsense not found."),
]


@pytest.mark.parametrize(("name", "level", "type_", "why"), REFUSED)
def test_a_level_that_cannot_be_had_is_refused_with_the_reason(client: Client, name, level, type_, why):
    before = client.call("features")
    error, detail = update(client, level, type_, name)
    assert error is InvalidUpdateVersionError
    assert why in detail
    assert name in detail
    assert client.call("features") == before


def test_the_version_of_the_quorum_does_not_go_down(client: Client):
    assert update(client, 1, name="kraft.version").error is None
    assert "Can't downgrade the version" in update(client, 0, FORCED, "kraft.version").detail


def test_all_levels_of_a_request_change_or_none(client: Client):
    wanted = {NAME: FeatureUpdate(0, DOWN), "nonsense": FeatureUpdate(1, UP)}
    assert client.call("update_features", wanted).error is InvalidUpdateVersionError
    assert levels(client)[NAME] == 1


def test_validate_only_changes_no_feature(client: Client):
    assert update(client, 0, DOWN, validate_only=True).error is None
    assert levels(client)[NAME] == 1


def test_a_level_that_cannot_be_written_is_an_error_and_stays(client: Client, monkeypatch):
    def full(rows):
        raise features.LogError("folder", "no space")

    monkeypatch.setattr(client.core._features._writer, "put_and_wait", full)
    assert update(client, 0, DOWN).error is KafkaStorageError
    assert levels(client)[NAME] == 1


def test_a_level_by_its_name(client: Client):
    table = client.core._features
    assert (table.level(NAME), table.level("nonsense")) == (1, 0)
