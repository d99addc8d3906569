"""A consumer's configuration: it refuses the same settings as kafka-python's."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import kafka
import pytest
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.coordinator.assignors.range import RangePartitionAssignor

import compat.kafka
from compat.kafka import (
    KafkaConsumer,
)
from compat.kafka.errors import (
    KafkaConfigurationError,
)
from dafka import Broker
from dafka.testing import TestBroker
from tests.compat.refusing import NOWHERE, outcome

pytestmark = pytest.mark.usefixtures("kafka_python_ends")
CONSUMER_CONFIGURATIONS = [
    {"isolation_level": "read_everything"},
    {"group_instance_id": "i"},
    {"group_id": "g", "partition_assignment_strategy": []},
    {"group_id": "g", "partition_assignment_strategy": [RangePartitionAssignor, CooperativeStickyAssignor]},
]


CONNECTED_CONFIGURATIONS = [
    {"api_version": (0, 7)},
    {"api_version": 5},
    {"api_version": (0, 9), "max_poll_interval_ms": 5, "session_timeout_ms": 6, "heartbeat_interval_ms": 1},
    {"session_timeout_ms": 100, "group_id": "g"},
    {"group_id": "g", "partition_assignment_strategy": [int]},
    {"isolation_level": 5},
    {"metric_reporters": 5},
    {"auto_offset_reset": "sometimes"},
]


@pytest.mark.parametrize("config", CONSUMER_CONFIGURATIONS, ids=str)
def test_a_consumers_configuration_is_refused_as_by_kafka_python(
    broker: Broker, config: dict[str, Any]
) -> None:
    theirs = outcome(lambda: kafka.KafkaConsumer(**NOWHERE, **config))
    ours = outcome(lambda: KafkaConsumer(bootstrap_servers=broker.bootstrap_servers, **config))
    assert isinstance(theirs, KafkaConfigurationError)
    assert (type(ours), str(ours)) == (type(theirs), str(theirs))


@pytest.mark.parametrize("config", CONNECTED_CONFIGURATIONS, ids=str)
def test_a_configuration_that_needs_a_broker_is_refused_as_by_kafka_python(
    listening: TestBroker, config: dict[str, Any]
) -> None:
    servers = listening.bootstrap_servers
    errors = [
        outcome(lambda: module.KafkaConsumer(bootstrap_servers=servers, **config).close())  # noqa: B023
        for module in (kafka, compat.kafka)
    ]
    assert type(errors[1]) is type(errors[0])


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_names_of_another_kind_are_written_as_text_as_kafka_python_does(
    broker: TestBroker, protocol: str
) -> None:
    broker.preload("flights", [b"LH400"])
    group = UUID(int=5)
    consumer = KafkaConsumer(
        "flights",
        bootstrap_servers=broker.bootstrap_servers,
        group_id=group,
        group_instance_id=7,
        client_rack=8,
        group_protocol=protocol,
        auto_offset_reset="earliest",
        consumer_timeout_ms=60_000,
    )
    assert next(consumer).value == b"LH400"
    assert [one.instance_id for one in broker.members(str(group))] == ["7"]
    consumer.close()


def test_a_place_to_begin_that_is_no_name_is_none_as_for_kafka_python(
    broker: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    for value in (5, [], None):
        caplog.clear()
        KafkaConsumer(bootstrap_servers=broker.bootstrap_servers, auto_offset_reset=value).close()
        assert "using NONE" in caplog.text
