"""A producer's configuration: it refuses the same settings as kafka-python's."""

from __future__ import annotations

from typing import Any

import kafka
import pytest

from compat.kafka import (
    KafkaProducer,
)
from dafka import Broker
from tests.compat.refusing import NOWHERE, outcome

pytestmark = pytest.mark.usefixtures("kafka_python_ends")
PRODUCER_CONFIGURATIONS = [
    {"compression_type": "brotli"},
    {"transactional_id": "t", "enable_idempotence": False},
    {"enable_idempotence": True, "acks": 1},
    {"enable_idempotence": True, "acks": 0},
    {"enable_idempotence": True, "retries": 0},
    {"enable_idempotence": True, "max_in_flight_requests_per_connection": 6},
    {"transactional_id": "t", "acks": 1},
    {"delivery_timeout_ms": 1000},
    {"delivery_timeout_ms": 30_000, "linger_ms": 1},
]


@pytest.mark.parametrize("config", PRODUCER_CONFIGURATIONS, ids=str)
def test_a_producers_configuration_is_refused_as_by_kafka_python(
    broker: Broker, config: dict[str, Any]
) -> None:
    theirs = outcome(lambda: kafka.KafkaProducer(**NOWHERE, **config))
    ours = outcome(lambda: KafkaProducer(bootstrap_servers=broker.bootstrap_servers, **config))
    assert theirs is not None
    assert (type(ours), str(ours)) == (type(theirs), str(theirs))


@pytest.mark.parametrize(
    "config",
    [{"acks": 1}, {"acks": 0}, {"retries": 0}, {"max_in_flight_requests_per_connection": 6}],
    ids=str,
)
def test_a_conflict_with_idempotence_by_default_only_switches_it_off(
    broker: Broker, config: dict[str, Any]
) -> None:
    with KafkaProducer(bootstrap_servers=broker.bootstrap_servers, **config) as producer:
        assert producer.config["enable_idempotence"] is False
