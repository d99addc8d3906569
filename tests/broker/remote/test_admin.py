"""Configuration, deletion of records and folders over TCP."""

from __future__ import annotations

from broker.clients import batch
from kafka.errors import (
    InvalidConfigurationError,
    OffsetOutOfRangeError,
)

from dafka.broker.interface.admin import ConfigChange, ConfigOperation, Resource, ResourceType


def test_configuration_is_described_and_changed(remote, topic):
    resource = Resource(ResourceType.TOPIC, topic)
    change = ConfigChange("retention.ms", ConfigOperation.SET, "100000")
    assert remote.alter_configs({resource: [change]})[resource].error is None
    (entry,) = remote.describe_configs({resource: ["retention.ms"]})[resource].entries
    assert (entry.name, entry.value) == ("retention.ms", "100000")
    assert remote.alter_configs({resource: []}, replace=True)[resource].error is None
    (entry,) = remote.describe_configs({resource: ["retention.ms"]})[resource].entries
    assert entry.value != "100000"
    wrong = ConfigChange("retention.ms", ConfigOperation.SET, "soon")
    outcome = remote.alter_configs({resource: [wrong]})[resource]
    assert outcome.error is InvalidConfigurationError
    assert "soon" in outcome.detail
    broker = Resource(ResourceType.BROKER, str(remote.metadata(()).controller_id))
    assert remote.describe_configs({broker: None})[broker].error is None


def test_records_are_deleted_and_folders_described(remote, topic):
    remote.produce({(topic, 0): [batch(b"a", b"b", b"c")]})
    assert remote.delete_records({(topic, 0): 2})[topic, 0] == (None, 2)
    assert remote.delete_records({(topic, 0): 9})[topic, 0].error is OffsetOutOfRangeError
    (directory,) = remote.log_directories([topic])
    assert set(directory.sizes) == {(topic, 0), (topic, 1)}
