"""Settings of a group, set as admin clients do."""

from __future__ import annotations

from collections.abc import Mapping

from clients.adapters.client import SECONDS
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)
from timing import until


def set_group(servers: str, group: str, settings: Mapping[str, str]) -> None:
    """Set these; a KafkaException says which one is refused."""
    admin = AdminClient({"bootstrap.servers": servers})
    entries = [
        ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
        for name, value in settings.items()
    ]
    resource = ConfigResource(ResourceType.GROUP, group, incremental_configs=entries)
    for changed in admin.incremental_alter_configs([resource]).values():
        changed.result(SECONDS)

    def are_in_effect() -> bool:  # Apache Kafka acknowledges a setting before it counts
        (described,) = admin.describe_configs([ConfigResource(ResourceType.GROUP, group)]).values()
        found = described.result(SECONDS)
        return all(found[name].value == value for name, value in settings.items())

    until(are_in_effect, settings)
