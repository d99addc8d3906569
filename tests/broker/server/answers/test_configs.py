"""Configurations."""

from __future__ import annotations

from broker.clients import Client
from broker.server.client import answered
from kafka.protocol.admin import (
    ListConfigResourcesRequest,
)


def test_resources_with_a_configuration_are_listed(client: Client):
    client.create("topic")
    found = answered(client, ListConfigResourcesRequest(resource_types=[])).config_resources
    assert [(one.resource_name, one.resource_type) for one in found] == [
        ("topic", 2),
        ("0", 4),
        ("0", 8),
    ]
