"""Settings of clients that are no numbers."""

from __future__ import annotations

from typing import Any

import pytest
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.errors import KafkaConfigurationError

from compat.kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer
from compat.kafka._kinds import check_kinds
from compat.kafka.producer._config import check_compression
from compat.kafka.share import ShareConsumer


@pytest.mark.parametrize(
    ("client", "config", "words"),
    [
        *((client, {"client_id": []}, "is a str") for client in (KafkaAdminClient, KafkaProducer)),
        *((client, {"client_id": 5}, "is a str") for client in (KafkaConsumer, ShareConsumer)),
        *((KafkaConsumer, {"metric_group_prefix": value}, "is a str") for value in (None, 5, [])),
        *(
            (client, {"metric_reporters": value}, "is a list of classes")
            for client in (KafkaAdminClient, KafkaConsumer, KafkaProducer)
            for value in (None, "x", 5, [5])
        ),
        *(
            (KafkaConsumer, {"partition_assignment_strategy": value}, "is a list of assignors")
            for value in (None, "x", 5, ["x"])
        ),
    ],
)
def test_settings_of_another_kind_are_named(client: Any, config: dict[str, Any], words: str):
    (name,) = config
    with pytest.raises(TypeError, match=f"{name} {words}"):
        client(**config, **({"group_id": "g"} if client is ShareConsumer else {}))


def test_a_version_of_brokers_a_codec_and_a_time_that_are_none_are_named():
    with pytest.raises(ValueError, match="api_version is a tuple of numbers, not 'x'"):
        KafkaConsumer(api_version="x")
    with pytest.raises(KafkaConfigurationError, match=r"max_idle_ms \(None\) must be larger than"):
        KafkaConsumer(connections_max_idle_ms=None)
    with pytest.raises(ValueError, match="api_version is a tuple of numbers or None, not 'x'"):
        KafkaProducer(api_version="x")
    with pytest.raises(ValueError, match=r"Not supported codec: \[\]"):
        check_compression({"compression_type": [], "api_version": (4, 0)})


def test_names_and_lists_are_taken_as_they_are():
    check_kinds({"client_id": None, "metric_group_prefix": ""})
    check_kinds({"metric_reporters": (dict,)})
    for assignors in ((), [RangePartitionAssignor], (RangePartitionAssignor(),)):
        check_kinds({"partition_assignment_strategy": assignors})
