"""The configuration of share consumers."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from kafka.errors import KafkaConfigurationError, UnrecognizedBrokerVersion
from kafka.serializer import DefaultSerializer

from compat.kafka.share._config import DEFAULTS, read_config


def config(**given: Any) -> dict[str, Any]:
    return read_config(DEFAULTS, {"group_id": "g", **given})


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ({"group_id": None}, KafkaConfigurationError, "needs a group_id"),
        ({"group_id": ""}, KafkaConfigurationError, "needs a group_id"),
        ({"group_instance_id": "i"}, KafkaConfigurationError, "Unrecognized configs"),
        ({"share_acknowledgement_mode": []}, KafkaConfigurationError, r"or 'explicit', not \[\]"),
        ({"share_acquire_mode": "x"}, KafkaConfigurationError, "or 'record_limit', not 'x'"),
        ({"api_version": "x"}, ValueError, "api_version is a tuple of numbers, not 'x'"),
        ({"api_version": (0, 1)}, UnrecognizedBrokerVersion, "0, 1"),
        ({"value_deserializer": "x"}, TypeError, "is a function or a Deserializer, not 'x'"),
        *(
            ({name: value}, KafkaConfigurationError, f"{name} is a whole number from [01] to 2147483647,")
            for name, values in {
                "max_poll_records": (0, -1, 1.5, 2**31, float("inf")),
                "fetch_max_bytes": (0, -1, 2**31),
                "fetch_min_bytes": (-1, 0.5, 2**31),
            }.items()
            for value in values
        ),
        *(
            ({name: "\u00e9" * 16_384}, KafkaConfigurationError, f"{name} has 32767 octets at most")
            for name in ("client_id", "client_rack", "group_id")
        ),
    ],
)
def test_settings_with_which_nothing_would_come_are_refused(
    given: dict[str, Any], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        config(**given)


def test_settings_are_taken_as_they_are_meant() -> None:
    found = config(api_version=(2, 8), client_rack=None, max_poll_records=5.0, key_deserializer=int)
    assert (found["api_version"], found["client_rack"]) == ((2, 8), None)
    assert type(found["max_poll_records"]) is int
    named = config(group_id=UUID(int=5), client_rack=8)
    assert (named["group_id"], named["client_rack"]) == (str(UUID(int=5)), "8")
    serializer = DefaultSerializer()
    assert config(value_deserializer=serializer)["value_deserializer"] is serializer
    assert config(client_id="c" * 32_767)["share_acknowledgement_mode"] == "implicit"
