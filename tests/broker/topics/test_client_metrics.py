"""Subscriptions to metrics of clients: what cannot be set."""

from __future__ import annotations

import pytest
from broker.clients import Client
from kafka.errors import InvalidConfigurationError, InvalidRequestError

from dafka.broker.interface.admin import ConfigChange, ConfigOperation, Resource, ResourceType
from dafka.broker.interface.broker import Error
from dafka.broker.topics.client_metrics import check_client_metrics
from dafka.broker.topics.configs import InvalidConfigError

SUBSCRIPTION = Resource(ResourceType.CLIENT_METRICS, "s")


@pytest.mark.parametrize(
    ("name", "value", "error"),
    [
        ("interval.ms", "100", None),
        ("interval.ms", "3600000", None),
        ("interval.ms", "99", InvalidRequestError),
        ("interval.ms", "3600001", InvalidRequestError),
        ("interval.ms", "abc", InvalidConfigurationError),
        ("no.such", "1", InvalidRequestError),
        ("metrics", "", None),
        ("metrics", "org.apache.kafka.,*", None),
        ("metrics", "a,", InvalidConfigurationError),
        ("match", "", None),
        ("match", "client_id=a.*, client_software_version = 4[.]", None),
        ("match", "client_id=a,client_id=b", None),
        ("match", r"client_id=\p{Alpha}+", None),
        ("match", "client_id", InvalidConfigurationError),
        ("match", "client_id=", InvalidConfigurationError),
        ("match", "client_id=a=b", InvalidConfigurationError),
        ("match", "client_id=[unclosed", InvalidConfigurationError),
        ("match", "user=a", InvalidConfigurationError),
        ("match", "client_id=a,,", InvalidConfigurationError),
    ],
)
def test_a_setting_is_refused_as_in_kafka(client: Client, name: str, value: str, error: Error | None) -> None:
    change = ConfigChange(name, ConfigOperation.SET, value)
    assert client.call("alter_configs", {SUBSCRIPTION: [change]})[SUBSCRIPTION].error is error
    kept = client.call("describe_configs", {SUBSCRIPTION: [name]})[SUBSCRIPTION]
    assert [one.value == value for one in kept.entries] == [error is None] * len(kept.entries)


def test_a_refusal_names_what_is_wrong() -> None:
    with pytest.raises(InvalidConfigError, match=r"interval\.ms is from 100 to 3600000"):
        check_client_metrics({"interval.ms": "5"})
    with pytest.raises(InvalidConfigError, match="illegal client matching pattern: user=a"):
        check_client_metrics({"match": "client_id=a,user=a"})
