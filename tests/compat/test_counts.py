"""Counts and sizes in the configuration of clients."""

from __future__ import annotations

import math
from typing import Any

import pytest
from kafka.errors import KafkaConfigurationError

from compat.kafka import KafkaConsumer, KafkaProducer
from compat.kafka._counts import check_counts
from compat.kafka.share import ShareConsumer


@pytest.mark.parametrize("value", [None, "5", [5], math.nan])
@pytest.mark.parametrize(
    ("client", "name"),
    [
        *((KafkaProducer, name) for name in ("batch_size", "max_request_size")),
        (KafkaProducer, "max_in_flight_requests_per_connection"),
        *((KafkaConsumer, name) for name in ("fetch_max_bytes", "max_partition_fetch_bytes")),
        *((KafkaConsumer, name) for name in ("receive_message_max_bytes", "max_poll_records")),
        *((ShareConsumer, name) for name in ("fetch_min_bytes", "max_poll_records")),
    ],
)
def test_settings_that_are_no_numbers_are_named(client: Any, name: str, value: Any):
    with pytest.raises(KafkaConfigurationError, match=f"{name} is a number, not "):
        client(group_id="g", **{name: value}) if client is not KafkaProducer else client(**{name: value})


def test_numbers_are_taken_as_they_are():
    check_counts({"batch_size": 1.5, "fetch_max_bytes": 0, "max_poll_records": True, "client_id": "x"})
