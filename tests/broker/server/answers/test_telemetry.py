"""Metrics of clients: nothing is subscribed to."""

from __future__ import annotations

from typing import Any
from uuid import UUID, uuid4

import pytest
from broker.clients import Client
from broker.server.client import answered
from kafka.errors import (
    InvalidRequestError,
    TelemetryTooLargeError,
    UnknownSubscriptionIdError,
    UnsupportedCompressionTypeError,
)

from dafka.broker.codec.messages.telemetry import (
    GetTelemetrySubscriptionsRequest,
    PushTelemetryRequest,
)
from dafka.broker.server.answers.telemetry import METRICS_MAX_BYTES


def subscription(client: Client, instance: UUID | None) -> Any:
    return answered(client, GetTelemetrySubscriptionsRequest(client_instance_id=instance))


def test_a_client_gets_an_id_and_keeps_it(client: Client):
    first = subscription(client, None)
    assert first.error_code == 0
    assert first.client_instance_id not in (None, UUID(int=0))
    assert first.requested_metrics == []
    assert first.push_interval_ms > 0
    again = subscription(client, first.client_instance_id)
    assert (again.client_instance_id, again.subscription_id) == (
        first.client_instance_id,
        first.subscription_id,
    )
    assert subscription(client, None).client_instance_id != first.client_instance_id


@pytest.mark.parametrize(
    ("changed", "error"),
    [
        ({}, None),
        ({"compression_type": 4, "metrics": b"zstd"}, None),
        ({"terminating": True}, None),
        ({"client_instance_id": None}, InvalidRequestError),
        ({"client_instance_id": uuid4()}, UnknownSubscriptionIdError),
        ({"subscription_id": 1}, UnknownSubscriptionIdError),
        ({"compression_type": 9}, UnsupportedCompressionTypeError),
        ({"metrics": bytes(METRICS_MAX_BYTES + 1)}, TelemetryTooLargeError),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else None,
)
def test_metrics_are_checked_and_not_kept(client: Client, changed: dict[str, Any], error: Any):
    mine = subscription(client, None)
    fields = {
        "client_instance_id": mine.client_instance_id,
        "subscription_id": mine.subscription_id,
        "terminating": False,
        "compression_type": 0,
        "metrics": b"",
        **changed,
    }
    found = answered(client, PushTelemetryRequest(**fields))
    assert found.error_code == (0 if error is None else error.errno)
