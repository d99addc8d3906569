"""Topics with positions, and their configuration."""

from __future__ import annotations

from typing import Any

from broker.clients import Client

from dafka.broker.interface.admin import ConfigChange, ConfigOperation, Resource, ResourceType
from dafka.broker.interface.broker import TopicSpec

TOPIC, ALL_BROKERS, THIS_BROKER = (
    Resource(ResourceType.TOPIC, "t"),
    Resource(ResourceType.BROKER, ""),
    Resource(ResourceType.BROKER, "0"),
)


def configure(client: Client, resource: Resource, **configs: Any) -> tuple[Any, str]:
    """Set, or with None delete, settings; the error and its text."""
    changes = [
        ConfigChange(
            name.replace("_", "."), ConfigOperation.DELETE if value is None else ConfigOperation.SET, value
        )
        for name, value in configs.items()
    ]
    return client.call("alter_configs", {resource: changes})[resource]


def create(client: Client, **configs: str) -> None:
    named = {name.replace("_", "."): value for name, value in configs.items()}
    assert client.change("create_topics", {"t": TopicSpec(1, named)}) == {"t": None}
