"""Heartbeats that are refused whatever the state of their group is."""

from __future__ import annotations

from typing import Any

import pytest
from kafka.errors import InvalidRequestError, UnsupportedAssignorError

from dafka.broker.groups.consumer.requests import check_heartbeat
from dafka.broker.interface.consumer_groups import ConsumerHeartbeat

JOIN: dict[str, Any] = {"member_epoch": 0, "rebalance_timeout": 5.0, "topics": ["t"], "owned": {}}


def heartbeat(**change: Any) -> ConsumerHeartbeat:
    return ConsumerHeartbeat(**{"member_id": "m", **JOIN, **change})


@pytest.mark.parametrize(
    "good",
    [
        {},
        {"topics": None, "regex": "a.*"},
        {"topics": []},
        {"assignor": "range"},
        {"member_epoch": 3, "topics": None, "owned": None, "rebalance_timeout": None},
        {"member_epoch": -1},
        {"member_epoch": -2, "instance_id": "i"},
    ],
)
def test_valid_heartbeats_pass(good):
    check_heartbeat("g", heartbeat(**good))


@pytest.mark.parametrize(
    ("group", "bad", "error"),
    [
        ("", {}, InvalidRequestError),
        (" ", {}, InvalidRequestError),
        (None, {}, InvalidRequestError),
        ("g", {"member_id": ""}, InvalidRequestError),
        ("g", {"instance_id": ""}, InvalidRequestError),
        ("g", {"rack": " "}, InvalidRequestError),
        ("g", {"member_epoch": -3}, InvalidRequestError),
        ("g", {"member_epoch": -2}, InvalidRequestError),
        ("g", {"rebalance_timeout": None}, InvalidRequestError),
        ("g", {"owned": None}, InvalidRequestError),
        ("g", {"owned": {1: [0]}}, InvalidRequestError),
        ("g", {"topics": None}, InvalidRequestError),
        ("g", {"topics": [str(number) for number in range(10_001)]}, InvalidRequestError),
        ("g", {"member_id": "m" * 1025}, InvalidRequestError),
        ("g", {"instance_id": "i" * 1025}, InvalidRequestError),
        ("g", {"rack": "r" * 1025}, InvalidRequestError),
        ("g", {"assignor": "sticky"}, UnsupportedAssignorError),
    ],
)
def test_invalid_heartbeats_are_refused(group, bad, error):
    with pytest.raises(error):
        check_heartbeat(group, heartbeat(**bad))
