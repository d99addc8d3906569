"""Features over TCP."""

from __future__ import annotations

from kafka.errors import InvalidUpdateVersionError, NetworkExceptionError
from ports import LOOPBACK

from dafka.broker.embedded.features import SUPPORTED
from dafka.broker.interface.features import FeatureUpdate, UpgradeType

NAME = "eligible.leader.replicas.version"


def test_levels_are_read_and_changed(remote):
    found = remote.features()
    assert found.supported == {name: (one.lowest, one.highest) for name, one in SUPPORTED.items()}
    assert found.levels[NAME] == 1
    down = {NAME: FeatureUpdate(0, UpgradeType.SAFE_DOWNGRADE)}
    assert remote.update_features(down, validate_only=True).error is None
    assert remote.features() == found
    assert remote.update_features(down).error is None
    after = remote.features()
    assert (NAME in after.levels, after.epoch) == (False, found.epoch + 1)


def test_a_level_that_cannot_be_had_is_refused_with_the_reason(remote):
    error, detail = remote.update_features({"nonsense": FeatureUpdate(1)})
    assert error is InvalidUpdateVersionError
    assert "does not support this feature" in detail


def test_a_cluster_that_is_not_there_is_an_error_of_the_change(remote_to, fake):
    fake.brokers[0].stop()
    nobody = remote_to([(LOOPBACK, fake.brokers[0].port)])
    assert nobody.update_features({NAME: FeatureUpdate(1)}).error is NetworkExceptionError
